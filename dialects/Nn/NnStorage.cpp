//===- NnStorage.cpp - What a reader of a stored family sees --------------===//
#include "dialects/Nn/NnStorage.h"

#include <numeric>

using namespace mlir;
using namespace k2c::nn;

/// The tensor of one layer with the experts that a rank holds, and its part of each.
static RankedTensorType heldType(WeightsOp family) {
  RankedTensorType type = family.getTensorType();
  SmallVector<int64_t> shape(type.getShape());
  if (family.getHeld())
    shape.front() = *family.getHeld();
  if (family.getParts())
    shape[*family.getAlong()] /= *family.getParts();
  return RankedTensorType::get(shape, type.getElementType());
}

RankedTensorType k2c::nn::readTypeOf(WeightsOp family) {
  RankedTensorType type = heldType(family);
  BlocksAttr stored = family.getStorageAttr();
  SliceAttr view = family.getViewAttr();
  const int64_t leading = family.getLeadingDims();
  ArrayRef<int64_t> dims = view ? view.getDims() : type.getShape().drop_front(leading);
  if (!stored)
    return type;
  if (stored.getBlock().size() != 2 || dims.size() < 2)
    return RankedTensorType::get(type.getShape(), type.getElementType(), stored);
  // The published matrix is [rows][columns]; the dimensions before the last two cut its rows.
  int64_t rank = dims.size(), rows = stored.getBlock()[0], columns = stored.getBlock()[1];
  if (rank > 2)
    rows = std::gcd(rows, dims[rank - 2]);
  if (view && view.getDim() == rank - 2)
    rows = std::gcd(rows, view.getFrom());
  if (view && view.getDim() == rank - 1)
    columns = std::gcd(columns, view.getFrom());
  if (view && view.getTranspose())
    std::swap(rows, columns);
  // A part begins where a block does, or blocks are cut.
  if (const int64_t along = family.getParts() ? *family.getAlong() - type.getRank() : 0; along != 0 && along >= -2)
    (along == -2 ? rows : columns) = std::gcd(along == -2 ? rows : columns, type.getShape()[type.getRank() + along]);
  auto shared = BlocksAttr::get(family.getContext(), stored.getElement(), {rows, columns}, stored.getScale());
  return RankedTensorType::get(type.getShape(), type.getElementType(), shared);
}

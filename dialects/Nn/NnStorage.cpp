//===- NnStorage.cpp - What a reader of a stored family sees --------------===//
#include "dialects/Nn/NnStorage.h"

#include <numeric>

using namespace mlir;
using namespace k2c::nn;

/// The tensor of one layer with the experts that a rank holds.
static RankedTensorType heldType(WeightsOp family) {
  RankedTensorType type = family.getTensorType();
  if (!family.getHeld())
    return type;
  SmallVector<int64_t> shape(type.getShape());
  shape.front() = *family.getHeld();
  return RankedTensorType::get(shape, type.getElementType());
}

RankedTensorType k2c::nn::readTypeOf(WeightsOp family) {
  RankedTensorType type = heldType(family);
  BlocksAttr stored = family.getStorageAttr();
  SliceAttr view = family.getViewAttr();
  int64_t leading = (family.getDomain("expert") ? 1 : 0) + (family.getAlternatives().empty() ? 0 : 1);
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
  auto shared = BlocksAttr::get(family.getContext(), stored.getElement(), {rows, columns}, stored.getScale());
  return RankedTensorType::get(type.getShape(), type.getElementType(), shared);
}

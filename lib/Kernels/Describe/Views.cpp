//===- Views.cpp - Strided reading of row tensors -------------------------===//
#include "Views.h"
#include "dialects/Nn/Nn.h"
#include "k2c/Kernels/Describe.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace k2c {

int64_t StridedView::width() const {
  int64_t product = 1;
  for (int64_t dim : dims)
    product *= dim;
  return product;
}

/// Dense strides of `dims`.
static SmallVector<int64_t, 3> denseStrides(ArrayRef<int64_t> dims) {
  SmallVector<int64_t, 3> strides(dims.size(), 1);
  for (int64_t i = static_cast<int64_t>(dims.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * dims[i + 1];
  return strides;
}

bool StridedView::denseRows() const {
  int64_t expected = 1;
  for (auto [dim, stride] : llvm::reverse(llvm::zip_equal(dims, strides))) {
    if (dim != 1 && stride != expected)
      return false;
    expected *= dim;
  }
  return true;
}

FailureOr<StridedView> resolveView(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t, 3> dims(type.getShape().drop_front());
  if (auto reshape = value.getDefiningOp<nn::ReshapeOp>()) {
    FailureOr<StridedView> view = resolveView(reshape.getInput());
    if (failed(view))
      return failure();
    if (!view->denseRows())
      return reshape.emitOpError("reads a row whose elements are not consecutive; a kernel cannot view it");
    view->dims = dims;
    view->strides = denseStrides(dims);
    return view;
  }
  if (auto split = value.getDefiningOp<nn::SplitOp>()) {
    FailureOr<StridedView> view = resolveView(split.getInput());
    if (failed(view))
      return failure();
    for (Value piece : split.getPieces().take_front(cast<OpResult>(value).getResultNumber()))
      view->offset += cast<RankedTensorType>(piece.getType()).getShape().back() * view->strides.back();
    view->dims.back() = dims.back();
    return view;
  }
  StridedView view;
  view.base = value;
  view.dims = dims;
  view.strides = denseStrides(dims);
  view.rowStride = view.width();
  return view;
}

FailureOr<Rows> rowsOf(const StridedView &view) {
  auto type = cast<RankedTensorType>(view.base.getType());
  FailureOr<DType> element = dtypeOf(type.getElementType());
  nn::RowsAttr space = nn::rowsOf(type);
  if (failed(element) || !space)
    return failure();
  Rows rows;
  switch (space.getKind()) {
  case nn::RowKind::Token:
  case nn::RowKind::Entering: // of the same kernel, which has no items on later stages
  case nn::RowKind::Recv:     // of a step of their own
  case nn::RowKind::Gathered: // likewise
  case nn::RowKind::Message:  // not one an item
  case nn::RowKind::Subtree:
    rows.space = RowSpace::Token;
    break;
  case nn::RowKind::Output:
    rows.space = RowSpace::Output;
    break;
  case nn::RowKind::Slot:
    rows.space = RowSpace::Slot;
    break;
  default:
    return failure();
  }
  rows.width = view.width();
  rows.stride = view.rowStride;
  rows.type = *element;
  return rows;
}

} // namespace k2c

//===- Builder.cpp - Filling a KernelDesc and its argument sources --------===//
//
// A description has two halves that must stay in step: the numbers of the KernelDesc, and where each argument of a
// launch comes from. Each add function does both: it traces a value of the region through views (Views.h) to an
// argument or a yielded result of the kern.func, appends the source, and fills the width and stride of the operand.
//
//   %q, %k, %v = nn.split %x    addRows(%k)  ->  rows of width 128, stride 5120; argument 0 + 4096 elements
//
// Sources come in the order of operands(desc), which finish() asserts by their number. A value that is neither an
// argument nor a view of one means that the kernel was outlined wrongly, and is an error at the kernel. setStorage has
// one trap: scaled blocks begin anew with every matrix of a stacked weight while a kernel's matrix may hold several
// (heads), so that a scale is good for no more columns than divide both.
//
//===----------------------------------------------------------------------===//
#include "Builder.h"
#include "dialects/Nn/Nn.h"
#include <numeric>

using namespace mlir;

namespace k2c {

bool DescBuilder::argumentIndex(Value value, unsigned &index) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument) {
    kernel.emitError() << "kernel '" << kernel.getSymName()
                       << "' reads a value that is neither an argument nor a view of one";
    return false;
  }
  index = argument.getArgNumber();
  return true;
}

bool DescBuilder::resultIndex(Value value, unsigned &index) {
  for (OpOperand &use : value.getUses())
    if (isa<kern::YieldOp>(use.getOwner())) {
      index = use.getOperandNumber();
      return true;
    }
  kernel.emitError() << "kernel '" << kernel.getSymName() << "' does not yield the value it should store";
  return false;
}

bool DescBuilder::addHeads(Value value, Rows &rows, int64_t &headStride) {
  FailureOr<StridedView> view = resolveView(value);
  if (failed(view))
    return false;
  FailureOr<Rows> found = k2c::rowsOf(*view);
  ArgumentSource source;
  if (failed(found) || !argumentIndex(view->base, source.index))
    return false;
  source.offset = view->offset;
  rows = *found;
  headStride = view->strides.front();
  sources.push_back(source);
  return true;
}

bool DescBuilder::addRows(Value value, Rows &rows) {
  FailureOr<StridedView> view = resolveView(value);
  if (failed(view))
    return false;
  if (!view->denseRows()) {
    kernel.emitError() << "kernel '" << kernel.getSymName() << "' reads rows whose elements are not consecutive";
    return false;
  }
  int64_t unused;
  return addHeads(value, rows, unused);
}

bool DescBuilder::addPart(Value value, int64_t part, int64_t parts, Rows &rows) {
  if (!addRows(value, rows))
    return false;
  rows.width /= parts;
  sources.back().offset += part * rows.width;
  return true;
}

bool DescBuilder::addArgument(Value value) {
  ArgumentSource source;
  if (!argumentIndex(value, source.index))
    return false;
  sources.push_back(source);
  return true;
}

bool DescBuilder::addPlane(Value view, unsigned plane) {
  ArgumentSource source;
  // An append writes the planes of the view it yields; its kernel has no view among its arguments.
  if (isa<BlockArgument>(view)) {
    if (!argumentIndex(view, source.index))
      return false;
  } else {
    source.kind = ArgumentSource::Result;
    if (!resultIndex(view, source.index))
      return false;
  }
  source.plane = plane;
  sources.push_back(source);
  return true;
}

bool DescBuilder::addLayer(Value value, int64_t offset) {
  ArgumentSource source;
  source.offset = offset;
  if (!value)
    source.kind = ArgumentSource::Constant;
  else if (!argumentIndex(value, source.index))
    return false;
  sources.push_back(source);
  return true;
}

bool DescBuilder::addOwnLayer() {
  ArgumentSource source;
  source.kind = ArgumentSource::OwnLayer;
  sources.push_back(source);
  return true;
}

bool DescBuilder::addOrdinal(Value value, nn::IndicesAttr among) {
  if (!addLayer(value, 0))
    return false;
  sources.back().among = among;
  return true;
}

bool DescBuilder::addResult(Value value, Rows &rows) {
  FailureOr<StridedView> view = resolveView(value);
  if (failed(view))
    return false;
  FailureOr<Rows> found = k2c::rowsOf(*view);
  if (failed(found))
    return false;
  rows = *found;
  return addResult(value);
}

bool DescBuilder::addResult(Value value) {
  ArgumentSource source;
  source.kind = ArgumentSource::Result;
  if (!resultIndex(value, source.index))
    return false;
  sources.push_back(source);
  return true;
}

FailureOr<DescribedKernel> DescBuilder::finish(bool ok, KernelBody body) {
  if (!ok)
    return failure();
  DescribedKernel described;
  described.desc.name = kernel.getSymName().str();
  described.desc.body = std::move(body);
  described.sources = std::move(sources);
  assert(operands(described.desc).size() == described.sources.size() && "one source for each argument");
  return described;
}

LogicalResult setStorage(Matrix &matrix, Value weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  FailureOr<DType> element = dtypeOf(type.getElementType());
  if (failed(element))
    return failure();
  matrix.type = *element == DType::BF16 ? DType::BF16 : DType::F32;
  auto blocks = dyn_cast_or_null<nn::BlocksAttr>(type.getEncoding());
  if (!blocks)
    return success();
  if (!isa<Float8E4M3FNType>(blocks.getElement()) || !blocks.getScale().isF32() || blocks.getBlock().size() != 2)
    return failure();
  // Blocks begin anew with every matrix of the last two dimensions; a matrix may hold several of these (heads).
  int64_t rows = type.getDimSize(type.getRank() - 2), columns = blocks.getBlock()[0];
  matrix.type = DType::F8E4M3;
  matrix.blockColumns = matrix.partColumns() == rows ? columns : std::gcd(columns, rows);
  matrix.blockRows = blocks.getBlock()[1];
  return success();
}

FailureOr<DType> dtypeOf(Type type) {
  if (type.isF32())
    return DType::F32;
  if (type.isBF16())
    return DType::BF16;
  if (type.isF16())
    return DType::F16;
  if (type.isInteger(32))
    return DType::I32;
  if (type.isInteger(8))
    return DType::U8;
  return failure();
}

} // namespace k2c

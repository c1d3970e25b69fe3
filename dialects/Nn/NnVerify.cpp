//===- NnVerify.cpp - Verifiers of nn ops on token tensors ----------------===//
//
// Ids are those of NnOps.td and NnState.td; [C1] of ops that keep the row space is checked by the RowSpaceOp interface.
//
//===----------------------------------------------------------------------===//
#include "dialects/Nn/NnVerify.h"

using namespace mlir;
using namespace k2c::nn;

//===----------------------------------------------------------------------===//
// embed, rms_norm, linear
//===----------------------------------------------------------------------===//

/// [C1] of embed.
LogicalResult EmbedOp::verify() {
  if (rowsOf(getResult().getType()).getKind() == RowKind::Entering)
    return success();
  return checkRows(*this, "C1", "the result", getResult().getType(), RowKind::Token);
}

/// [C2] of embed and lookup.
static LogicalResult checkTable(Operation *op, RankedTensorType table, Type result) {
  if (failed(checkRank(op, "C2", "a table", table, 2)))
    return failure();
  return checkEqual(op, "C2", "table width", widthOf(table), "result width", widthOf(result));
}

LogicalResult EmbedOp::verifyWeightTypes(ArrayRef<RankedTensorType> types) {
  return checkTable(*this, types[0], getResult().getType());
}

/// [`id`] a row is one i32.
static LogicalResult checkIds(Operation *op, StringRef id, Value ids) {
  if (failed(checkElement(op, id, "an id", ids.getType(), IntegerType::get(op->getContext(), 32))))
    return failure();
  return checkShape(op, id, "a row of ids", columnsOf(ids.getType()), 1);
}

/// [C1], [C2] of token_ids.
LogicalResult TokenIdsOp::verify() {
  Type type = getResult().getType();
  if (rowsOf(type).getKind() != RowKind::Entering && failed(checkRows(*this, "C1", "the result", type, RowKind::Token)))
    return failure();
  return checkIds(*this, "C2", getResult());
}

/// [C3] of lookup.
LogicalResult LookupOp::verify() { return checkIds(*this, "C3", getIds()); }

LogicalResult LookupOp::verifyWeightTypes(ArrayRef<RankedTensorType> types) {
  return checkTable(*this, types[0], getResult().getType());
}

/// [C3] of rms_norm.
LogicalResult RmsNormOp::verify() {
  if (getEps().convertToDouble() <= 0)
    return emitOpError("[C3] expects a positive eps, got ") << getEps().convertToDouble();
  return success();
}

/// [C2] of rms_norm.
LogicalResult RmsNormOp::verifyWeightTypes(ArrayRef<RankedTensorType> types) {
  return checkShape(*this, "C2", "a weight", types[0].getShape(), widthOf(getInput().getType()));
}

/// [C5] of linear.
LogicalResult LinearOp::verify() { return checkRank(*this, "C5", "an input", getInput().getType(), 2); }

/// [C2], [C3], [C4] of linear.
LogicalResult LinearOp::verifyWeightTypes(ArrayRef<RankedTensorType> types) {
  ArrayRef<int64_t> weight = types[0].getShape(), columns = columnsOf(getResult().getType());
  if (weight.empty())
    return checkRank(*this, "C2", "a weight", types[0], 2);
  if (failed(checkEqual(*this, "C2", "weight columns", weight.back(), "input width", widthOf(getInput().getType()))) ||
      failed(checkShape(*this, "C3", "result columns", columns, weight.drop_back())))
    return failure();
  return types.size() == 1 ? success() : checkShape(*this, "C4", "a bias", types[1].getShape(), columns);
}

//===----------------------------------------------------------------------===//
// rotary, views
//===----------------------------------------------------------------------===//

/// [C2], [C4], [C5] of rotary.
LogicalResult RotaryOp::verify() {
  int64_t width = widthOf(getInput().getType());
  if (getCount() < 0 || getCount() % 2)
    return emitOpError("[C4] expects an even count that is not negative, got ") << getCount();
  if (getFirst() < 0 || getFirst() + getCount() > width)
    return emitOpError("[C2] expects first + count within ")
           << width << " elements, got " << getFirst() << " + " << getCount();
  return checkStepRows(*this, "C5", "the input", getInput().getType());
}

/// [C3] of rotary.
LogicalResult RotaryOp::verifyWeightTypes(ArrayRef<RankedTensorType> types) {
  if (failed(checkRank(*this, "C3", "a table", types[0], 3)))
    return failure();
  return checkShape(*this, "C3", "a table row", columnsOf(types[0]), {2, getCount() / 2});
}

/// [C2], [C3] of split.
LogicalResult SplitOp::verify() {
  RankedTensorType input = getInput().getType();
  int64_t sum = 0;
  for (Value piece : getPieces()) {
    sum += widthOf(piece.getType());
    if (failed(checkElement(*this, "C3", "a piece", piece.getType(), input.getElementType())) ||
        failed(checkShape(*this, "C3", "outer dimensions", columnsOf(piece.getType()).drop_back(),
                          columnsOf(input).drop_back())))
      return failure();
  }
  return checkEqual(*this, "C2", "the sum of the pieces", sum, "the last dimension", widthOf(input));
}

static int64_t elements(ArrayRef<int64_t> shape) {
  int64_t product = 1;
  for (int64_t dim : shape)
    product *= dim;
  return product;
}

/// [C2], [C3] of reshape.
LogicalResult ReshapeOp::verify() {
  RankedTensorType input = getInput().getType(), result = getResult().getType();
  if (failed(checkElement(*this, "C3", "the result", result, input.getElementType())))
    return failure();
  return checkEqual(*this, "C2", "elements of a result row", elements(columnsOf(result)), "elements of an input row",
                    elements(columnsOf(input)));
}

/// [C1], [C2] of output_rows.
LogicalResult OutputRowsOp::verify() {
  if (failed(checkRows(*this, "C1", "the input", getInput().getType(), RowKind::Token)) ||
      failed(checkRows(*this, "C1", "the result", getResult().getType(), RowKind::Output)))
    return failure();
  return checkShape(*this, "C2", "result columns", columnsOf(getResult().getType()), columnsOf(getInput().getType()));
}

//===----------------------------------------------------------------------===//
// append, attention, capture, block_argmax, greedy_sample, sample
//===----------------------------------------------------------------------===//

/// [C1], [C2] of append.
LogicalResult AppendOp::verify() {
  KvViewType view = getView().getType();
  if (failed(checkStepRows(*this, "C1", "keys", getKeys().getType())) ||
      failed(
          checkShape(*this, "C2", "key columns", columnsOf(getKeys().getType()), {view.getHeads(), view.getKeyDims()})))
    return failure();
  return checkShape(*this, "C2", "value columns", columnsOf(getValues().getType()),
                    {view.getHeads(), view.getValueDims()});
}

/// [C3], [C4] of append.
LogicalResult AppendOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto pool = tables.lookupNearestSymbolFrom<PoolOp>(*this, getPoolAttr());
  if (!pool)
    return emitOpError("[C3] expects ") << getPoolAttr() << " to be an nn.pool";
  KvViewType view = getView().getType();
  if (failed(checkPlane(*this, "C3", pool, "k", {view.getHeads(), view.getKeyDims()}, view.getElement())) ||
      failed(checkPlane(*this, "C3", pool, "v", {view.getHeads(), view.getValueDims()}, view.getElement())))
    return failure();
  return checkEqual(*this, "C4", "the view's group", view.getGroup(), "the pool's", pool.getGroup());
}

/// [C2] to [C6] of attention.
LogicalResult AttentionOp::verify() {
  KvViewType view = getView().getType();
  if (failed(checkStepRows(*this, "C6", "the query", getQuery().getType())) ||
      failed(checkRank(*this, "C2", "a query", getQuery().getType(), 3)))
    return failure();
  ArrayRef<int64_t> query = columnsOf(getQuery().getType());
  if (query[0] % view.getHeads())
    return emitOpError("[C2] expects query heads ")
           << query[0] << " to be a multiple of the view's heads " << view.getHeads();
  if (failed(checkEqual(*this, "C3", "query dims", query[1], "key dims", view.getKeyDims())) ||
      failed(
          checkShape(*this, "C4", "result columns", columnsOf(getResult().getType()), {query[0], view.getValueDims()})))
    return failure();
  if (getWindow() && *getWindow() <= 0)
    return emitOpError("[C5] expects a positive window, got ") << *getWindow();
  return success();
}

/// [C2], [C3] of capture.
LogicalResult CaptureOp::verify() {
  bool hidden = getKind() == CaptureKind::Hidden;
  if (hidden != static_cast<bool>(getLayer()))
    return emitOpError("[C2] expects ") << (hidden ? "a layer for hidden" : "no layer for embed");
  if (!hidden && rowsOf(getInput().getType()).getKind() == RowKind::Entering)
    return success();
  return checkRows(*this, "C3", "the input", getInput().getType(), RowKind::Token);
}

/// [C1], [C2] of ops that choose among logits.
static LogicalResult checkLogits(Operation *op, Type logits) {
  if (failed(checkRows(op, "C1", "the logits", logits, RowKind::Output)) ||
      failed(checkRank(op, "C2", "logits", logits, 2)))
    return failure();
  return checkElement(op, "C2", "logits", logits, Float32Type::get(op->getContext()));
}

/// [C1] to [C4] of block_argmax.
LogicalResult BlockArgmaxOp::verify() {
  RankedTensorType logits = getLogits().getType(), result = getResult().getType();
  if (failed(checkLogits(*this, logits)))
    return failure();
  if (getBlock() <= 0)
    return emitOpError("[C3] expects a positive block, got ") << getBlock();
  if (failed(checkElement(*this, "C4", "the result", result, IntegerType::get(getContext(), 32))))
    return failure();
  const int64_t blocks = llvm::divideCeil(widthOf(logits), getBlock());
  return checkShape(*this, "C4", "result columns", columnsOf(result), {blocks});
}

/// [C1] to [C3] of greedy_sample.
LogicalResult GreedySampleOp::verify() {
  RankedTensorType logits = getLogits().getType(), best = getBest().getType();
  if (failed(checkLogits(*this, logits)) || failed(checkRank(*this, "C3", "what blocks have left", best, 2)) ||
      failed(checkElement(*this, "C3", "what blocks have left", best, IntegerType::get(getContext(), 32))))
    return failure();
  if (widthOf(best) > widthOf(logits))
    return emitOpError("[C3] expects at most ")
           << widthOf(logits) << " blocks, as many as a row has logits, got " << widthOf(best);
  return success();
}

/// [C1], [C2] of sample.
LogicalResult SampleOp::verify() { return checkLogits(*this, getLogits().getType()); }

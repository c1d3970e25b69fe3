//===- MoeVerify.cpp - Verifiers of the moe dialect -----------------------===//
//
// Ids are those of MoeBase.td and MoeOps.td.
//
//===----------------------------------------------------------------------===//
#include "dialects/Moe/Moe.h"
#include "dialects/Nn/NnVerify.h"

using namespace mlir;
using namespace k2c::moe;
using namespace k2c::nn;

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

/// [C1] of tree.
LogicalResult k2c::moe::TreeAttr::verify(EmitError emitError, int64_t leaves) {
  if (leaves < 1 || leaves > 128 || (leaves & (leaves - 1)))
    return emitError() << "'#moe.tree' [C1] expects a power of two up to 128, got " << leaves;
  return success();
}

/// [C1] to [C4] of bound.
LogicalResult BoundAttr::verify(EmitError emitError, int64_t nodes, int64_t slots, int64_t max, FloatAttr penalty) {
  if (nodes < 2 || slots < 1)
    return emitError() << "'#moe.bound' [C1] expects several nodes that have slots, got " << nodes << " of " << slots
                       << " slots";
  if (max < 0 || max >= nodes)
    return emitError() << "'#moe.bound' [C2] expects 0 <= max < " << nodes << " nodes, got " << max;
  const double fall = penalty ? penalty.getValueAsDouble() : 1;
  if (!(fall > 0 && fall <= 1))
    return emitError() << "'#moe.bound' [C3] expects a penalty above 0 and at most 1, got " << fall;
  if (max == 0 && !penalty)
    return emitError() << "'#moe.bound' [C4] expects a limit or a penalty, got neither";
  return success();
}

/// [C1], [C2] of permutation.
LogicalResult PermutationType::verify(EmitError emitError, int64_t experts, int64_t top, int64_t site, int64_t max) {
  if (top <= 0 || (site < 0 && top > experts))
    return emitError() << "'!moe.permutation' [C1] expects 0 < top <= " << experts << " experts, got " << top;
  if (site >= 0 && max < 0)
    return emitError() << "'!moe.permutation' [C2] expects a bound of the rows of site " << site << ", got none";
  return success();
}

RowsAttr PermutationType::getRows() const {
  return getSite() < 0 ? RowsAttr::get(getContext(), RowKind::Token)
                       : RowsAttr::get(getContext(), RowKind::Recv, /*per_token=*/0, getSite(), getMax());
}

RowsAttr PermutationType::getSlots() const {
  return RowsAttr::get(getContext(), RowKind::Slot, std::min(getTop(), getExperts()), getSite(), getMax());
}

/// Experts are i32 [rows, top], weights f32 [rows, top].
static LogicalResult checkRoutes(Operation *op, StringRef id, Value experts, Value weights, int64_t top) {
  Type i32 = IntegerType::get(op->getContext(), 32), f32 = Float32Type::get(op->getContext());
  if (failed(checkElement(op, id, "experts", experts.getType(), i32)) ||
      failed(checkShape(op, id, "experts' columns", columnsOf(experts.getType()), top)))
    return failure();
  if (!weights)
    return success();
  if (failed(checkElement(op, id, "weights", weights.getType(), f32)))
    return failure();
  return checkShape(op, id, "weights' columns", columnsOf(weights.getType()), top);
}

static LogicalResult checkSlots(Operation *op, StringRef what, Value value, PermutationType permutation) {
  return checkRows(op, "C1", what, value.getType(), permutation.getSlots());
}

/// The rows that the permutation sorts.
static LogicalResult checkSorted(Operation *op, StringRef id, StringRef what, Value value,
                                 PermutationType permutation) {
  return checkRows(op, id, what, value.getType(), permutation.getRows());
}

//===----------------------------------------------------------------------===//
// routing
//===----------------------------------------------------------------------===//

/// [C1] to [C5] and [C7] of routing.
LogicalResult RoutingOp::verify() {
  if (failed(checkRows(*this, "C1", "the scores", getScores().getType(), RowKind::Token)) ||
      failed(checkRank(*this, "C2", "scores", getScores().getType(), 2)) ||
      failed(checkElement(*this, "C2", "scores", getScores().getType(), Float32Type::get(getContext()))) ||
      failed(checkRoutes(*this, "C3", getExperts(), getWeights(), getTop())))
    return failure();
  int64_t experts = widthOf(getScores().getType());
  if (getGroups() <= 0 || experts % getGroups() || getKept() <= 0 || getKept() > getGroups())
    return emitOpError("[C5] expects kept groups of a divisor of ")
           << experts << " experts, got " << getKept() << " of " << getGroups();
  int64_t eligible = getKept() * (experts / getGroups());
  if (getTop() <= 0 || getTop() > eligible)
    return emitOpError("[C4] expects 0 < top <= ") << eligible << " eligible experts, got " << getTop();
  BoundAttr bound = getBoundAttr();
  if (bound && getSlots() < experts)
    return emitOpError("[C7] expects slots for ") << experts << " experts on all nodes, got " << getSlots();
  if (bound && bound.getMax() > 0 && bound.getMax() * bound.getSlots() < static_cast<int64_t>(getTop()))
    return emitOpError("[C7] expects slots for ")
           << getTop() << " choices on " << bound.getMax() << " nodes, got " << bound.getMax() * bound.getSlots();
  return success();
}

/// [C6] of routing.
LogicalResult RoutingOp::verifyWeightTypes(ArrayRef<RankedTensorType> types) {
  return types.empty() ? success()
                       : checkShape(*this, "C6", "a bias", types[0].getShape(), widthOf(getScores().getType()));
}

//===----------------------------------------------------------------------===//
// experts
//===----------------------------------------------------------------------===//

/// [C2], [C5], [C6] of experts.
LogicalResult ExpertsOp::verify() {
  if (failed(checkRank(*this, "C5", "an input", getInput().getType(), 2)) ||
      failed(checkRank(*this, "C2", "experts", getExperts().getType(), 2)) ||
      failed(checkRoutes(*this, "C2", getExperts(), getWeights(), widthOf(getExperts().getType()))))
    return failure();
  if (getCombineAttr() && getCount() % getCombineAttr().getLeaves())
    return emitOpError("[C6] expects the leaves to divide ")
           << getCount() << " experts, got " << getCombineAttr().getLeaves();
  return checkShape(*this, "C5", "result columns", columnsOf(getResult().getType()), columnsOf(getInput().getType()));
}

/// [C3], [C4] of experts.
LogicalResult ExpertsOp::verifyWeightTypes(ArrayRef<RankedTensorType> types) {
  int64_t hidden = widthOf(getInput().getType());
  if (failed(checkShape(*this, "C3", "gate and up weights", types[0].getShape(), {getCount(), 2, getInner(), hidden})))
    return failure();
  return checkShape(*this, "C4", "down weights", types[1].getShape(), {getCount(), hidden, getInner()});
}

//===----------------------------------------------------------------------===//
// permutation, permute, grouped_linear, unpermute
//===----------------------------------------------------------------------===//

/// [C2], [C3] of permutation.
LogicalResult PermutationOp::verify() {
  if (failed(checkSorted(*this, "C3", "the experts", getExperts(), getPermutation().getType())))
    return failure();
  return checkRoutes(*this, "C2", getExperts(), Value(), getPermutation().getType().getTop());
}

/// [C1], [C2] of permute.
LogicalResult PermuteOp::verify() {
  if (failed(checkSorted(*this, "C1", "the input", getInput(), getPermutation().getType())) ||
      failed(checkSlots(*this, "the result", getResult(), getPermutation().getType())) ||
      failed(checkElement(*this, "C2", "the result", getResult().getType(), getInput().getType().getElementType())))
    return failure();
  return checkShape(*this, "C2", "result columns", columnsOf(getResult().getType()), columnsOf(getInput().getType()));
}

/// [C1], [C3], [C4] of grouped_linear.
LogicalResult GroupedLinearOp::verify() {
  PermutationType permutation = getPermutation().getType();
  if (failed(checkSlots(*this, "the input", getInput(), permutation)) ||
      failed(checkSlots(*this, "the result", getResult(), permutation)) ||
      failed(checkRank(*this, "C4", "an input", getInput().getType(), 2)))
    return failure();
  Value router = getRouterWeights();
  if (!router)
    return success();
  if (failed(checkSorted(*this, "C3", "router weights", router, permutation)) ||
      failed(checkElement(*this, "C3", "router weights", router.getType(), Float32Type::get(getContext()))))
    return failure();
  return checkShape(*this, "C3", "router weights' columns", columnsOf(router.getType()), permutation.getTop());
}

/// [C2] of grouped_linear.
LogicalResult GroupedLinearOp::verifyWeightTypes(ArrayRef<RankedTensorType> types) {
  SmallVector<int64_t> expected{getPermutation().getType().getExperts()};
  llvm::append_range(expected, columnsOf(getResult().getType()));
  expected.push_back(widthOf(getInput().getType()));
  return checkShape(*this, "C2", "a weight", types[0].getShape(), expected);
}

/// [C1] to [C4] of unpermute.
LogicalResult UnpermuteOp::verify() {
  PermutationType permutation = getPermutation().getType();
  if (failed(checkSlots(*this, "the input", getInput(), permutation)) ||
      failed(checkRows(*this, "C1", "the result", getResult().getType(), RowKind::Token)) ||
      failed(checkElement(*this, "C2", "the result", getResult().getType(), getInput().getType().getElementType())) ||
      failed(checkShape(*this, "C2", "result columns", columnsOf(getResult().getType()),
                        columnsOf(getInput().getType()))) ||
      failed(checkRows(*this, "C4", "the experts", getExperts().getType(), RowKind::Token)) ||
      failed(checkRoutes(*this, "C4", getExperts(), Value(), permutation.getTop())))
    return failure();
  if (getOrderAttr() && permutation.getExperts() % getOrderAttr().getLeaves())
    return emitOpError("[C3] expects the leaves to divide ")
           << permutation.getExperts() << " experts, got " << getOrderAttr().getLeaves();
  return success();
}

//===- MoeExchangeVerify.cpp - Verifiers of experts on several ranks ------===//
//
// Ids are those of MoeExchange.td. Bounds of counts are those of a step of any routes.
//
//===----------------------------------------------------------------------===//
#include "dialects/Moe/Moe.h"
#include "dialects/Nn/NnVerify.h"
#include "k2rt/placement.h"

using namespace mlir;
using namespace k2c;
using namespace k2c::moe;
using namespace k2c::nn;

/// i32 [rows, dims...].
static LogicalResult checkNumbers(Operation *op, StringRef id, StringRef what, Value value, ArrayRef<int64_t> dims) {
  if (failed(checkElement(op, id, what, value.getType(), IntegerType::get(op->getContext(), 32))))
    return failure();
  return checkShape(op, id, what, columnsOf(value.getType()), dims);
}

/// Subtrees are those of N5's tree, so it is the only order of sums.
static LogicalResult checkLeaves(Operation *op, moe::TreeAttr order, int64_t experts) {
  if (order && order.getLeaves() != k2rt_combine_leaves(experts))
    return op->emitOpError("[C3] expects the ")
           << k2rt_combine_leaves(experts) << " leaves of " << experts << " experts, got " << order.getLeaves();
  return success();
}

/// `messages` carry `row` and `top` choices each: [C4] of pack and unpack.
static LogicalResult checkMessages(Operation *op, Value messages, Value row, int64_t top) {
  auto type = cast<RankedTensorType>(row.getType());
  const int64_t bytes = k2rt_message_bytes(widthOf(type) * type.getElementTypeBitWidth() / 8, top);
  if (failed(checkElement(op, "C4", "a message", messages.getType(), IntegerType::get(op->getContext(), 8))))
    return failure();
  return checkShape(op, "C4", "a message", columnsOf(messages.getType()), bytes);
}

/// Counts of one exchange have the same members.
static LogicalResult checkCounts(Operation *op, StringRef id, Value counts, Value others) {
  if (counts.getType() == others.getType())
    return success();
  return op->emitOpError() << '[' << id << "] expects counts of the same members, got " << counts.getType() << " and "
                           << others.getType();
}

/// All ranks have a slot for each expert.
static LogicalResult checkSlots(Operation *op, StringRef id, int64_t slots, int64_t experts) {
  if (slots >= experts)
    return success();
  return op->emitOpError() << '[' << id << "] expects a slot for each of " << experts << " experts, got " << slots;
}

/// Rows that a rank plans for: its tokens, or what arrived.
static LogicalResult checkPlanned(Operation *op, StringRef what, Value value, Value planned) {
  RowsAttr rows = rowsOf(planned.getType());
  if (rows && (rows.getKind() == RowKind::Token || rows.getKind() == RowKind::Recv))
    return checkRows(op, "C1", what, value.getType(), rows);
  return op->emitOpError("[C1] expects rows of tokens or rows that arrived, got ") << rows;
}

/// [C1] to [C4] of locate.
LogicalResult LocateOp::verify() {
  const int64_t top = widthOf(getExperts().getType());
  if (failed(checkRows(*this, "C1", "experts", getExperts().getType(), RowKind::Token)) ||
      failed(checkRows(*this, "C1", "the result", getResult().getType(), RowKind::Token)) ||
      failed(checkNumbers(*this, "C2", "experts", getExperts(), top)) ||
      failed(checkNumbers(*this, "C2", "the result", getResult(), top)))
    return failure();
  if (failed(checkSlots(*this, "C3", getSlots(), getCount())))
    return failure();
  if (getHeld() < 1 || getSlots() % getHeld() != 0)
    return emitOpError("[C4] expects slots of a node that divide ") << getSlots() << " slots, got " << getHeld();
  return success();
}

/// [C1] to [C5] of route_plan.
LogicalResult RoutePlanOp::verify() {
  const int64_t top = widthOf(getChosen().getType());
  if (failed(checkPlanned(*this, "routes", getRoutes(), getChosen())) ||
      failed(checkNumbers(*this, "C2", "choices", getChosen(), top)) ||
      failed(checkNumbers(*this, "C3", "routes", getRoutes(), {3, top})))
    return failure();
  const bool isWorld = getWithin() == dist::Holder::World, isToParts = getTo() == dist::Holder::Part;
  const int64_t planned = (isToParts ? 1 : getSent().getType().getMembers()) * int64_t(getHeld());
  if (getTo() >= getWithin() || isToParts != (getWithin() == dist::Holder::Rank) ||
      (isWorld ? planned != int64_t(getSlots()) : planned > int64_t(getSlots())))
    return emitOpError("[C4] expects members of ")
           << getSlots() << " slots within " << stringifyHolder(getWithin()) << ", got "
           << getSent().getType().getMembers() << " of " << getHeld() << " to " << stringifyHolder(getTo());
  if (failed(checkSlots(*this, "C4", getSlots(), getCount())))
    return failure();
  return checkCounts(*this, "C5", getSent(), getReturned());
}

/// A row crosses to a member at most once, and comes back from it with at most one row for each choice there. Parts get
/// the same rows.
dist::CountBounds RoutePlanOp::getCountBounds(Value counts, LimitsAttr limits) {
  const int64_t rows = boundRows(rowsOf(getChosen().getType()), limits), top = widthOf(getChosen().getType());
  if (getTo() == dist::Holder::Part) {
    const int64_t choices = rows * std::min<int64_t>(top, getHeld());
    return counts == getSent() ? dist::CountBounds{rows, rows}
                               : dist::CountBounds{choices, choices * getSent().getType().getMembers()};
  }
  if (counts == getSent())
    return {rows, rows * std::min(top, getSent().getType().getMembers())};
  return {rows * std::min<int64_t>(top, getHeld()), rows * top};
}

/// [C1] to [C4] of pack.
LogicalResult PackOp::verify() {
  const int64_t top = widthOf(getWeights().getType());
  for (auto [what, value] : {std::pair{"weights", getWeights()}, {"routes", getRoutes()}})
    if (failed(checkPlanned(*this, what, value, getInput())))
      return failure();
  if (failed(checkRows(*this, "C1", "the result", getResult().getType(), RowKind::Message)) ||
      failed(checkElement(*this, "C2", "weights", getWeights().getType(), Float32Type::get(getContext()))) ||
      failed(checkNumbers(*this, "C3", "routes", getRoutes(), {3, top})))
    return failure();
  return checkMessages(*this, getResult(), getInput(), top);
}

/// [C1] to [C4] of unpack.
LogicalResult UnpackOp::verify() {
  const int64_t top = widthOf(getWeights().getType());
  if (failed(checkRows(*this, "C1", "the input", getInput().getType(), RowKind::Message)))
    return failure();
  const int64_t site = rowsOf(getInput().getType()).getSite();
  for (Value value : getResults())
    if (RowsAttr rows = rowsOf(value.getType()); rows.getKind() != RowKind::Recv || rows.getSite() != site)
      return emitOpError("[C1] expects rows that arrived at site ") << site << ", got " << rows;
  if (failed(checkNumbers(*this, "C2", "slots", getSlots(), top)) ||
      failed(checkElement(*this, "C3", "weights", getWeights().getType(), Float32Type::get(getContext()))))
    return failure();
  return checkMessages(*this, getInput(), getRows(), top);
}

/// [C1] to [C4] of return_plan.
LogicalResult ReturnPlanOp::verify() {
  if (failed(checkRows(*this, "C1", "slots", getChosen().getType(), RowKind::Recv)) ||
      failed(checkRows(*this, "C1", "sums", getSums().getType(), rowsOf(getChosen().getType()))) ||
      failed(checkNumbers(*this, "C2", "slots", getChosen(), widthOf(getChosen().getType()))) ||
      failed(checkNumbers(*this, "C2", "sums", getSums(), 2)))
    return failure();
  if (getHolder() == dist::Holder::World || getHeld() > getSlots())
    return emitOpError("[C4] expects a part, a rank or a node with some of ")
           << getSlots() << " slots, got " << stringifyHolder(getHolder()) << " with " << getHeld();
  return checkCounts(*this, "C3", getCame(), getBack());
}

/// A row that arrived goes back as at most one sum for each of its choices here; all may be of one member.
dist::CountBounds ReturnPlanOp::getCountBounds(Value, LimitsAttr limits) {
  const int64_t choices = std::min<int64_t>(widthOf(getChosen().getType()), getHeld());
  const int64_t sums = boundRows(rowsOf(getChosen().getType()), limits) * choices;
  return {sums, sums};
}

/// Who has subtrees whole, or has one more row of what others have.
static LogicalResult checkHolder(Operation *op, dist::Holder holder, dist::Holder first, dist::Holder second) {
  if (holder == first || holder == second)
    return success();
  return op->emitOpError("[C5] expects a ")
         << stringifyHolder(first) << " or a " << stringifyHolder(second) << ", got " << stringifyHolder(holder);
}

/// [C1] to [C5] of reduce_subtrees.
LogicalResult ReduceSubtreesOp::verify() {
  PermutationType permutation = getPermutation().getType();
  if (failed(checkRows(*this, "C1", "the input", getInput().getType(), permutation.getSlots())) ||
      failed(checkRows(*this, "C1", "choices", getChosen().getType(), permutation.getRows())) ||
      failed(checkRows(*this, "C1", "sums", getSums().getType(), permutation.getRows())) ||
      failed(checkRows(*this, "C1", "the result", getResult().getType(), RowKind::Subtree)) ||
      failed(checkElement(*this, "C2", "the result", getResult().getType(), getInput().getType().getElementType())) ||
      failed(checkShape(*this, "C2", "result columns", columnsOf(getResult().getType()),
                        columnsOf(getInput().getType()))) ||
      failed(checkLeaves(*this, getOrderAttr(), getCount())) ||
      failed(checkNumbers(*this, "C4", "choices", getChosen(), permutation.getTop())) ||
      failed(checkNumbers(*this, "C4", "sums", getSums(), 2)))
    return failure();
  return checkHolder(*this, getHolder(), dist::Holder::Rank, dist::Holder::Part);
}

/// [C1] to [C5] of merge_subtrees.
LogicalResult MergeSubtreesOp::verify() {
  const int64_t top = widthOf(getChosen().getType());
  const RowsAttr rows = rowsOf(getChosen().getType());
  if (failed(checkRows(*this, "C1", "the input", getInput().getType(), RowKind::Subtree)) ||
      failed(checkRows(*this, "C1", "choices", getChosen().getType(), RowKind::Recv)) ||
      failed(checkRows(*this, "C1", "routes", getRoutes().getType(), rows)) ||
      failed(checkRows(*this, "C1", "sums", getSums().getType(), rows)) ||
      failed(checkRows(*this, "C1", "the result", getResult().getType(), RowKind::Subtree)) ||
      failed(checkElement(*this, "C2", "the result", getResult().getType(), getInput().getType().getElementType())) ||
      failed(checkShape(*this, "C2", "result columns", columnsOf(getResult().getType()),
                        columnsOf(getInput().getType()))) ||
      failed(checkLeaves(*this, getOrderAttr(), getCount())) ||
      failed(checkNumbers(*this, "C4", "choices", getChosen(), top)) ||
      failed(checkNumbers(*this, "C4", "routes", getRoutes(), {3, top})) ||
      failed(checkNumbers(*this, "C4", "sums", getSums(), 2)))
    return failure();
  return checkHolder(*this, getHolder(), dist::Holder::Node, dist::Holder::Rank);
}

/// [C1] to [C4] of add_parts.
LogicalResult AddPartsOp::verify() {
  Type f32 = Float32Type::get(getContext());
  if (failed(checkRows(*this, "C1", "routes", getRoutes().getType(), RowKind::Recv)) ||
      failed(checkRows(*this, "C1", "router weights", getWeights().getType(), rowsOf(getRoutes().getType()))) ||
      failed(checkRows(*this, "C1", "the input", getInput().getType(), RowKind::Subtree)))
    return failure();
  const int64_t site = rowsOf(getInput().getType()).getSite();
  if (RowsAttr rows = rowsOf(getResult().getType()); rows.getKind() != RowKind::Subtree || rows.getSite() != site)
    return emitOpError("[C1] expects outputs of what came back at site ") << site << ", got " << rows;
  if (failed(checkElement(*this, "C2", "the input", getInput().getType(), f32)) ||
      failed(
          checkShape(*this, "C2", "result columns", columnsOf(getResult().getType()), columnsOf(getInput().getType()))))
    return failure();
  const int64_t members = getReturned().getType().getMembers();
  if (members < 2 || !llvm::isPowerOf2_64(members))
    return emitOpError("[C3] expects members that are a power of two, two or more, got ") << members;
  if (const int64_t leaves = getOrder() ? getOrder()->getLeaves() : 0; leaves < 1 || leaves % members != 0)
    return emitOpError("[C3] expects an order of leaves that ") << members << " members divide, got " << leaves;
  const int64_t top = widthOf(getWeights().getType());
  if (failed(checkNumbers(*this, "C4", "routes", getRoutes(), {3, top})))
    return failure();
  return checkElement(*this, "C4", "router weights", getWeights().getType(), f32);
}

/// [C1] to [C4] of combine.
LogicalResult CombineOp::verify() {
  if (failed(checkRows(*this, "C1", "the input", getInput().getType(), RowKind::Subtree)))
    return failure();
  for (auto [what, value] : {std::pair{"routes", getRoutes()}, {"choices", getExperts()}, {"the result", getResult()}})
    if (failed(checkRows(*this, "C1", what, value.getType(), RowKind::Token)))
      return failure();
  const int64_t top = widthOf(getExperts().getType());
  if (failed(checkElement(*this, "C2", "the result", getResult().getType(), getInput().getType().getElementType())) ||
      failed(checkShape(*this, "C2", "result columns", columnsOf(getResult().getType()),
                        columnsOf(getInput().getType()))) ||
      failed(checkLeaves(*this, getOrderAttr(), getCount())) ||
      failed(checkNumbers(*this, "C4", "choices", getExperts(), top)))
    return failure();
  return checkNumbers(*this, "C4", "routes", getRoutes(), {3, top});
}

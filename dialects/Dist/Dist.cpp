//===- Dist.cpp - The dist dialect: registration and verifiers ------------===//
//
// Ids are those of DistBase.td and DistOps.td.
//
//===----------------------------------------------------------------------===//
#include "dialects/Dist/Dist.h"
#include "dialects/Nn/NnVerify.h"
#include "dialects/VerifyAttributes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace k2c::dist;

#include "dialects/Dist/DistDialect.cpp.inc"
#include "dialects/Dist/DistEnums.cpp.inc"
#include "dialects/Dist/DistInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Dist/DistAttributes.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Dist/DistTypes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/Dist/DistOps.cpp.inc"

void DistDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Dist/DistAttributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Dist/DistTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Dist/DistOps.cpp.inc"
      >();
}

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

/// [C1] to [C3] of topology.
LogicalResult TopologyAttr::verify(EmitError emitError, StringRef name, int64_t ranks, int64_t nodes,
                                   ArrayRef<int64_t> numa) {
  if (ranks < 1)
    return emitError() << "'#dist.topology' [C1] expects at least one rank of '" << name << "', got " << ranks;
  for (int64_t cores : numa)
    if (cores < 1)
      return emitError() << "'#dist.topology' [C2] expects cores on every NUMA node of '" << name << "', got " << cores;
  if (nodes < 1 || ranks % nodes != 0)
    return emitError() << "'#dist.topology' [C3] expects nodes that divide the " << ranks << " ranks of '" << name
                       << "', got " << nodes;
  return success();
}

/// [C1] to [C7] of plan.
LogicalResult PlanAttr::verify(EmitError emitError, StringRef, int64_t expandedFrom, ArrayAttr without,
                               int64_t tileChoice, int64_t routeLimit, FloatAttr localityPenalty, int64_t halvesFrom,
                               DenseI64ArrayAttr stages) {
  if (expandedFrom < -1)
    return emitError() << "'#dist.plan' [C1] expects expanded_from >= -1, got " << expandedFrom;
  if (tileChoice < 0)
    return emitError() << "'#dist.plan' [C2] expects a tile_choice that is not negative, got " << tileChoice;
  for (Attribute pass : without ? without.getValue() : ArrayRef<Attribute>())
    if (!isa<StringAttr>(pass))
      return emitError() << "'#dist.plan' [C3] expects names of passes in without, got " << pass;
  if (routeLimit < 0)
    return emitError() << "'#dist.plan' [C4] expects a route_limit that is not negative, got " << routeLimit;
  if (const double penalty = localityPenalty ? localityPenalty.getValueAsDouble() : 1; !(penalty > 0 && penalty <= 1))
    return emitError() << "'#dist.plan' [C5] expects a locality_penalty above 0 and at most 1, got " << penalty;
  if (halvesFrom < 0)
    return emitError() << "'#dist.plan' [C6] expects halves_from that is not negative, got " << halvesFrom;
  const ArrayRef<int64_t> bounds = stages ? stages.asArrayRef() : ArrayRef<int64_t>();
  const bool ascends = std::adjacent_find(bounds.begin(), bounds.end(), std::greater_equal<>()) == bounds.end();
  if (stages && (bounds.size() < 3 || bounds.front() != 0 || !ascends))
    return emitError() << "'#dist.plan' [C7] expects two stages or more, the first from layer 0 and none empty, got "
                       << stages;
  return success();
}

LogicalResult DistDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  const bool isPlan = attribute.getName() == planAttrName;
  if (!isPlan && attribute.getName() != topologyAttrName)
    return refuseAttribute(op, attribute);
  const Attribute value = attribute.getValue();
  return expectAttribute(op, attribute, isa<ModuleOp>(op) && (isPlan ? isa<PlanAttr>(value) : isa<TopologyAttr>(value)),
                         "#" + attribute.getName().getValue() + " on a module");
}

/// [C1] of counts.
LogicalResult CountsType::verify(EmitError emitError, int64_t members) {
  if (members < 1)
    return emitError() << "'!dist.counts' [C1] expects members, got " << members;
  return success();
}

/// [C1] to [C5] of all_to_all.
LogicalResult AllToAllOp::verify() {
  if (getSite() < 0)
    return emitOpError("[C1] expects a site that is not negative, got ") << getSite();
  const int64_t quota = getQuota().value_or(0);
  if (quota < 0 || (quota > 0) == static_cast<bool>(getFrom()))
    return emitOpError("[C2] expects a positive quota or the counts of what comes, and not both, got a quota of ")
           << quota << (getFrom() ? " and counts" : " and none");
  if ((quota > 0) != static_cast<bool>(getCame()))
    return emitOpError("[C3] expects ") << (quota > 0 ? "counts of what came, got none"
                                                      : "no counts of what came, got some");
  if (getCame() && getCame().getType() != getTo().getType())
    return emitOpError("[C3] expects counts of what came of type ")
           << getTo().getType() << ", got " << getCame().getType();
  if (getFrom() && getFrom().getType() != getTo().getType())
    return emitOpError("[C5] expects counts of the same members, got ")
           << getTo().getType() << " and " << getFrom().getType();
  if (failed(k2c::nn::checkElement(*this, "C4", "the result", getResult().getType(),
                                   getInput().getType().getElementType())))
    return failure();
  return k2c::nn::checkShape(*this, "C4", "result columns", k2c::nn::columnsOf(getResult().getType()),
                             k2c::nn::columnsOf(getInput().getType()));
}

/// Each member may send the quota.
CountBounds AllToAllOp::getCountBounds(Value, k2c::nn::LimitsAttr) {
  const int64_t quota = getQuota().value_or(0);
  return {quota, quota * getTo().getType().getMembers()};
}

/// [`id`] what comes has `to` rows of the columns and elements of `input`, which has `from` rows.
static LogicalResult checkSlices(Operation *op, StringRef id, Value input, k2c::nn::RowKind from, Value result,
                                 k2c::nn::RowKind to) {
  using namespace k2c::nn;
  if (failed(checkRows(op, id, "the input", input.getType(), from)) ||
      failed(checkRows(op, id, "a result", result.getType(), to)) ||
      failed(
          checkElement(op, id, "a result", result.getType(), cast<RankedTensorType>(input.getType()).getElementType())))
    return failure();
  return checkShape(op, id, "result columns", columnsOf(result.getType()), columnsOf(input.getType()));
}

/// [C1], [C2] of gather_slices.
LogicalResult GatherSlicesOp::verify() {
  using k2c::nn::RowKind;
  if (getSite() < 0)
    return emitOpError("[C1] expects a site that is not negative, got ") << getSite();
  return checkSlices(*this, "C2", getInput(), RowKind::Token, getResult(), RowKind::Gathered);
}

/// [C1] to [C3] of scatter_slices.
LogicalResult ScatterSlicesOp::verify() {
  using k2c::nn::RowKind;
  if (getSite() < 0)
    return emitOpError("[C1] expects a site that is not negative, got ") << getSite();
  for (Value part : getParts())
    if (failed(checkSlices(*this, "C2", getInput(), RowKind::Gathered, part, RowKind::Token)))
      return failure();
  if (getParts().size() < 2)
    return emitOpError("[C3] expects two results or more, got ") << getParts().size();
  return success();
}

/// Rows of which each rank knows how many it has.
static LogicalResult checkOwnRows(Operation *op, StringRef what, Value rows) {
  using k2c::nn::RowKind;
  const k2c::nn::RowsAttr space = k2c::nn::rowsOf(rows.getType());
  if (space && llvm::is_contained({RowKind::Token, RowKind::Entering, RowKind::Output}, space.getKind()))
    return success();
  return op->emitOpError("[C1] expects ") << what << " of rows of a step, got " << space;
}

/// Counts of one exchange have the same members.
static LogicalResult checkMembers(Operation *op, Value counts, Value others) {
  if (counts.getType() == others.getType())
    return success();
  return op->emitOpError("[C2] expects counts of the same members, got ")
         << counts.getType() << " and " << others.getType();
}

/// [C1], [C2] of share_plan.
LogicalResult SharePlanOp::verify() {
  return failure(failed(checkOwnRows(*this, "an input", getInput())) ||
                 failed(checkMembers(*this, getSent(), getReturned())));
}

/// All members read the same rows of the input.
CountBounds SharePlanOp::getCountBounds(Value counts, k2c::nn::LimitsAttr limits) {
  const int64_t rows = k2c::nn::boundRows(k2c::nn::rowsOf(getInput().getType()), limits);
  return {rows, counts == getSent() ? rows : rows * getSent().getType().getMembers()};
}

/// [C1], [C2] of close_gaps.
LogicalResult CloseGapsOp::verify() {
  using k2c::nn::RowKind;
  if (failed(k2c::nn::checkRows(*this, "C1", "the input", getInput().getType(), RowKind::Message)))
    return failure();
  const int64_t site = k2c::nn::rowsOf(getInput().getType()).getSite();
  if (k2c::nn::RowsAttr rows = k2c::nn::rowsOf(getResult().getType());
      rows.getKind() != RowKind::Recv || rows.getSite() != site)
    return emitOpError("[C1] expects rows that arrived at site ") << site << ", got " << rows;
  if (failed(k2c::nn::checkElement(*this, "C2", "the result", getResult().getType(),
                                   getInput().getType().getElementType())))
    return failure();
  return k2c::nn::checkShape(*this, "C2", "result columns", k2c::nn::columnsOf(getResult().getType()),
                             k2c::nn::columnsOf(getInput().getType()));
}

/// [C1], [C2] of share_return.
LogicalResult ShareReturnOp::verify() {
  if (failed(k2c::nn::checkRows(*this, "C1", "the input", getInput().getType(), k2c::nn::RowKind::Recv)))
    return failure();
  return checkMembers(*this, getCame(), getBack());
}

/// All rows that arrived may be of one member.
CountBounds ShareReturnOp::getCountBounds(Value, k2c::nn::LimitsAttr limits) {
  const int64_t rows = k2c::nn::boundRows(k2c::nn::rowsOf(getInput().getType()), limits);
  return {rows, rows};
}

/// [C1], [C2] of join_columns.
LogicalResult JoinColumnsOp::verify() {
  if (failed(k2c::nn::checkRows(*this, "C1", "the input", getInput().getType(), k2c::nn::RowKind::Subtree)) ||
      failed(checkOwnRows(*this, "the result", getResult())) ||
      failed(k2c::nn::checkElement(*this, "C2", "the result", getResult().getType(),
                                   getInput().getType().getElementType())) ||
      failed(k2c::nn::checkRank(*this, "C2", "the input", getInput().getType(), 2)))
    return failure();
  return k2c::nn::checkShape(*this, "C2", "result columns", k2c::nn::columnsOf(getResult().getType()),
                             {k2c::nn::widthOf(getInput().getType()) * getReturned().getType().getMembers()});
}

/// [C1], [C2] of receive.
LogicalResult ReceiveOp::verify() {
  using k2c::nn::RowKind, k2c::nn::checkRows, k2c::nn::columnsOf;
  if (getSite() < 0)
    return emitOpError("[C1] expects a site that is not negative, got ") << getSite();
  if (failed(checkRows(*this, "C2", "the input", getInput().getType(), RowKind::Entering)) ||
      failed(checkRows(*this, "C2", "the result", getResult().getType(), RowKind::Token)) ||
      failed(k2c::nn::checkElement(*this, "C2", "the result", getResult().getType(),
                                   getInput().getType().getElementType())))
    return failure();
  return k2c::nn::checkShape(*this, "C2", "result columns", columnsOf(getResult().getType()),
                             columnsOf(getInput().getType()));
}

/// [C1], [C2] of send.
LogicalResult SendOp::verify() {
  if (const int64_t least = std::min(getSite(), getTo()); least < 0)
    return emitOpError("[C1] expects sites that are not negative, got ") << least;
  return k2c::nn::checkRows(*this, "C2", "the input", getInput().getType(), k2c::nn::RowKind::Token);
}

std::optional<int64_t> k2c::dist::siteOf(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<int64_t>>(op)
      .Case<AllToAllOp, GatherSlicesOp, ScatterSlicesOp, ReceiveOp, SendOp>(
          [](auto site) { return int64_t(site.getSite()); })
      .Default(std::nullopt);
}

int64_t k2c::dist::countSites(ModuleOp module) {
  int64_t sites = 0;
  module.walk([&](Operation *op) { sites += siteOf(op).has_value(); });
  return sites;
}

LogicalResult k2c::dist::checkSites(ModuleOp module, StringRef who) {
  llvm::MapVector<int64_t, Operation *> sites;
  WalkResult result = module.walk([&](Operation *op) -> WalkResult {
    const std::optional<int64_t> site = siteOf(op);
    if (!site || sites.insert({*site, op}).second)
      return success();
    return op->emitError() << who << ": a second op is site " << *site << "; give it a number of its own";
  });
  if (result.wasInterrupted())
    return failure();
  for (auto [site, op] : sites)
    if (site >= static_cast<int64_t>(sites.size()))
      return op->emitError() << who << ": site " << site << " is one of " << sites.size()
                             << "; number sites from 0 without gaps";
  return success();
}

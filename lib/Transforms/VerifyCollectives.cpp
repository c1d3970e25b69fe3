//===- VerifyCollectives.cpp - Ranks agree on what they exchange ----------===//
//
// A rank sends what a plan counts, and the others receive what plans of their own count. That both are equal follows
// from where the counts come from: all ranks run this program on the same placement, so it is enough that the program
// derives both from one routing.
//
//   %s = moe.locate %e                                      L
//   %routes, %sent, %returned = moe.route_plan %s           P: of L, or of what came to another dispatch
//   %m = moe.pack %x, %w, %routes                           what goes is packed by P
//   %in, %came = dist.all_to_all %m to %sent                D: by quota
//   %y, %c, %v = moe.unpack %in, %came                      what came to D
//   %sums, %back = moe.return_plan %c, %came                R: of the rows of D, which P has sent
//   %u = moe.reduce_subtrees %d, %p, %c, %sums              what goes back is laid out by R
//   %b = dist.all_to_all %u to %back from %returned         R says what goes, P what comes
//   %r = moe.combine %b, %routes, %e                        read by P
//
// In two hops the rows of D are sent on by a plan of their own, and moe.merge_subtrees lays out what came back of that
// for the way back of D. So it is with rows that go to parts of experts, but that moe.add_parts makes outputs of what
// came back first. Who plans within what, and to whom, is an attribute, and makes the group that a site crosses.
//
// In the scheduled form the same ops are in kernels: a value is followed through the calls to the op that makes it. How
// the ops count is their own affair (CountsOp, k2rt/placement.h).
//
//===----------------------------------------------------------------------===//
#include "VerifyCollectives.h"
#include "PlannedDivision.h"
#include "UniformControl.h"
#include "VerifyArrivals.h"
#include "VerifyParts.h"
#include "VerifyShared.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Kern/Kern.h"
#include "dialects/Moe/Moe.h"
#include "dialects/Nn/NnVerify.h"
#include "k2c/Transforms/PlanAttr.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace k2c {

namespace {

/// What came back at a site: by which plan, of a sum over so many experts in this order.
struct Returned {
  Run<moe::RoutePlanOp> plan;
  int64_t experts;
  moe::TreeAttr order;
};

class Collectives : Provenance {
public:
  Collectives(ModuleOp module, StringRef who)
      : Provenance(module, who), module(module), limits(nn::limitsOf(module)),
        topology(module->getAttrOfType<dist::TopologyAttr>(dist::DistDialect::topologyAttrName)),
        stage(stageRanksOf(module)) {}

  LogicalResult verify();

private:
  using Provenance::expectSame;
  LogicalResult expectSame(Operation *at, const PlannedDivision &division, const PlannedDivision &expected);
  LogicalResult expectCapacity(Operation *at, StringRef what, int64_t capacity, int64_t needed);
  LogicalResult verifySite(dist::AllToAllOp op);
  LogicalResult verifyGroup(dist::AllToAllOp op);
  LogicalResult verifyDispatch(dist::AllToAllOp op);
  LogicalResult verifyChoices(Run<moe::RoutePlanOp> plan, dist::Axis axis);
  LogicalResult verifyReturn(dist::AllToAllOp op);
  LogicalResult verifyCapacities(dist::AllToAllOp op);
  LogicalResult verifyReturnPlan(dist::AllToAllOp op, Run<moe::RoutePlanOp> plan, Run<moe::ReturnPlanOp> back);
  template <class Op>
  LogicalResult verifyLayout(Run<Op> sums, int64_t held, dist::Holder holder, Run<moe::RoutePlanOp> plan,
                             Run<moe::ReturnPlanOp> back);
  LogicalResult verifyReduced(Run<moe::ReduceSubtreesOp> sums, Run<moe::RoutePlanOp> plan, Run<moe::ReturnPlanOp> back);
  LogicalResult verifyMerged(Run<moe::MergeSubtreesOp> sums, Run<moe::RoutePlanOp> plan, Run<moe::ReturnPlanOp> back);
  template <class Op> LogicalResult verifyOrder(Run<Op> sums, Returned of);
  LogicalResult verifyUnpack(Run<moe::UnpackOp> unpack);
  LogicalResult verifyCombine(Run<moe::CombineOp> combine);
  FailureOr<Returned> returnedAt(Operation *at, dist::AllToAllOp site);
  dist::CountBounds boundsOf(const Made &counts) {
    return counts.value.getDefiningOp<dist::CountsOp>().getCountBounds(counts.value, limits);
  }
  int64_t rowsIn(Value rows) { return nn::boundRows(nn::rowsOf(rows.getType()), limits); }

  ModuleOp module;
  nn::LimitsAttr limits;
  dist::TopologyAttr topology;
  StageRanks stage;
  llvm::DenseMap<Operation *, Returned> returns; ///< sites at which rows come back
};

LogicalResult Collectives::expectSame(Operation *at, const PlannedDivision &division, const PlannedDivision &expected) {
  if (division == expected)
    return success();
  return refuse(at) << "the sides of the exchange divide " << division.text() << " and " << expected.text()
                    << "; plan both alike";
}

LogicalResult Collectives::expectCapacity(Operation *at, StringRef what, int64_t capacity, int64_t needed) {
  if (capacity >= needed)
    return success();
  return refuse(at) << what << " has a capacity of " << capacity << " rows, and a step may bring " << needed
                    << "; bound it by nn.limits, as shard-experts does";
}

/// A group has as many members as the topology has of what it joins.
LogicalResult Collectives::verifyGroup(dist::AllToAllOp op) {
  if (!topology)
    return refuse(op) << "ranks exchange rows, and the module has no dist.topology; run attach-plan first";
  const int64_t wanted = stage.membersOf(op.getAxis());
  if (const int64_t members = op.getTo().getType().getMembers(); members != wanted)
    return refuse(op) << "the exchange is of " << members << " members, and group " << stringifyAxis(op.getAxis())
                      << " of '" << topology.getName() << "' has " << wanted << "; plan and topology have to agree";
  return success();
}

/// Its group, and the row spaces by which launches find its number.
LogicalResult Collectives::verifySite(dist::AllToAllOp op) {
  if (failed(verifyGroup(op)))
    return failure();
  if (sharesRows(op, origins))
    return failure(failed(verifyShared(op, origins, who)) || failed(verifyCapacities(op)));
  const nn::RowsAttr in = nn::rowsOf(op.getInput().getType()), out = nn::rowsOf(op.getResult().getType());
  if (in.getSite() != op.getSite() || out.getSite() != op.getSite() || in.getKind() != out.getKind())
    return refuse(op) << "site " << op.getSite() << " is given " << in << " and makes " << out
                      << "; rows of a site have one row space, of its number";
  return failure(failed(op.getFrom() ? verifyReturn(op) : verifyDispatch(op)) || failed(verifyCapacities(op)));
}

/// To the experts: by quota, as nobody knows what comes.
LogicalResult Collectives::verifyDispatch(dist::AllToAllOp op) {
  auto plan = expect(op, "counts of what goes by quota", madeBy(op.getTo(), {}), "sent", &moe::RoutePlanOp::getSent);
  if (failed(plan) || failed(verifyChoices(*plan, op.getAxis())))
    return failure();
  auto pack = expect(op, "rows that go by quota", madeBy(op.getInput(), {}), "result", &moe::PackOp::getResult);
  return failure(failed(pack) ||
                 failed(expectSame(op, "routes of the packed rows and of their counts",
                                   madeBy(pack->op.getRoutes(), pack->call), {plan->op.getRoutes(), plan->call})));
}

/// The choices of `plan` are slots of what it plans within, and its members those of `axis`.
LogicalResult Collectives::verifyChoices(Run<moe::RoutePlanOp> plan, dist::Axis axis) {
  using dist::Axis, dist::Holder;
  Operation *place = plan.place();
  const bool isWorld = plan.op.getWithin() == Holder::World, isToParts = plan.op.getTo() == Holder::Part;
  const Axis ofWorld = plan.op.getTo() == Holder::Rank ? Axis::Ep : Axis::Rail;
  if (axis != (isToParts ? Axis::Etp : isWorld ? ofWorld : Axis::Node))
    return refuse(place) << "plans within " << stringifyHolder(plan.op.getWithin()) << " to "
                         << stringifyHolder(plan.op.getTo()) << ", and its rows cross group " << stringifyAxis(axis)
                         << "; ranks of the world are ep, its nodes rail, ranks of a node node, parts of a rank etp";
  const Made chosen = madeBy(plan.op.getChosen(), plan.call), layer = madeBy(plan.op.getLayer(), plan.call);
  PlannedDivision own = divisionOf(plan.op), from = own;
  if (isWorld) {
    auto located = expect(place, "choices within the world", chosen, "result", &moe::LocateOp::getResult);
    if (failed(located))
      return failure();
    if (located->op.getHeld() * stage.nodes != located->op.getSlots())
      return refuse(place) << "experts are located on nodes of " << located->op.getHeld() << " of "
                           << located->op.getSlots() << " slots, and '" << topology.getName() << "' has " << stage.nodes
                           << "; plan and topology have to agree";
    from.experts = located->op.getCount(), from.slots = located->op.getSlots(), from.among = located->op.getAmong();
    return failure(failed(expectSame(place, own, from)) ||
                   failed(expectSame(place, "layers of the plan and of its choices", layer,
                                     madeBy(located->op.getLayer(), located->call))));
  }
  auto unpack = expect(place, isToParts ? "choices within a rank" : "choices within a node", chosen, "slots",
                       &moe::UnpackOp::getSlots);
  if (failed(unpack))
    return failure();
  auto dispatch = expect(unpack->place(), "messages", madeBy(unpack->op.getInput(), unpack->call), "result",
                         &dist::AllToAllOp::getResult);
  if (failed(dispatch))
    return failure();
  auto before = expect(dispatch->op, "counts of what goes by quota", madeBy(dispatch->op.getTo(), {}), "sent",
                       &moe::RoutePlanOp::getSent);
  if (failed(before))
    return failure();
  from = divisionOf(before->op);
  PlannedDivision whole = own; // what the members are of
  whole.held = own.held * (isToParts ? 1 : plan.op.getSent().getType().getMembers());
  whole.member = plan.op.getWithin();
  return failure(failed(expectSame(place, whole, from)) ||
                 failed(expectSame(place, "layers of the plan and of its choices", layer,
                                   madeBy(before->op.getLayer(), before->call))));
}

/// Back to the tokens: both sides count.
LogicalResult Collectives::verifyReturn(dist::AllToAllOp op) {
  auto plan =
      expect(op, "counts of what comes back", madeBy(op.getFrom(), {}), "returned", &moe::RoutePlanOp::getReturned);
  if (failed(plan))
    return failure();
  auto back = expect(op, "counts of what goes back", madeBy(op.getTo(), {}), "back", &moe::ReturnPlanOp::getBack);
  if (failed(back))
    return failure();
  if (failed(verifyReturnPlan(op, *plan, *back)))
    return failure();
  const Made sums = madeBy(op.getInput(), {});
  if (auto merged = dyn_cast_or_null<moe::MergeSubtreesOp>(sums.op())) {
    returns.insert({op, {*plan, static_cast<int64_t>(merged.getCount()), merged.getOrderAttr()}});
    return verifyMerged({merged, sums.call}, *plan, *back);
  }
  auto reduced = expect(op, "rows that go back", sums, "result", &moe::ReduceSubtreesOp::getResult);
  if (failed(reduced))
    return failure();
  returns.insert({op, {*plan, static_cast<int64_t>(reduced->op.getCount()), reduced->op.getOrderAttr()}});
  return verifyReduced(*reduced, *plan, *back);
}

/// Buffers of `op`, whose counts are those of plans.
LogicalResult Collectives::verifyCapacities(dist::AllToAllOp op) {
  const dist::CountBounds sent = boundsOf(madeBy(op.getTo(), {}));
  const dist::CountBounds came = boundsOf(op.getFrom() ? madeBy(op.getFrom(), {}) : Made{op.getCame(), {}});
  return failure(failed(expectCapacity(op, "the quota", op.getQuota().value_or(sent.one), sent.one)) ||
                 failed(expectCapacity(op, "the input", rowsIn(op.getInput()), sent.all)) ||
                 failed(expectCapacity(op, "the result", rowsIn(op.getResult()), came.all)));
}

/// `back` counts the choices of the rows that `plan` has sent.
LogicalResult Collectives::verifyReturnPlan(dist::AllToAllOp op, Run<moe::RoutePlanOp> plan,
                                            Run<moe::ReturnPlanOp> back) {
  const Made came = madeBy(back.op.getCame(), back.call);
  auto dispatch = expect(back.place(), "counts of rows to return", came, "came", &dist::AllToAllOp::getCame);
  if (failed(dispatch))
    return failure();
  if (op.getAxis() != dispatch->op.getAxis())
    return refuse(op) << "rows go back over group " << stringifyAxis(op.getAxis()) << ", and have come over group "
                      << stringifyAxis(dispatch->op.getAxis()) << "; let them go back as they came";
  auto unpack = expect(back.place(), "slots of rows to return", madeBy(back.op.getChosen(), back.call), "slots",
                       &moe::UnpackOp::getSlots);
  if (failed(unpack))
    return failure();
  const PlannedDivision counted{static_cast<int64_t>(back.op.getCount()),
                                static_cast<int64_t>(back.op.getSlots()),
                                static_cast<int64_t>(back.op.getHeld()),
                                nn::widthOf(back.op.getChosen().getType()),
                                back.op.getHolder(),
                                back.op.getAmong()};
  return failure(failed(expectSame(op, "counts of rows to return and of rows that were sent",
                                   madeBy(dispatch->op.getTo(), {}), {plan.op.getSent(), plan.call})) ||
                 failed(expectSame(back.place(), "counts and slots of rows to return",
                                   madeBy(unpack->op.getCame(), unpack->call), came)) ||
                 failed(expectSame(back.place(), counted, divisionOf(plan.op))) ||
                 failed(expectSame(back.place(), "layers of the plans", madeBy(back.op.getLayer(), back.call),
                                   madeBy(plan.op.getLayer(), plan.call))));
}

/// The rows of `sums` lie as `back` counts them, and are sums of the experts that `plan` has on a member, `holder` of
/// `held` slots.
template <class Op>
LogicalResult Collectives::verifyLayout(Run<Op> sums, int64_t held, dist::Holder holder, Run<moe::RoutePlanOp> plan,
                                        Run<moe::ReturnPlanOp> back) {
  Operation *place = sums.place();
  const PlannedDivision division{static_cast<int64_t>(sums.op.getCount()),
                                 static_cast<int64_t>(sums.op.getSlots()),
                                 held,
                                 nn::widthOf(sums.op.getChosen().getType()),
                                 holder,
                                 sums.op.getAmong()};
  return failure(failed(expectSame(place, "places of the sums and of their counts",
                                   madeBy(sums.op.getSums(), sums.call), {back.op.getSums(), back.call})) ||
                 failed(expectSame(place, "choices of the sums and of their counts",
                                   madeBy(sums.op.getChosen(), sums.call), madeBy(back.op.getChosen(), back.call))) ||
                 failed(expectSame(place, division, divisionOf(plan.op))) ||
                 failed(expectSame(place, "layers of the sums and of the plan", madeBy(sums.op.getLayer(), sums.call),
                                   madeBy(plan.op.getLayer(), plan.call))));
}

LogicalResult Collectives::verifyReduced(Run<moe::ReduceSubtreesOp> sums, Run<moe::RoutePlanOp> plan,
                                         Run<moe::ReturnPlanOp> back) {
  auto permutation = expect(sums.place(), "slots of the sums", madeBy(sums.op.getPermutation(), sums.call),
                            "permutation", &moe::PermutationOp::getPermutation);
  if (failed(permutation))
    return failure();
  const int64_t held = permutation->op.getPermutation().getType().getExperts();
  return failure(failed(expectSame(sums.place(), "choices of the permutation and of the counts",
                                   madeBy(permutation->op.getExperts(), permutation->call),
                                   madeBy(back.op.getChosen(), back.call))) ||
                 failed(verifyLayout(sums, held, sums.op.getHolder(), plan, back)));
}

/// What is added up has come back for the same rows, by the routes on which they were sent on.
LogicalResult Collectives::verifyMerged(Run<moe::MergeSubtreesOp> sums, Run<moe::RoutePlanOp> plan,
                                        Run<moe::ReturnPlanOp> back) {
  Operation *place = sums.place();
  const Made merged = madeBy(sums.op.getInput(), sums.call);
  auto added = dyn_cast_or_null<moe::AddPartsOp>(merged.op());
  const Made returned = added ? madeBy(added.getInput(), merged.call) : merged;
  auto site = expect(place, "sums to merge", returned, "result", &dist::AllToAllOp::getResult);
  if (failed(site))
    return failure();
  FailureOr<Returned> found = returnedAt(place, site->op);
  if (failed(found))
    return failure();
  Returned of = *found;
  if (static_cast<bool>(added) != (of.plan.op.getTo() == dist::Holder::Part))
    return refuse(place) << "merges what came back at site " << site->op.getSite() << " by a plan to "
                         << stringifyHolder(of.plan.op.getTo()) << (added ? ", and adds" : ", and does not add")
                         << " it as parts; moe.add_parts makes outputs of parts, and of nothing else";
  if (added && (failed(verifyAdded({added, merged.call}, site->op, of.plan, *this)) ||
                failed(expectCapacity(place, "what parts make together", rowsIn(added.getResult()),
                                      boundsOf({of.plan.op.getReturned(), of.plan.call}).one))))
    return failure();
  return failure(
      failed(verifyOrder(sums, of)) ||
      failed(expectSame(place, "routes of what came back and of its counts", madeBy(sums.op.getRoutes(), sums.call),
                        {of.plan.op.getRoutes(), of.plan.call})) ||
      failed(expectSame(place, "choices of what came back and of its counts", madeBy(sums.op.getChosen(), sums.call),
                        madeBy(of.plan.op.getChosen(), of.plan.call))) ||
      failed(verifyLayout(sums, sums.op.getHeld(), sums.op.getHolder(), plan, back)));
}

/// Sums of subtrees come back before they are read.
FailureOr<Returned> Collectives::returnedAt(Operation *at, dist::AllToAllOp site) {
  if (auto found = returns.find(site); found != returns.end())
    return found->second;
  return refuse(at) << "adds what arrived at site " << site.getSite()
                    << ", where no sums of experts come back; exchange rows as shard-experts does";
}

/// A sum of experts has one tree, whoever adds a part of it.
template <class Op> LogicalResult Collectives::verifyOrder(Run<Op> sums, Returned of) {
  if (int64_t(sums.op.getCount()) == of.experts && sums.op.getOrderAttr() == of.order)
    return success();
  return refuse(sums.place()) << "adds sums of " << sums.op.getCount() << " experts in order " << sums.op.getOrderAttr()
                              << ", and they were made of " << of.experts << " in order " << of.order
                              << "; a sum of experts has one tree";
}

/// What came is read where it lies, by how much of it came.
LogicalResult Collectives::verifyUnpack(Run<moe::UnpackOp> unpack) {
  auto dispatch = expect(unpack.place(), "messages", madeBy(unpack.op.getInput(), unpack.call), "result",
                         &dist::AllToAllOp::getResult);
  if (failed(dispatch) || failed(expectSame(unpack.place(), "counts and rows of messages",
                                            madeBy(unpack.op.getCame(), unpack.call), {dispatch->op.getCame(), {}})))
    return failure();
  return expectCapacity(unpack.place(), "what arrived", rowsIn(unpack.op.getRows()),
                        boundsOf({dispatch->op.getCame(), {}}).all);
}

/// What came back is read by the routes for which it was sent.
LogicalResult Collectives::verifyCombine(Run<moe::CombineOp> combine) {
  Operation *place = combine.place();
  auto site = expect(place, "sums of experts", madeBy(combine.op.getInput(), combine.call), "result",
                     &dist::AllToAllOp::getResult);
  if (failed(site))
    return failure();
  FailureOr<Returned> found = returnedAt(place, site->op);
  if (failed(found))
    return failure();
  Returned of = *found;
  auto located = expect(place, "choices of the plan", madeBy(of.plan.op.getChosen(), of.plan.call), "result",
                        &moe::LocateOp::getResult);
  return failure(
      failed(located) || failed(verifyOrder(combine, of)) ||
      failed(expectSame(place, "routes of what came back and of its counts",
                        madeBy(combine.op.getRoutes(), combine.call), {of.plan.op.getRoutes(), of.plan.call})) ||
      failed(expectSame(place, "choices of what came back and of its counts",
                        madeBy(combine.op.getExperts(), combine.call),
                        madeBy(located->op.getExperts(), located->call))));
}

LogicalResult Collectives::verify() {
  auto isSite = [](Operation *op) { return dist::siteOf(op).has_value(); };
  if (failed(dist::checkSites(module, who)) || failed(verifyUniformControl(module, isSite, who)))
    return failure();
  auto check = [&](Operation *op, kern::CallOp call) -> LogicalResult {
    if (auto site = dyn_cast<dist::AllToAllOp>(op))
      return verifySite(site);
    if (auto unpack = dyn_cast<moe::UnpackOp>(op))
      return verifyUnpack({unpack, call});
    if (auto combine = dyn_cast<moe::CombineOp>(op))
      return verifyCombine({combine, call});
    if (auto gaps = dyn_cast<dist::CloseGapsOp>(op))
      return verifyGaps({gaps, call}, origins, who);
    if (auto joined = dyn_cast<dist::JoinColumnsOp>(op))
      return verifyJoined({joined, call}, origins, who);
    return success();
  };
  return failure(failed(origins.forEach(check)) || failed(verifyArrivals(origins, who)));
}

} // namespace

LogicalResult verifyCollectives(ModuleOp module, StringRef who) { return Collectives(module, who).verify(); }

} // namespace k2c

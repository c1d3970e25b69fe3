//===- VerifyParts.cpp - Parts of what experts make -----------------------===//
//
//   %y, %c, %v = moe.unpack %in, %came                       U: rows, their choices and router weights
//   %routes, %sent, %returned = moe.route_plan %c            P: of U, within a rank to part
//   ..                                                       what has come back by P
//   %d = moe.add_parts %parts, %returned, %routes weighted %v
//
// What has come back is of who has a part of each expert, and of nothing else:
//
//   %p = moe.permutation %c1                                 of rows that came over etp
//   %g = moe.grouped_linear %y1, %p, @gu[%l]                 @gu has parts along gate and up
//   %a = nn.gated_act %g                                     nothing else reads %g
//   %d = moe.grouped_linear %a, %p, @down[%l]                @down has them along the contraction; not weighted
//   %u = moe.reduce_subtrees %d, .. by part                  nothing else reads %d
//
//===----------------------------------------------------------------------===//
#include "VerifyParts.h"

using namespace mlir;

namespace k2c {

/// What goes back to who adds it are outputs of a part of each expert, sorted as its rows are.
static LogicalResult verifyOutputs(Run<moe::AddPartsOp> added, dist::AllToAllOp site, Provenance &values) {
  auto sums = values.expect(site, "parts that go back", values.madeBy(site.getInput(), {}), "result",
                            &moe::ReduceSubtreesOp::getResult);
  if (failed(sums))
    return failure();
  auto down = values.expect(sums->place(), "parts of outputs", values.madeBy(sums->op.getInput(), sums->call), "result",
                            &moe::GroupedLinearOp::getResult);
  if (failed(down) || failed(values.expectSame(sums->place(), "slots of the parts and of their sums",
                                               values.madeBy(down->op.getPermutation(), down->call),
                                               values.madeBy(sums->op.getPermutation(), sums->call))))
    return failure();
  const int64_t members = added.op.getReturned().getType().getMembers(), all = added.op.getOrder()->getLeaves();
  if (const int64_t own = down->op.getOrder() ? down->op.getOrder()->getLeaves() : 1; own * members != all)
    return values.refuse(added.place()) << "adds " << members << " parts of " << own << (own == 1 ? " leaf" : " leaves")
                                        << " each as a sum of " << all << "; a part has the leaves of its columns";
  return success();
}

LogicalResult verifyAdded(Run<moe::AddPartsOp> added, dist::AllToAllOp site, Run<moe::RoutePlanOp> plan,
                          Provenance &values) {
  const Made weights = values.madeBy(added.op.getWeights(), added.call);
  auto unpack = values.expect(added.place(), "router weights of parts", weights, "weights", &moe::UnpackOp::getWeights);
  auto expectSame = [&](StringRef what, Value value, const Made &expected) {
    return values.expectSame(added.place(), what, values.madeBy(value, added.call), expected);
  };
  return failure(
      failed(unpack) ||
      failed(values.expectSame(added.place(), "choices and router weights of parts",
                               {unpack->op.getSlots(), unpack->call}, values.madeBy(plan.op.getChosen(), plan.call))) ||
      failed(
          expectSame("routes of parts and of their counts", added.op.getRoutes(), {plan.op.getRoutes(), plan.call})) ||
      failed(expectSame("counts of parts and of what comes back", added.op.getReturned(),
                        {plan.op.getReturned(), plan.call})) ||
      failed(verifyOutputs(added, site, values)));
}

/// The rows of `op` went to all parts of their experts.
static bool areOfAllParts(moe::GroupedLinearOp op) {
  auto permutation = op.getPermutation().getDefiningOp<moe::PermutationOp>();
  auto unpack = permutation ? permutation.getExperts().getDefiningOp<moe::UnpackOp>() : nullptr;
  auto site = unpack ? unpack.getInput().getDefiningOp<dist::AllToAllOp>() : nullptr;
  return site && site.getAxis() == dist::Axis::Etp;
}

/// Whether `op` contracts over columns of gate and up that a linear made of the same slots.
static bool readsGateAndUp(moe::GroupedLinearOp op) {
  auto act = op.getInput().getDefiningOp<nn::GatedActOp>();
  auto up = act ? act.getInput().getDefiningOp<moe::GroupedLinearOp>() : nullptr;
  return up && up.getPermutation() == op.getPermutation();
}

LogicalResult verifyGrouped(moe::GroupedLinearOp op, nn::WeightsOp family, int64_t parts, StringRef who) {
  auto refuse = [&](Operation *at) {
    return at->emitError() << who << ": '" << at->getName() << "' of @" << family.getSymName() << ": ";
  };
  const int64_t own = family.getParts().value_or(1), last = family.getTensorType().getRank() - 1;
  if (own != parts || areOfAllParts(op) != (parts > 1))
    return refuse(op) << "weights have " << own << (own == 1 ? " part" : " parts") << ", its rows "
                      << (areOfAllParts(op) ? "went" : "did not go")
                      << " to all parts, and the plan's layout has etp=" << parts
                      << "; divide experts as shard-experts does";
  if (parts == 1)
    return success();
  const bool isPartial = int64_t(*family.getAlong()) == last;
  if (isPartial && !readsGateAndUp(op))
    return refuse(op) << "it reads no gated product of the same part; gate what a linear makes of the same slots, of "
                         "weights in parts along gate and up";
  if (isPartial && op.getRouterWeights())
    return refuse(op) << "it weights a part of a sum; let moe.add_parts weight all of it";
  for (Operation *reader : op->getUsers()) {
    auto sums = dyn_cast<moe::ReduceSubtreesOp>(reader);
    if (isPartial ? !sums || sums.getHolder() != dist::Holder::Part : !isa<nn::GatedActOp>(reader))
      return refuse(reader) << "it reads what a rank has of an expert's "
                            << (isPartial ? "output; return it to who adds parts"
                                          : "gate and up; gate it, for the same part of the down projection");
  }
  return success();
}

} // namespace k2c

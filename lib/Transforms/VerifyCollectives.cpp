//===- VerifyCollectives.cpp - Ranks agree on what they exchange ----------===//
//
// A rank sends what a plan counts, and the others receive what plans of their own count. That both are equal follows
// from where the counts come from: all ranks run this program on the same placement, so it is enough that the program
// derives both from one routing.
//
//   %routes, %sent, %returned = moe.route_plan %e          P
//   %m = moe.pack %x, %w, %routes                          what goes is packed by P
//   %in, %came = dist.all_to_all %m to %sent               D: by quota
//   %y, %c, %v = moe.unpack %in, %came                     what came to D
//   %sums, %back = moe.return_plan %c, %came               R: of the rows of D, which P has sent
//   %u = moe.reduce_subtrees %d, %p, %c, %sums             what goes back is laid out by R
//   %b = dist.all_to_all %u to %back from %returned        R says what goes, P what comes
//   %r = moe.combine %b, %routes, %e                       read by P
//
// In the scheduled form the same ops are in kernels: a value is followed through the calls to the op that makes it, and
// an op is looked at once for each call. How the ops count is their own affair (CountsOp, k2rt/placement.h).
//
//===----------------------------------------------------------------------===//
#include "VerifyCollectives.h"
#include "UniformControl.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Kern/Kern.h"
#include "dialects/Moe/Moe.h"
#include "dialects/Nn/NnVerify.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace k2c {

namespace {

/// A value where it is made: in the kernel that `call` runs, or outside of kernels.
struct Made {
  Value value;
  kern::CallOp call;
  bool operator==(const Made &other) const { return value == other.value && call == other.call; }
};

/// Likewise an op.
template <class Op> struct Run {
  Op op;
  kern::CallOp call;
  Operation *place() { return call ? call.getOperation() : op.getOperation(); }
};

/// What a plan divides, and how.
struct Division {
  int64_t experts, slots, top;
  nn::IndicesAttr among;
  bool operator==(const Division &other) const {
    return std::tie(experts, slots, top, among) == std::tie(other.experts, other.slots, other.top, other.among);
  }
};

class Collectives {
public:
  Collectives(ModuleOp module, StringRef who)
      : module(module), who(who), symbols(module), limits(nn::limitsOf(module)),
        topology(module->getAttrOfType<dist::TopologyAttr>(dist::DistDialect::topologyAttrName)) {}

  LogicalResult verify();

private:
  using Visit = llvm::function_ref<LogicalResult(Operation *, kern::CallOp)>;
  LogicalResult forEach(Visit visit);
  Made madeBy(Value value, kern::CallOp call);
  template <class Op, class Result>
  FailureOr<Run<Op>> expect(Operation *at, StringRef what, const Made &made, StringRef name, Result (Op::*result)());
  LogicalResult expectSame(Operation *at, StringRef what, const Made &made, const Made &expected);
  LogicalResult expectSame(Operation *at, const Division &division, const Division &expected);
  LogicalResult expectCapacity(Operation *at, StringRef what, int64_t capacity, int64_t needed);
  LogicalResult verifySite(dist::AllToAllOp op);
  LogicalResult verifyDispatch(dist::AllToAllOp op);
  LogicalResult verifyReturn(dist::AllToAllOp op);
  LogicalResult verifyCapacities(dist::AllToAllOp op);
  LogicalResult verifyReturnPlan(dist::AllToAllOp op, Run<moe::RoutePlanOp> plan, Run<moe::ReturnPlanOp> back);
  LogicalResult verifySums(Run<moe::ReduceSubtreesOp> sums, Run<moe::RoutePlanOp> plan, Run<moe::ReturnPlanOp> back);
  LogicalResult verifyUnpack(Run<moe::UnpackOp> unpack);
  LogicalResult verifyCombine(Run<moe::CombineOp> combine);
  LogicalResult verifyReaders();
  InFlightDiagnostic refuse(Operation *at) { return at->emitError() << who << ": "; }
  dist::CountBounds boundsOf(const Made &counts) {
    return counts.value.getDefiningOp<dist::CountsOp>().getCountBounds(counts.value, limits);
  }
  int64_t rowsIn(Value rows) { return nn::boundRows(nn::rowsOf(rows.getType()), limits); }

  ModuleOp module;
  StringRef who;
  SymbolTable symbols;
  nn::LimitsAttr limits;
  dist::TopologyAttr topology;
  /// The plan and the sums of each site at which rows come back.
  llvm::DenseMap<Operation *, std::pair<Run<moe::RoutePlanOp>, moe::ReduceSubtreesOp>> returns;
};

/// Ops of functions and, once for each call, of kernels.
LogicalResult Collectives::forEach(Visit visit) {
  for (FunctionOpInterface function : kern::stepFunctions(module)) {
    WalkResult result = function->walk([&](Operation *op) -> WalkResult {
      auto call = dyn_cast<kern::CallOp>(op);
      if (!call)
        return visit(op, {});
      auto kernel = symbols.lookup<kern::FuncOp>(call.getCallee());
      return kernel.getBody().walk([&](Operation *inner) -> WalkResult { return visit(inner, call); });
    });
    if (result.wasInterrupted())
      return failure();
  }
  return success();
}

/// Follows `value`, which the kernel of `call` has, to the op that makes it.
Made Collectives::madeBy(Value value, kern::CallOp call) {
  while (value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument && call) {
      value = call.getCallArguments()[argument.getArgNumber()].value;
      call = {};
    } else if (auto caller = value.getDefiningOp<kern::CallOp>()) {
      auto kernel = symbols.lookup<kern::FuncOp>(caller.getCallee());
      value = kernel.getBody().front().getTerminator()->getOperand(cast<OpResult>(value).getResultNumber());
      call = caller;
    } else {
      break;
    }
  }
  return {value, call};
}

Operation *makerOf(const Made &made) { return made.value ? made.value.getDefiningOp() : nullptr; }

std::string nameOf(const Made &made) {
  Operation *op = makerOf(made);
  return op ? "result " + std::to_string(cast<OpResult>(made.value).getResultNumber()) + " of '" +
                  op->getName().getStringRef().str() + "'"
            : "an argument";
}

/// The op that has made it as its result `name`.
template <class Op, class Result>
FailureOr<Run<Op>> Collectives::expect(Operation *at, StringRef what, const Made &made, StringRef name,
                                       Result (Op::*result)()) {
  if (auto op = dyn_cast_or_null<Op>(makerOf(made)); op && Value((op.*result)()) == made.value)
    return Run<Op>{op, made.call};
  return refuse(at) << what << " are " << nameOf(made) << ", expected '" << name << "' of '" << Op::getOperationName()
                    << "'; exchange rows as shard-experts does";
}

LogicalResult Collectives::expectSame(Operation *at, StringRef what, const Made &made, const Made &expected) {
  if (made == expected)
    return success();
  return refuse(at) << what << " are not those of the other side of the exchange: one is " << nameOf(made) << ", one "
                    << nameOf(expected) << "; derive both from one routing";
}

LogicalResult Collectives::expectSame(Operation *at, const Division &division, const Division &expected) {
  if (division == expected)
    return success();
  auto text = [](InFlightDiagnostic &to, const Division &of) -> InFlightDiagnostic & {
    return to << of.experts << " experts, " << of.slots << " a rank, " << of.top << " a row among " << of.among;
  };
  InFlightDiagnostic error = refuse(at);
  text(text(error << "the sides of the exchange divide ", division) << " and ", expected);
  return error << "; plan both alike";
}

LogicalResult Collectives::expectCapacity(Operation *at, StringRef what, int64_t capacity, int64_t needed) {
  if (capacity >= needed)
    return success();
  return refuse(at) << what << " has a capacity of " << capacity << " rows, and a step may bring " << needed
                    << "; bound it by nn.limits, as shard-experts does";
}

/// Facts of a site: its group, and the row spaces by which launches find its number.
LogicalResult Collectives::verifySite(dist::AllToAllOp op) {
  if (!topology)
    return refuse(op) << "ranks exchange rows, and the module has no dist.topology; run attach-plan first";
  if (const int64_t members = op.getTo().getType().getMembers(); members != topology.getRanks())
    return refuse(op) << "the exchange is of " << members << " members, and group " << stringifyAxis(op.getAxis())
                      << " of the " << topology.getRanks() << " ranks of '" << topology.getName()
                      << "'; plan and topology have to agree";
  const nn::RowsAttr in = nn::rowsOf(op.getInput().getType()), out = nn::rowsOf(op.getResult().getType());
  if (in.getSite() != op.getSite() || out.getSite() != op.getSite() || in.getKind() != out.getKind())
    return refuse(op) << "site " << op.getSite() << " is given " << in << " and makes " << out
                      << "; rows of a site have one row space, of its number";
  return failure(failed(op.getFrom() ? verifyReturn(op) : verifyDispatch(op)) || failed(verifyCapacities(op)));
}

/// To the experts: by quota, as nobody knows what comes.
LogicalResult Collectives::verifyDispatch(dist::AllToAllOp op) {
  auto plan = expect(op, "counts of what goes by quota", madeBy(op.getTo(), {}), "sent", &moe::RoutePlanOp::getSent);
  if (failed(plan))
    return failure();
  auto pack = expect(op, "rows that go by quota", madeBy(op.getInput(), {}), "result", &moe::PackOp::getResult);
  return failure(failed(pack) ||
                 failed(expectSame(op, "routes of the packed rows and of their counts",
                                   madeBy(pack->op.getRoutes(), pack->call), {plan->op.getRoutes(), plan->call})));
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
  auto sums = expect(op, "rows that go back", madeBy(op.getInput(), {}), "result", &moe::ReduceSubtreesOp::getResult);
  if (failed(sums) || failed(verifyReturnPlan(op, *plan, *back)) || failed(verifySums(*sums, *plan, *back)))
    return failure();
  returns.insert({op, {*plan, sums->op}});
  return success();
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
  auto unpack = expect(back.place(), "slots of rows to return", madeBy(back.op.getChosen(), back.call), "slots",
                       &moe::UnpackOp::getSlots);
  if (failed(unpack))
    return failure();
  auto divisionOf = [](auto of, Value rows) {
    return Division{of.getCount(), of.getSlots(), nn::widthOf(rows.getType()), of.getAmong()};
  };
  return failure(failed(expectSame(op, "counts of rows to return and of rows that were sent",
                                   madeBy(dispatch->op.getTo(), {}), {plan.op.getSent(), plan.call})) ||
                 failed(expectSame(back.place(), "counts and slots of rows to return",
                                   madeBy(unpack->op.getCame(), unpack->call), came)) ||
                 failed(expectSame(back.place(), divisionOf(back.op, back.op.getChosen()),
                                   divisionOf(plan.op, plan.op.getExperts()))) ||
                 failed(expectSame(back.place(), "layers of the plans", madeBy(back.op.getLayer(), back.call),
                                   madeBy(plan.op.getLayer(), plan.call))));
}

/// The rows of `sums` lie as `back` counts them, and are sums of the experts that `plan` has on a rank.
LogicalResult Collectives::verifySums(Run<moe::ReduceSubtreesOp> sums, Run<moe::RoutePlanOp> plan,
                                      Run<moe::ReturnPlanOp> back) {
  Operation *place = sums.place();
  auto permutation = expect(place, "slots of the sums", madeBy(sums.op.getPermutation(), sums.call), "permutation",
                            &moe::PermutationOp::getPermutation);
  if (failed(permutation))
    return failure();
  const Made chosen = madeBy(back.op.getChosen(), back.call);
  const int64_t members = back.op.getBack().getType().getMembers(), top = nn::widthOf(sums.op.getChosen().getType());
  const int64_t held = permutation->op.getPermutation().getType().getExperts();
  if (sums.op.getRanks() != members)
    return refuse(place) << "sums are of subtrees on " << sums.op.getRanks() << " ranks, and " << members
                         << " exchange them; plan both alike";
  return failure(failed(expectSame(place, "places of the sums and of their counts",
                                   madeBy(sums.op.getSums(), sums.call), {back.op.getSums(), back.call})) ||
                 failed(expectSame(place, "choices of the sums and of their counts",
                                   madeBy(sums.op.getChosen(), sums.call), chosen)) ||
                 failed(expectSame(place, "choices of the permutation and of the counts",
                                   madeBy(permutation->op.getExperts(), permutation->call), chosen)) ||
                 failed(expectSame(place, Division{sums.op.getCount(), held, top, sums.op.getAmong()},
                                   {plan.op.getCount(), plan.op.getSlots(), top, plan.op.getAmong()})) ||
                 failed(expectSame(place, "layers of the sums and of the plan", madeBy(sums.op.getLayer(), sums.call),
                                   madeBy(plan.op.getLayer(), plan.call))));
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
  auto [plan, sums] = returns.at(site->op); // sums of subtrees travel at no other
  if (combine.op.getCount() != sums.getCount() || combine.op.getOrderAttr() != sums.getOrderAttr())
    return refuse(place) << "adds sums of " << combine.op.getCount() << " experts in order "
                         << combine.op.getOrderAttr() << ", and they were made of " << sums.getCount() << " in order "
                         << sums.getOrderAttr() << "; a sum of experts has one tree";
  return failure(
      failed(expectSame(place, "routes of what came back and of its counts",
                        madeBy(combine.op.getRoutes(), combine.call), {plan.op.getRoutes(), plan.call})) ||
      failed(expectSame(place, "choices of what came back and of its counts",
                        madeBy(combine.op.getExperts(), combine.call), madeBy(plan.op.getExperts(), plan.call))));
}

/// A rank uses all that comes: what nothing reads was sent for something that the program has lost.
LogicalResult Collectives::verifyReaders() {
  llvm::DenseSet<std::pair<Value, Operation *>> read;
  auto note = [&](Operation *op, kern::CallOp call) -> LogicalResult {
    for (Value operand : op->hasTrait<OpTrait::IsTerminator>() ? ValueRange() : ValueRange(op->getOperands())) {
      const Made made = madeBy(operand, call);
      read.insert({made.value, made.call});
    }
    return success();
  };
  auto check = [&](Operation *op, kern::CallOp call) -> LogicalResult {
    if (!isa<dist::AllToAllOp, moe::UnpackOp>(op))
      return success();
    for (OpResult result : op->getResults())
      if (!read.contains({result, call}))
        return refuse(call ? call.getOperation() : op)
               << "no op reads result " << result.getResultNumber() << " of '" << op->getName()
               << "', which other ranks have sent; use it, or exchange nothing";
    return success();
  };
  return failure(failed(forEach(note)) || failed(forEach(check)));
}

LogicalResult Collectives::verify() {
  auto isCollective = [](Operation *op) { return isa<dist::AllToAllOp>(op); };
  if (failed(dist::checkSites(module, who)) || failed(verifyUniformControl(module, isCollective, who)))
    return failure();
  auto check = [&](Operation *op, kern::CallOp call) -> LogicalResult {
    if (auto site = dyn_cast<dist::AllToAllOp>(op))
      return verifySite(site);
    if (auto unpack = dyn_cast<moe::UnpackOp>(op))
      return verifyUnpack({unpack, call});
    if (auto combine = dyn_cast<moe::CombineOp>(op))
      return verifyCombine({combine, call});
    return success();
  };
  return failure(failed(forEach(check)) || failed(verifyReaders()));
}

} // namespace

LogicalResult verifyCollectives(ModuleOp module, StringRef who) { return Collectives(module, who).verify(); }

} // namespace k2c

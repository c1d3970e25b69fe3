//===- BoundDispersion.cpp - Experts of a token are on few nodes ----------===//
//
// The plan may bind a token's experts to a few nodes (route_limit), or make those of other nodes than its home less
// likely (locality_penalty). The router then chooses by the placement, which is data: what the program knows of it is
// how many nodes and slots there are.
//
//   %e, %w = moe.routing %s, %b layer %l among 1 to 3 score sigmoid top 2 groups 1 of 1 scale 1.0
//   %s = moe.locate %e .. slots 24
//   ->  %e, %w = moe.routing %s, %b layer %l among 1 to 3 score sigmoid top 2 groups 1 of 1
//           bound<nodes = 4, slots = 6, max = 2> scale 1.0
//       %s = moe.locate %e .. slots 24
//
// It follows shard-experts, which has given each layer its slots. A plan without either takes bounds away again, so
// that a program always is the one of its plan; the form verifier proves that from the distributed form on.
//
//===----------------------------------------------------------------------===//
#include "BoundDispersion.h"
#include "dialects/Moe/Moe.h"
#include "k2c/Support/Units.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2c/Transforms/Passes.h"
#include "k2c/Transforms/PlanAttr.h"
#include "k2c/Transforms/Remark.h"

namespace k2c {
#define GEN_PASS_DEF_BOUNDDISPERSION
#include "k2c/Transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// What the plan asks of routers.
struct Asked {
  int64_t most = 0;
  FloatAttr penalty;
  int64_t nodes = 1;

  bool isBound() const { return most > 0 || penalty; }
  /// The bound of a router whose experts have so many slots in all. Null after an error at `op`.
  moe::BoundAttr over(int64_t slots, Operation *op) const {
    return moe::BoundAttr::getChecked([&] { return op->emitError(); }, op->getContext(), nodes, slots / nodes, most,
                                      penalty);
  }
};

/// What the plan of `module` asks, which its topology has the nodes for.
FailureOr<Asked> askedOf(ModuleOp module, StringRef who) {
  Asked asked;
  if (dist::PlanAttr plan = planOf(module)) {
    asked.most = plan.getRouteLimit();
    asked.penalty = plan.getLocalityPenalty();
  }
  asked.nodes = stageRanksOf(module).nodes;
  if (asked.isBound() && asked.nodes < 2)
    return module.emitError() << who << ": the plan binds tokens to nodes, and the topology has " << asked.nodes
                              << "; leave route_limit and locality_penalty out";
  if (asked.most > 0 && asked.most >= asked.nodes)
    return module.emitError() << who << ": the plan's route_limit is " << asked.most << ", the topology has "
                              << asked.nodes << " nodes; have it below, or leave it out";
  return asked;
}

/// What finds the slots of the experts that `routing` chooses.
moe::LocateOp locateOf(moe::RoutingOp routing) {
  for (Operation *user : routing.getExperts().getUsers())
    if (auto locate = dyn_cast<moe::LocateOp>(user))
      return locate;
  return nullptr;
}

/// How experts of a token are spread, in words.
std::string described(const Asked &asked) {
  std::string text = "experts of a token are on ";
  text += asked.most > 0 ? "at most " + std::to_string(asked.most) + " of " : "any of ";
  text += std::to_string(asked.nodes) + " nodes";
  if (asked.penalty)
    text += ", and those that its home node has not are chosen by " +
            formatNumber(asked.penalty.getValueAsDouble(), 9) + " less";
  return text;
}

struct BoundDispersion : impl::BoundDispersionBase<BoundDispersion> {
  using BoundDispersionBase::BoundDispersionBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(expectForm(module, getArgument(), Form::Distributed, Form::Distributed)))
      return signalPassFailure();
    FailureOr<Asked> asked = askedOf(module, getArgument());
    if (failed(asked))
      return signalPassFailure();
    WalkResult result = module.walk([&](moe::RoutingOp op) -> WalkResult { return bind(op, *asked); });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  LogicalResult bind(moe::RoutingOp op, const Asked &asked) {
    if (!asked.isBound()) {
      op.removeBoundAttr();
      return success();
    }
    moe::LocateOp locate = locateOf(op);
    if (!locate)
      return op.emitOpError("is bound to nodes by the slots of its moe.locate, and has none; let several ranks share "
                            "the experts that it chooses");
    moe::BoundAttr bound = asked.over(locate.getSlots(), op);
    if (!bound)
      return failure();
    op.setBoundAttr(bound);
    remark(op.getLoc(), getArgument(), asked.most > 0 ? "route-limit" : "penalty", described(asked),
           {{"nodes", asked.nodes},
            {"most_nodes", asked.most > 0 ? asked.most : asked.nodes},
            {"penalty", asked.penalty ? asked.penalty.getValueAsDouble() : 0.0}});
    return success();
  }
};

} // namespace

LogicalResult verifyBounds(ModuleOp module, StringRef who) {
  FailureOr<Asked> asked = askedOf(module, who);
  if (failed(asked))
    return failure();
  int64_t slots = 0;
  module.walk([&](moe::LocateOp op) { slots = op.getSlots(); });
  WalkResult result = module.walk([&](moe::RoutingOp op) -> WalkResult {
    const moe::BoundAttr wanted = asked->isBound() ? asked->over(slots, op) : moe::BoundAttr();
    if (asked->isBound() && !wanted)
      return failure();
    if (op.getBoundAttr() == wanted)
      return success();
    InFlightDiagnostic error = op.emitError() << who << ": the bound of the router is ";
    auto append = [&](moe::BoundAttr bound) { bound ? error << bound : error << "none"; };
    append(op.getBoundAttr());
    error << ", by the plan it is ";
    append(wanted);
    error << "; run bound-dispersion behind shard-experts";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

} // namespace k2c

//===- AttachPlan.cpp - The planner's decisions, in the IR ----------------===//
//
// lib/Planner decides without MLIR; this pass only writes the decision down, once, and says it. Passes after it read
// `dist.plan` and decide nothing of the kind themselves.
//
//===----------------------------------------------------------------------===//
#include "dialects/Dist/Dist.h"
#include "k2c/Transforms/Passes.h"
#include "k2c/Transforms/Remark.h"
#include "mlir/IR/Builders.h"

namespace k2c {
#define GEN_PASS_DEF_ATTACHPLAN
#include "k2c/Transforms/Passes.h.inc"

using namespace mlir;

namespace {

struct AttachPlan : impl::AttachPlanBase<AttachPlan> {
  using AttachPlanBase::AttachPlanBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    auto isTime = [](double seconds) { return seconds >= 0 && seconds <= 1e9; }; // nanoseconds fit 64 bits
    if (expandedFrom < -1 || weightBytes < 0 || cacheBytes < 0 || !isTime(prefillSeconds) || !isTime(decodeSeconds)) {
      module.emitError()
          << "attach-plan: a plan has no negative bytes, between 0 and 1e9 seconds, and expanded-from is "
             "at least -1";
      return signalPassFailure();
    }
    auto nanoseconds = [](double seconds) { return static_cast<int64_t>(seconds * 1e9); };
    auto memory = dist::MemoryAttr::get(context, weightBytes, cacheBytes, /*arena=*/0, /*reserve=*/0);
    auto plan = dist::PlanAttr::get(context, dist::LayoutAttr::get(context, 1, 1, 1), expandedFrom, memory,
                                    nanoseconds(prefillSeconds), nanoseconds(decodeSeconds));
    module->setAttr("dist.topology", dist::TopologyAttr::get(context, topology, /*ranks=*/1));
    module->setAttr("dist.plan", plan);
    remark(module.getLoc(), "attach-plan", "layout", "one rank on topology '" + topology + "'",
           {{"ranks", int64_t(1)}});
    remark(module.getLoc(), "attach-plan", "memory",
           std::to_string(weightBytes) + " bytes of weights, " + std::to_string(cacheBytes) + " bytes of cache",
           {{"weight_bytes", int64_t(weightBytes)}, {"cache_bytes", int64_t(cacheBytes)}});
    remark(module.getLoc(), "attach-plan", "time", "predicted from the roofline of the topology",
           {{"prefill_seconds", double(prefillSeconds)}, {"decode_seconds", double(decodeSeconds)}});
  }
};

} // namespace
} // namespace k2c

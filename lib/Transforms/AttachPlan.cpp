//===- AttachPlan.cpp - The planner's decisions, in the IR ----------------===//
//
// lib/Planner decides without MLIR; this pass only writes the decisions down, once, and says them. Passes after it read
// `dist.plan` and `kern.target` and decide nothing of the kind themselves: they take no option that does.
//
//===----------------------------------------------------------------------===//
#include "k2c/Planner/Evaluate.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2c/Transforms/Passes.h"
#include "k2c/Transforms/PlanAttr.h"
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
    if (failed(expectForm(getOperation(), getArgument(), Form::Model, Form::Runtime)))
      return signalPassFailure();
    ModuleOp module = getOperation();
    Builder b(&getContext());
    auto report = [&]() -> InFlightDiagnostic { return module.emitError() << "attach-plan: "; };
    function_ref<InFlightDiagnostic()> error = report;
    auto strings = [&](ArrayRef<std::string> list) {
      return b.getStrArrayAttr(SmallVector<StringRef>(list.begin(), list.end()));
    };
    const ArrayAttr required = features.empty() ? b.getStrArrayAttr({"avx2", "fma"}) : strings(features);
    const auto layoutOfWeights = kern::symbolizeWeightLayout(weights.getValue());
    if (!layoutOfWeights) {
      report() << "weights are panels or rows, got '" << weights.getValue() << "'";
      return signalPassFailure();
    }
    // What runs kernels reads matrices in this layout.
    auto target = kern::CpuAttr::getChecked(error, &getContext(), StringRef(cpu.getValue()), cores.getValue(),
                                            l1Bytes.getValue(), l2Bytes.getValue(), required,
                                            gpu.empty() ? *layoutOfWeights : kern::WeightLayout::Panels);
    auto machines = dist::TopologyAttr::getChecked(error, &getContext(), StringRef(topology.getValue()),
                                                   ranks.getValue(), nodes.getValue(), ArrayRef<int64_t>(numa));
    auto plan = dist::PlanAttr::getChecked(
        error, &getContext(), StringRef(layout.getValue()), expandedFrom.getValue(),
        without.empty() ? ArrayAttr() : strings(without), tileChoice.getValue(), routeLimit.getValue(),
        localityPenalty == 0 ? FloatAttr() : b.getF64FloatAttr(localityPenalty), halvesFrom.getValue(),
        stages.empty() ? DenseI64ArrayAttr() : b.getDenseI64ArrayAttr(ArrayRef<int64_t>(stages)));
    if (!target || !machines || !plan || failed(checkLayout(module)))
      return signalPassFailure();
    Attribute device = target;
    if (!gpu.empty())
      device =
          kern::GpuAttr::getChecked(error, &getContext(), StringRef(gpu.getValue()), sms.getValue(), threads.getValue(),
                                    workersOfCta.getValue(), ctas.getValue(), target, *layoutOfWeights);
    if (!device)
      return signalPassFailure();
    module->setAttr(kern::KernDialect::targetAttrName, device);
    module->setAttr(dist::DistDialect::topologyAttrName, machines);
    module->setAttr(dist::DistDialect::planAttrName, plan);
    const std::string what = ranks == 1 ? "one rank" : std::to_string(ranks) + " ranks as " + layout.getValue();
    remark(module.getLoc(), "attach-plan", "layout", what + " on topology '" + topology.getValue() + "'",
           {{"ranks", ranks.getValue()}});
  }

  /// A layout is of all ranks.
  LogicalResult checkLayout(ModuleOp module) {
    Expected<ParallelLayout> parsed = parseLayout(layout, PlanPhase::Serve);
    if (!parsed)
      return module.emitError() << "attach-plan: " << parsed.error().text();
    if (parsed->devices() != ranks)
      return module.emitError() << "attach-plan: layout '" << layout.getValue() << "' is of " << parsed->devices()
                                << " ranks, the topology has " << ranks.getValue();
    return success();
  }
};

} // namespace
} // namespace k2c

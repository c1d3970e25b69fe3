//===- AttachPlan.cpp - The planner's decisions, in the IR ----------------===//
//
// lib/Planner decides without MLIR; this pass only writes the decisions down, once, and says them. Passes after it read
// `dist.plan` and `kern.target` and decide nothing of the kind themselves: they take no option that does.
//
//===----------------------------------------------------------------------===//
#include "k2c/Planner/ClusterPlan.h"
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
    auto target =
        kern::CpuAttr::getChecked(error, &getContext(), StringRef(cpu.getValue()), cores.getValue(), l1Bytes.getValue(),
                                  l2Bytes.getValue(), required, kern::WeightLayout::Panels);
    auto ranks = dist::TopologyAttr::getChecked(error, &getContext(), StringRef(topology.getValue()),
                                                /*ranks=*/int64_t(1), ArrayRef<int64_t>(numa));
    auto plan = dist::PlanAttr::getChecked(error, &getContext(), StringRef(oneRankLayout), expandedFrom.getValue(),
                                           without.empty() ? ArrayAttr() : strings(without), tileChoice.getValue());
    if (!target || !ranks || !plan)
      return signalPassFailure();
    module->setAttr(kern::KernDialect::targetAttrName, target);
    module->setAttr(dist::DistDialect::topologyAttrName, ranks);
    module->setAttr(dist::DistDialect::planAttrName, plan);
    remark(module.getLoc(), "attach-plan", "layout", "one rank on topology '" + topology.getValue() + "'",
           {{"ranks", int64_t(1)}});
  }
};

} // namespace
} // namespace k2c

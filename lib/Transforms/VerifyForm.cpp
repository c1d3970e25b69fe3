//===- VerifyForm.cpp - The wall after each form --------------------------===//
//
// A form is defined by what may no longer appear in it. One table of rules, one walk; a violation names the op, the
// form and the pass that should have run. In the scheduled form, groups of calls are proven to be apart.
//
//===----------------------------------------------------------------------===//
#include "VerifyGroups.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Kern/Kern.h"
#include "dialects/Mla/Mla.h"
#include "dialects/Moe/Moe.h"
#include "dialects/Nn/Nn.h"
#include "k2c/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSwitch.h"

namespace k2c {
#define GEN_PASS_DEF_VERIFYFORM
#include "k2c/Transforms/Passes.h.inc"

using namespace mlir;

namespace {

enum class Wall { Model, Planned, Distributed, Scheduled, Runtime, Unknown };

class Checker {
public:
  Checker(ModuleOp module, Wall wall, StringRef form) : module(module), wall(wall), form(form) {}

  LogicalResult check();

private:
  LogicalResult checkModule();
  LogicalResult checkTokenOp(Operation *op);
  LogicalResult checkScheduled(Operation *op);
  LogicalResult checkGroups();
  LogicalResult missing(Operation *op, StringRef what, StringRef pass) {
    return op->emitError() << form << " form: " << what << "; run " << pass << " first";
  }

  ModuleOp module;
  Wall wall;
  StringRef form;
};

/// Every nn, moe and mla op but the symbols is a TokenOp, and so has the design interfaces; a test of the td files
/// holds it.
bool isTokenOp(Operation *op) { return isa<nn::KernelOp>(op); }

LogicalResult Checker::checkModule() {
  if (wall == Wall::Runtime)
    return success();
  if (!module->hasAttr("nn.limits"))
    return missing(module, "the module has no nn.limits", "the frontend");
  if (!module->hasAttr("nn.numerics"))
    return missing(module, "the module has no nn.numerics", "set-numerics");
  int64_t entries =
      llvm::count_if(module.getOps<func::FuncOp>(), [](func::FuncOp f) { return f->hasAttr("nn.entry"); });
  if (entries == 0)
    return missing(module, "no function has nn.entry", "the frontend");
  if (wall >= Wall::Planned && !module->hasAttr("dist.plan"))
    return missing(module, "the module has no dist.plan", "attach-plan");
  if (wall == Wall::Scheduled && !module->hasAttr("mem.peak"))
    return missing(module, "the module has no mem.peak", "assign-memory");
  return success();
}

/// What holds for every nn, moe and mla op: in functions up to the distributed form, in kernels after it.
LogicalResult Checker::checkTokenOp(Operation *op) {
  if (auto reducing = dyn_cast<nn::ReductionOp>(op))
    for (const nn::Reduction &reduction : reducing.getReductions())
      if (!reduction.order)
        return missing(op, ("the reduction '" + reduction.attribute + "' has no order").str(), "set-numerics");
  if (wall >= Wall::Planned && isa<mla::AttentionOp>(op))
    return missing(op, "latent attention has no form yet", "absorb-mla");
  if (wall >= Wall::Distributed && isa<moe::ExpertsOp>(op))
    return missing(op, "the movement of rows to experts is not explicit", "shard-experts");
  return success();
}

LogicalResult Checker::checkScheduled(Operation *op) {
  if (auto call = dyn_cast<kern::CallOp>(op))
    return call.getOffsets() ? success() : missing(op, "the call has no offsets", "assign-memory");
  if (auto kernel = dyn_cast<kern::FuncOp>(op))
    return kernel.getTile() ? success() : missing(op, "the kernel has no tile", "choose-tiles");
  if (!isTokenOp(op))
    return success();
  if (!op->getParentOfType<kern::FuncOp>() && !isa<nn::LayersOp, nn::SampleOp, mla::MergeFormsOp>(op))
    return missing(op, "the op is in no kernel", "form-kernels");
  return checkTokenOp(op);
}

LogicalResult Checker::check() {
  if (failed(checkModule()))
    return failure();
  WalkResult result = module.walk([&](Operation *op) -> WalkResult {
    if (wall == Wall::Runtime) {
      StringRef dialect = op->getName().getDialectNamespace();
      if (llvm::is_contained({"nn", "moe", "mla", "dist", "kern"}, dialect))
        return missing(op, ("an op of dialect '" + dialect + "' is left").str(), "lower-to-rt");
      return WalkResult::advance();
    }
    if (wall == Wall::Scheduled)
      return checkScheduled(op);
    if (isa<kern::CallOp, kern::FuncOp>(op))
      return WalkResult(op->emitError() << form << " form: kernels belong to the scheduled form");
    return isTokenOp(op) ? WalkResult(checkTokenOp(op)) : WalkResult::advance();
  });
  return failure(result.wasInterrupted() || (wall == Wall::Scheduled && failed(checkGroups())));
}

LogicalResult Checker::checkGroups() {
  SymbolTable symbols(module);
  auto limits = module->getAttrOfType<nn::LimitsAttr>("nn.limits");
  for (auto function : module.getOps<func::FuncOp>())
    if (failed(verifyGroups(function, symbols, limits)))
      return failure();
  return success();
}

struct VerifyForm : impl::VerifyFormBase<VerifyForm> {
  using VerifyFormBase::VerifyFormBase;

  void runOnOperation() override {
    Wall wall = llvm::StringSwitch<Wall>(form)
                    .Case("model", Wall::Model)
                    .Case("planned", Wall::Planned)
                    .Case("distributed", Wall::Distributed)
                    .Case("scheduled", Wall::Scheduled)
                    .Case("runtime", Wall::Runtime)
                    .Default(Wall::Unknown);
    if (wall == Wall::Unknown) {
      getOperation().emitError() << "verify-form: no form is called '" << form
                                 << "'; forms are model, planned, distributed, scheduled, runtime";
      return signalPassFailure();
    }
    if (failed(Checker(getOperation(), wall, form).check()))
      signalPassFailure();
  }
};

} // namespace
} // namespace k2c

//===- VerifyForm.cpp - The form after each form --------------------------===//
//
// A form is defined by what may no longer appear in it. One table of rules, one walk; a violation names the op, the
// form and the pass that should have run. In the scheduled and the runtime form, groups of calls and launches are
// proven to be apart; from the distributed form on, ranks to come to the same sites with the same rows, and routers to
// be bound as the plan says.
//
//===----------------------------------------------------------------------===//
#include "BoundDispersion.h"
#include "VerifyBuffers.h"
#include "VerifyCollectives.h"
#include "VerifyDestroyed.h"
#include "VerifyGroups.h"
#include "VerifyLaunches.h"
#include "VerifySlices.h"
#include "VerifyStages.h"
#include "VerifyWaits.h"
#include "dialects/Mem/Mem.h"
#include "dialects/Mla/Mla.h"
#include "dialects/Moe/Moe.h"
#include "dialects/Nn/Nn.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Rt/RtFunctions.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2c/Transforms/Passes.h"
#include "k2c/Transforms/PlanAttr.h"
#include "k2rt/program.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

namespace k2c {
#define GEN_PASS_DEF_VERIFYFORM
#include "k2c/Transforms/Passes.h.inc"

using namespace mlir;

namespace {

class Checker {
public:
  Checker(ModuleOp module, KernelDescriptions &descriptions, Form form)
      : module(module), descriptions(descriptions), form(form) {}

  LogicalResult check();

private:
  LogicalResult checkModule();
  template <class Op> LogicalResult checkCacheGroups(StringRef kind, StringRef unit, int64_t (Op::*pages)());
  LogicalResult checkPlan();
  LogicalResult checkTokenOp(Operation *op);
  LogicalResult checkChoice(Operation *op);
  LogicalResult checkScheduled(Operation *op);
  LogicalResult checkRuntime(Operation *op);
  LogicalResult checkGroups();
  LogicalResult checkProofs();
  LogicalResult missing(Operation *op, StringRef what, StringRef pass) {
    return op->emitError() << nameOf(form) << " form: " << what << "; run " << pass << " first";
  }

  ModuleOp module;
  KernelDescriptions &descriptions;
  Form form;
  llvm::SmallPtrSet<Operation *, 16> packed; ///< families that weight slots are of: the packer reads them
};

/// Every nn, moe and mla op but symbols and nn.yield is a TokenOp, and so has the design interfaces.
bool isTokenOp(Operation *op) { return isa<nn::RowSpaceOp>(op); }

LogicalResult Checker::checkModule() {
  if (form == Form::Runtime)
    return checkCacheGroups("plane", " pages a layer", &rt::PlaneTableOp::getPages);
  auto limits = nn::limitsOf(module);
  if (!limits)
    return missing(module, "the module has no nn.limits", "the frontend");
  for (auto table : module.getOps<nn::ConstantTableOp>())
    if (int64_t rows = table.getTensorType().getDimSize(0); rows != limits.getPositions())
      return table.emitError() << nameOf(form) << " form: the table has " << rows
                               << " positions, nn.limits allow a context of " << limits.getPositions()
                               << "; change both";
  if (!module->hasAttr(nn::NnDialect::numericsAttrName))
    return missing(module, "the module has no nn.numerics", "set-numerics");
  int64_t entries = llvm::count_if(kern::stepFunctions(module), [](FunctionOpInterface f) { return nn::isEntry(f); });
  if (entries == 0)
    return missing(module, "no function has nn.entry", "the frontend");
  if (failed(checkCacheGroups("pool", " tokens a page", &nn::PoolOp::getPage)) ||
      (form >= Form::Planned && failed(checkPlan())))
    return failure();
  if (form == Form::Scheduled && !mem::peakOf(module))
    return missing(module, "the module has no mem.peak", "assign-memory");
  if (form == Form::Scheduled && !module->hasAttr(mem::MemDialect::certificateAttrName))
    return missing(module, "the module has no mem.certificate", "certify-memory");
  return success();
}

/// The step has a block table and a length for each group from 0 on, so that all of a group has the same pages.
template <class Op> LogicalResult Checker::checkCacheGroups(StringRef kind, StringRef unit, int64_t (Op::*pages)()) {
  auto refuse = [&](Op op) {
    return op.emitError() << nameOf(form) << " form: " << kind << " @" << op.getSymName() << " is of cache group "
                          << op.getGroup();
  };
  std::array<Op, K2RT_MAX_CACHE_GROUPS> first;
  for (auto op : module.getOps<Op>()) {
    if (op.getGroup() >= K2RT_MAX_CACHE_GROUPS)
      return refuse(op) << ", the last of a program is " << K2RT_MAX_CACHE_GROUPS - 1 << "; have fewer groups";
    Op &known = first[op.getGroup()];
    if (!known)
      known = op;
    if ((op.*pages)() != (known.*pages)())
      return refuse(op) << " with " << (op.*pages)() << unit << ", @" << known.getSymName() << " has "
                        << (known.*pages)() << "; a group has one block table: make it two groups";
  }
  const int64_t unused = llvm::find_if(first, [](Op op) { return !op; }) - first.begin();
  for (auto op : module.getOps<Op>())
    if (op.getGroup() > unused)
      return refuse(op) << ", and no " << kind << " of group " << unused << "; number groups from 0 without gaps";
  return success();
}

/// The plan is there, and the program is the one that it plans.
LogicalResult Checker::checkPlan() {
  dist::PlanAttr plan = planOf(module);
  if (!plan)
    return missing(module, "the module has no dist.plan", "attach-plan");
  if (failed(targetOf(module, std::string(nameOf(form)) + " form")))
    return failure();
  if (std::optional<StringRef> pass = unknownPass(plan))
    return module.emitError() << nameOf(form) << " form: the plan leaves out '" << *pass << "'; optional passes are "
                              << llvm::join(optionalPassNames(), ", ");
  bool isAbsorbed = false, isExpanded = false;
  module.walk([&](Operation *op) {
    isAbsorbed |= isa<mla::AttentionAbsorbedOp>(op);
    isExpanded |= isa<mla::AttentionExpandedOp>(op);
  });
  const int64_t from = plan.getExpandedFrom();
  if (isExpanded != (from >= 0) || (isExpanded && isAbsorbed != (from != 0)))
    return module.emitError() << nameOf(form) << " form: the plan's expanded_from is " << from
                              << ", but the program has " << (isExpanded ? "an" : "no") << " expanded and "
                              << (isAbsorbed ? "an" : "no")
                              << " absorbed attention; 0 is for the expanded form alone, -1 for none of it: change the "
                                 "plan before absorb-mla";
  return success();
}

/// What holds for every nn, moe and mla op: in functions up to the distributed form, in kernels after it.
LogicalResult Checker::checkTokenOp(Operation *op) {
  if (auto reducing = dyn_cast<nn::ReductionOp>(op))
    for (const nn::Reduction &reduction : reducing.getReductions())
      if (!reduction.order)
        return missing(op, ("the reduction '" + reduction.attribute + "' has no order").str(), "set-numerics");
  if (std::optional<OpForms> forms = formsOf(op); forms && form > forms->last)
    return missing(op, forms->what, forms->next);
  return success();
}

/// Rows lie in one place. Canonicalisation makes a choice of a branch that does nothing but forward two values.
LogicalResult Checker::checkChoice(Operation *op) {
  if (!isa<SelectLikeOpInterface>(op) || !nn::rowsOf(op->getResult(0).getType()))
    return success();
  return op->emitError() << nameOf(form) << " form: '" << op->getName()
                         << "' chooses between rows that lie in two places; let a branch compute what it yields";
}

/// What reads `view`, directly or through other views, and can be in no kernel; null if nothing does.
Operation *readerOutside(Operation *view) {
  llvm::SetVector<Operation *> views; // where order means nothing, views may read each other
  views.insert(view);
  for (size_t i = 0; i < views.size(); ++i)
    for (Operation *user : views[i]->getUsers())
      if (nn::isView(user))
        views.insert(user);
      else if (!isa<nn::KernelOp, kern::CallOp>(user))
        return user;
  return nullptr;
}

LogicalResult Checker::checkScheduled(Operation *op) {
  if (auto placed = dyn_cast<nn::PlacedOp>(op))
    return placed.getOffsets() ? success() : missing(op, "the call has no offsets", "assign-memory");
  if (auto kernel = dyn_cast<kern::FuncOp>(op))
    return kernel.getTile() ? success() : missing(op, "the kernel has no tile", "choose-tiles");
  if (!isTokenOp(op))
    return success();
  if (!op->getParentOfType<kern::FuncOp>() && isa<nn::KernelOp>(op)) {
    if (Operation *reader = nn::isView(op) ? readerOutside(op) : nullptr)
      return op->emitError() << nameOf(form) << " form: a view lies in the kernels that read it, and '"
                             << reader->getName()
                             << "' is in none; give it what is viewed, and view that where kernels read it";
    return missing(op, "the op is in no kernel", "form-kernels");
  }
  return checkTokenOp(op);
}

LogicalResult Checker::checkRuntime(Operation *op) {
  StringRef dialect = op->getName().getDialectNamespace();
  if (!llvm::is_contained({"nn", "moe", "mla", "dist", "kern"}, dialect) || packed.contains(op))
    return success();
  return missing(op, ("an op of dialect '" + dialect + "' is left").str(), "lower-to-rt");
}

LogicalResult Checker::check() {
  if (failed(checkModule()))
    return failure();
  for (auto slots : module.getOps<rt::WeightSlotsOp>())
    packed.insert(module.lookupSymbol(slots.getFamilyAttr()));
  WalkResult result = module.walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
    if (form == Form::Runtime)
      return checkRuntime(op);
    if (failed(checkChoice(op)))
      return failure();
    if (form == Form::Scheduled)
      return checkScheduled(op);
    if (isa_and_nonnull<kern::KernDialect>(op->getDialect())) // an op that nobody registered has none
      return WalkResult(op->emitError() << nameOf(form) << " form: kernels belong to the scheduled form");
    return isTokenOp(op) ? WalkResult(checkTokenOp(op)) : WalkResult::advance();
  });
  return failure(result.wasInterrupted() || failed(checkProofs()));
}

/// Facts of the whole program.
LogicalResult Checker::checkProofs() {
  const std::string who = std::string(nameOf(form)) + " form";
  if (form < Form::Distributed)
    return success();
  if (form == Form::Runtime)
    return failure(failed(rt::checkFunctions(module, who)) || failed(verifyWaits(module, who)) ||
                   failed(verifyBuffers(module, who)) || failed(verifyLaunches(module, who)));
  return failure((form == Form::Scheduled && failed(checkGroups())) || failed(verifyCollectives(module, who)) ||
                 failed(verifySlices(module, who, form == Form::Scheduled)) || failed(verifyStages(module, who)) ||
                 failed(verifyBounds(module, who)));
}

LogicalResult Checker::checkGroups() {
  SymbolTable symbols(module);
  auto limits = nn::limitsOf(module);
  for (FunctionOpInterface function : kern::stepFunctions(module))
    if (failed(verifyGroups(function, symbols, descriptions, limits)) ||
        failed(verifyDestroyed(function, symbols, descriptions, "scheduled form")))
      return failure();
  return success();
}

struct VerifyForm : impl::VerifyFormBase<VerifyForm> {
  using VerifyFormBase::VerifyFormBase;

  void runOnOperation() override {
    std::optional<Form> named = formNamed(form.getValue());
    if (!named || *named >= Form::Llvm) {
      std::string forms;
      for (auto known = uint8_t(Form::Model); Form(known) < Form::Llvm; ++known)
        forms += (forms.empty() ? "" : ", ") + std::string(nameOf(Form(known)));
      getOperation().emitError() << "verify-form: no form is called '" << form << "'; forms are " << forms;
      return signalPassFailure();
    }
    if (failed(Checker(getOperation(), getAnalysis<KernelDescriptions>(), *named).check()))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace k2c

//===- AssignSlots.cpp - Each weight that kernels read has a slot ---------===//
//
// A kernel reads a weight in a layout; a family that is read in a layout has consecutive slots, one for each of its
// layers, in the order in which the program first reads them:
//
//   kern.call @qa(%x, @w[%l])   ->   rt.weight_slots @w.panels of @w first 12 count 3 .. layout #rt.panels<..>
//
// A family read in two layouts (a tied embedding) has two sets of slots, and of one that ranks have parts of, each
// layer has a slot for each part. Of ranks in stages, what only calls on entering or on output rows read is on the
// first or the last one. This is the only place that numbers slots: the runtime form, the weight map, the manifest and
// the certificate read what stands here.
//
//===----------------------------------------------------------------------===//
#include "dialects/Dist/Dist.h"
#include "dialects/Rt/Rt.h"
#include "k2c/Kernels/Describe.h"
#include "k2c/Kernels/LayoutAttr.h"
#include "k2c/Kernels/TileAttr.h"
#include "k2c/Kernels/WeightShare.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2c/Transforms/Passes.h"
#include "k2c/Transforms/PlanAttr.h"
#include "llvm/ADT/DenseMap.h"

namespace k2c {
#define GEN_PASS_DEF_ASSIGNSLOTS
#include "k2c/Transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// Numbers the slots of one module.
class Numbering {
public:
  Numbering(ModuleOp module, KernelDescriptions &descriptions)
      : module(module), symbols(module), descriptions(descriptions), b(module.getBodyRegion()) {}

  LogicalResult run();

private:
  void add(kern::CallOp call, FlatSymbolRefAttr family, const Operand &operand, const KernelDesc &reader,
           WeightLayout matrices);

  ModuleOp module;
  SymbolTable symbols;
  KernelDescriptions &descriptions;
  OpBuilder b;                                                              ///< behind the last slots
  llvm::DenseMap<std::pair<Attribute, Attribute>, rt::WeightSlotsOp> known; ///< by family and layout
  int64_t next = 0;
};

/// What rows were before they were shared, where they arrived at a site.
nn::RowKind sharedAs(nn::RowsAttr rows, ModuleOp module) {
  nn::RowKind kind = rows.getKind();
  if (kind == nn::RowKind::Recv)
    module.walk([&](dist::AllToAllOp site) {
      if (int64_t(site.getSite()) == rows.getSite())
        kind = nn::rowsOf(site.getInput().getType()).getKind();
    });
  return kind;
}

/// The stage that has rows for `call`, in a program of stages; null: all have.
rt::StageEndAttr stageOf(kern::CallOp call) {
  auto module = call->getParentOfType<ModuleOp>();
  if (stagesOf(module).empty())
    return {};
  for (Type type : call.getResultTypes())
    if (nn::RowsAttr rows = nn::rowsOf(type)) {
      const nn::RowKind kind = sharedAs(rows, module);
      if (kind == nn::RowKind::Entering)
        return rt::StageEndAttr::get(call.getContext(), rt::StageEnd::First);
      if (kind == nn::RowKind::Output)
        return rt::StageEndAttr::get(call.getContext(), rt::StageEnd::Last);
    }
  return {};
}

void Numbering::add(kern::CallOp call, FlatSymbolRefAttr family, const Operand &operand, const KernelDesc &reader,
                    WeightLayout matrices) {
  Attribute layout = layoutAttr(module.getContext(), operand, matrices);
  const rt::StageEndAttr stage = stageOf(call);
  rt::WeightSlotsOp &slots = known[{family, layout}];
  if (slots) {
    if (slots.getStageAttr() != stage)
      slots.removeStageAttr();
    return;
  }
  Operation *source = symbols.lookup(family.getValue());
  auto weights = dyn_cast<nn::WeightsOp>(source);
  nn::IndicesAttr layers = weights ? weights.getDomain("layer") : nn::IndicesAttr();
  const int64_t count = layers ? layers.size() : 1;
  const k2rt_share share = weightShare(reader, operand, matrices);
  auto number = [&](int64_t value) { return value > 0 ? b.getI64IntegerAttr(value) : IntegerAttr(); };
  StringRef suffix = isa<rt::PanelsAttr>(layout) ? ".panels" : isa<rt::RowsAttr>(layout) ? ".matrix" : ".rows";
  std::string name = (family.getValue() + suffix).str();
  slots = rt::WeightSlotsOp::create(b, source->getLoc(), b.getStringAttr(name), family, b.getI64IntegerAttr(next),
                                    b.getI64IntegerAttr(count), b.getI64IntegerAttr(weightBytes(operand, matrices)),
                                    layout, weights ? weights.getPartsAttr() : IntegerAttr(), stage,
                                    number(share.experts), number(share.items), number(share.item_bytes));
  next = slots.getEnd();
}

LogicalResult Numbering::run() {
  WalkResult done = module.walk([&](kern::CallOp call) {
    auto callee = symbols.lookup<kern::FuncOp>(call.getCallee());
    const DescribedKernel *kernel = descriptions.find(callee);
    if (!kernel)
      return WalkResult::interrupt();
    const WeightLayout matrices = weightsOf(callee);
    SmallVector<kern::CallOp::Argument> arguments = call.getCallArguments();
    for (auto [operand, source] : llvm::zip_equal(operands(kernel->desc), kernel->sources))
      if (source.kind == ArgumentSource::Argument && arguments[source.index].weight)
        add(call, arguments[source.index].weight.getFamily(), operand, kernel->desc, matrices);
    return WalkResult::advance();
  });
  return failure(done.wasInterrupted());
}

struct AssignSlots : impl::AssignSlotsBase<AssignSlots> {
  using AssignSlotsBase::AssignSlotsBase;

  void runOnOperation() override {
    if (failed(expectForm(getOperation(), getArgument(), Form::Scheduled, Form::Scheduled)))
      return signalPassFailure();
    for (auto slots : llvm::make_early_inc_range(getOperation().getOps<rt::WeightSlotsOp>()))
      slots.erase(); // of an earlier run
    if (failed(Numbering(getOperation(), getAnalysis<KernelDescriptions>()).run()))
      return signalPassFailure();
    markAnalysesPreserved<KernelDescriptions>();
  }
};

} // namespace
} // namespace k2c

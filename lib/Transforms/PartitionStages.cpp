//===- PartitionStages.cpp - Each stage of ranks has a part of the layers -===//
//
// Ranks of a stage have its layers, and what is before the first layer or behind the last is the first's or the last
// stage's. One program serves all of them, without a branch: rows decide what a rank does.
//
//   first stage                      a later one                      the last one
//   %e = embed    T rows             no rows enter                    no rows enter
//   %x = receive  these              those of the stage before        the same
//   %y = layers   its own            its own                          its own
//   send %y       to the next        to the next                      to nobody
//   output_rows   none               none                             those of which logits are wanted
//
// The runtime gives each rank a step of its own: `entering` rows on the first stage alone, output rows on the last.
// What computes no rows reads no weights, so that a stage has those of its own part (assign-slots).
//
// Rejected: a branch around the embedding and the head, on the number of the stage. Passes, memory and proofs would
// have to follow two paths of which a rank takes one, to save launches of no items.
//
//===----------------------------------------------------------------------===//
#include "dialects/Dist/Dist.h"
#include "k2c/Planner/Evaluate.h"
#include "k2c/Transforms/ExpectForm.h"
#include "k2c/Transforms/Passes.h"
#include "k2c/Transforms/PlanAttr.h"
#include "k2c/Transforms/Remark.h"
#include "llvm/ADT/SetVector.h"

namespace k2c {
#define GEN_PASS_DEF_PARTITIONSTAGES
#include "k2c/Transforms/Passes.h.inc"

using namespace mlir;

namespace {

/// The ops of one block that make `rows` of the step, from the embedding on, and what else reads what they make.
FailureOr<llvm::SetVector<Operation *>> makersOf(Value rows, nn::LayersOp layers) {
  llvm::SetVector<Operation *> makers;
  SmallVector<Value> open{rows};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (!nn::rowsOf(value.getType()))
      continue;
    Operation *maker = value.getDefiningOp();
    if (!maker || maker->getBlock() != layers->getBlock())
      return layers.emitOpError("takes rows that are not computed beside it, and stages begin where rows enter; embed "
                                "them in its function");
    if (makers.insert(maker))
      llvm::append_range(open, maker->getOperands());
  }
  return makers;
}

/// Rows of the step become those that enter here.
void enterHere(ArrayRef<Operation *> makers) {
  for (Operation *maker : makers)
    for (Value result : maker->getResults())
      if (nn::RowsAttr rows = nn::rowsOf(result.getType()); rows && rows.getKind() == nn::RowKind::Token) {
        auto type = cast<RankedTensorType>(result.getType());
        auto entering = nn::RowsAttr::get(result.getContext(), nn::RowKind::Entering);
        result.setType(RankedTensorType::get(type.getShape(), type.getElementType(), entering));
      }
}

/// What is behind the layers is computed of output rows, of which earlier stages have none.
LogicalResult checkBehind(nn::LayersOp layers) {
  for (Value output : layers.getOutputs())
    for (Operation *user : output.getUsers())
      if (!isa<nn::OutputRowsOp>(user))
        return user->emitOpError("reads rows of the last stage, and earlier ones have rows there, too; let it read "
                                 "those of nn.output_rows");
  return success();
}

struct PartitionStages : impl::PartitionStagesBase<PartitionStages> {
  using PartitionStagesBase::PartitionStagesBase;

  /// The layout and the stages of the plan say the same.
  LogicalResult checkPlan(ModuleOp module, int64_t stages) {
    dist::PlanAttr plan = planOf(module);
    Expected<ParallelLayout> layout =
        plan ? parseLayout(plan.getLayout().str(), PlanPhase::Serve) : Expected<ParallelLayout>(ParallelLayout());
    if (!layout)
      return module.emitError() << "partition-stages: " << layout.error().text();
    if (layout->pp == stages)
      return success();
    return module.emitError() << "partition-stages: the plan's layout has pp=" << layout->pp << ", and its stages are "
                              << stages << "; say both alike";
  }

  LogicalResult partition(nn::LayersOp layers, int64_t &site) {
    if (layers.getCarried().size() != 1 || !layers.getRead().empty())
      return layers.emitOpError("carries ")
             << layers.getCarried().size() << " values and reads " << layers.getRead().size()
             << ", and one goes from stage to stage; compile it for stages of one, pp=1";
    FailureOr<llvm::SetVector<Operation *>> makers = makersOf(layers.getCarried().front(), layers);
    if (failed(makers) || failed(checkBehind(layers)))
      return failure();
    Value rows = layers.getCarried().front();
    Type token = rows.getType();
    enterHere(makers->getArrayRef());
    OpBuilder b(layers);
    const int64_t receives = site, sends = site + 1;
    site += 2;
    auto received = dist::ReceiveOp::create(b, layers.getLoc(), token, rows, receives);
    layers.getCarriedMutable().assign(received.getResult());
    layers.setOfStage(true);
    b.setInsertionPointAfter(layers);
    dist::SendOp::create(b, layers.getLoc(), layers.getOutputs().front(), sends, receives);
    return success();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(expectForm(module, getArgument(), Form::Distributed, Form::Distributed)))
      return signalPassFailure();
    ArrayRef<int64_t> stages = stagesOf(module);
    if (failed(checkPlan(module, std::max<int64_t>(static_cast<int64_t>(stages.size()) - 1, 1))))
      return signalPassFailure();
    SmallVector<nn::LayersOp> lists;
    module.walk([&](nn::LayersOp layers) {
      if (!layers.getOfStage())
        lists.push_back(layers);
    });
    if (stages.empty() || lists.empty())
      return markAllAnalysesPreserved();
    int64_t site = dist::countSites(module);
    for (nn::LayersOp layers : lists) {
      const int64_t end = cast<nn::LayerRunAttr>(layers.getRuns().getValue().back()).getTo();
      if (end != stages.back()) {
        layers.emitOpError("ends with layer ")
            << end << ", the plan's stages with layer " << stages.back() << "; plan the stages of this model";
        return signalPassFailure();
      }
      if (failed(partition(layers, site)))
        return signalPassFailure();
    }
    const auto count = static_cast<int64_t>(stages.size()) - 1;
    remark(module.getLoc(), "partition-stages", "stages",
           std::to_string(stages.back()) + " layers on " + std::to_string(count) + " stages of " +
               std::to_string(stageRanksOf(module).ranks) + (stageRanksOf(module).ranks == 1 ? " rank" : " ranks"),
           {{"stages", count}, {"layers", stages.back()}});
  }
};

} // namespace
} // namespace k2c

//===- StageMemory.cpp - What a stage of ranks has -------------------------===//
#include "k2c/Transforms/StageMemory.h"
#include "k2c/Kernels/WeightShare.h"
#include "k2c/Transforms/PlanAttr.h"
#include <limits>

using namespace mlir;

namespace k2c {

SmallVector<Stage> stageList(ModuleOp module) {
  ArrayRef<int64_t> bounds = stagesOf(module);
  if (bounds.empty())
    return {{0, std::numeric_limits<int64_t>::max(), true, true}};
  SmallVector<Stage> stages;
  for (size_t stage = 0; stage + 1 < bounds.size(); ++stage)
    stages.push_back({bounds[stage], bounds[stage + 1], stage == 0, stage + 2 == bounds.size()});
  return stages;
}

int64_t layersIn(nn::IndicesAttr layers, Stage stage) {
  return llvm::count_if(membersOf(layers.set()),
                        [&](int64_t layer) { return layer >= stage.from && layer < stage.end; });
}

/// How many slots of the family a rank of the stage maps.
static int64_t slotsIn(rt::WeightSlotsOp slots, SymbolTable &symbols, Stage stage) {
  auto family = symbols.lookup<nn::WeightsOp>(slots.getFamily());
  if (family && family.isLayered())
    return layersIn(family.getDomain("layer"), stage);
  if (!slots.getStage())
    return slots.getCount();
  return (*slots.getStage() == rt::StageEnd::First ? stage.isFirst : stage.isLast) ? slots.getCount() : 0;
}

int64_t weightBytesOf(ModuleOp module, Stage stage) {
  SymbolTable symbols(module);
  int64_t bytes = 0;
  for (auto slots : module.getOps<rt::WeightSlotsOp>())
    bytes += slotsIn(slots, symbols, stage) * slotBytes(slots.getBytes(), slots.getExperts().value_or(0));
  return bytes;
}

} // namespace k2c

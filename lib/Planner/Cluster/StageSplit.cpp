//===- StageSplit.cpp - Which layers a pipeline's stages have -------------------===//

#include "StageSplit.h"

#include "TrainStep.h"
#include "k2c/Planner/Count.h"
#include <algorithm>

using namespace k2c;

std::vector<int64_t> planner::layersOfStages(const ModelSpec &spec, const ParallelLayout &layout) {
  return layout.layers.empty()
             ? stageLayers(spec.layerCount(), stageCount(shapeOf(layout, 1)), StagePartition::Balanced)
             : layout.layers;
}

Status planner::checkSplit(const ModelSpec &spec, const ParallelLayout &layout, PlanPhase phase) {
  const char *remedy = "name each, as in layers=3+4x14+2";
  const int64_t stages = stageCount(shapeOf(layout, 1));
  if (int64_t(layout.layers.size()) != stages)
    return Error{"layers",
                 "are of " + std::to_string(layout.layers.size()) + " stages, " +
                     (phase == PlanPhase::Train ? std::string(nameOf(layout.schedule)) + " with " : "") + "pp " +
                     std::to_string(layout.pp) +
                     (layout.chunks > 1 ? " and chunks " + std::to_string(layout.chunks) : "") + " has " +
                     std::to_string(stages),
                 remedy};
  Checked sum = 0;
  for (int64_t each : layout.layers)
    sum += each;
  if (!sum.isValid() || sum.value() != spec.layerCount())
    return Error{"layers",
                 "sum to " + (sum.isValid() ? std::to_string(sum.value()) : "more than 2^63") + ", model '" +
                     spec.name + "' has " + std::to_string(spec.layerCount()),
                 remedy};
  if (phase == PlanPhase::Serve && std::count(layout.layers.begin(), layout.layers.end(), 0) > 0)
    return Error{"layers", "has a stage of 0 layers, and a stage that serves has one at least", remedy};
  return Status::success();
}

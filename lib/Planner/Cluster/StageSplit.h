//===- StageSplit.h - Which layers a pipeline's stages have ---------------------===//
#ifndef K2C_LIB_PLANNER_CLUSTER_STAGESPLIT_H
#define K2C_LIB_PLANNER_CLUSTER_STAGESPLIT_H

#include "k2c/Model/ModelSpec.h"
#include "k2c/Planner/ClusterPlan.h"
#include <vector>

namespace k2c::planner {

/// Layers of each stage of a layout: those it names, or as even as they can be.
std::vector<int64_t> layersOfStages(const ModelSpec &spec, const ParallelLayout &layout);

/// Whether the layers that a layout names are those of the model, in as many stages as it has. A stage that serves has
/// one at least; one that trains may hold an embedding or a head alone.
Status checkSplit(const ModelSpec &spec, const ParallelLayout &layout, PlanPhase phase);

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_CLUSTER_STAGESPLIT_H

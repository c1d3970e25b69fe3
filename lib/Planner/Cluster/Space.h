//===- Space.h - The layouts that a search looks at ---------------------------===//
#ifndef K2C_LIB_PLANNER_CLUSTER_SPACE_H
#define K2C_LIB_PLANNER_CLUSTER_SPACE_H

#include "k2c/Planner/Evaluate.h"
#include <vector>

namespace k2c::planner {

/// Every serving layout that fills the topology or, for the objectives that want few, less of it: tp within a node; 1
/// to 8 stages; experts over divisors and multiples of a node; two-batch overlap or none; redundant experts where loads
/// are known or slots need filling. Not all divide the model.
std::vector<ParallelLayout> servingSpace(const PlanRequest &request);

/// Every training layout: tp within a node, powers of two of stages, ep over divisors of a stage's ranks, all
/// schedules, recomputation sets, sharded optimizer states (and parameters), micro-batches of 1 to 4 sequences.
std::vector<ParallelLayout> trainingSpace(const PlanRequest &request);

/// Numbers of devices that lie well on the topology, ascending: divisors of a node, whole nodes.
std::vector<int64_t> alignedDevices(const Topology &topology);

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_CLUSTER_SPACE_H

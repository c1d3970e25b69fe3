//===- Space.h - The layouts that a search looks at ---------------------------===//
#ifndef K2C_LIB_PLANNER_CLUSTER_SPACE_H
#define K2C_LIB_PLANNER_CLUSTER_SPACE_H

#include "k2c/Planner/Evaluate.h"
#include <vector>

namespace k2c::planner {

/// Every serving layout of one replica: tp within a node; 1 to 8 stages; experts over divisors and multiples of a node,
/// whole or each divided among 2 to 8 neighbours; cp where the longest sequence leaves each rank 8,192 tokens;
/// two-batch overlap or none; redundant experts where loads are known or slots need filling. Not all divide the model;
/// tp and etp of programs that k2c compile has end at its leaf borders.
std::vector<ParallelLayout> replicaSpace(const PlanRequest &request);

/// Those of replicaSpace in as many replicas as the topology has room for and, for the objectives that want few, one.
/// Of programs that k2c compile has, those that it accepts in as many replicas, and those that it refuses for cp alone.
std::vector<ParallelLayout> servingSpace(const PlanRequest &request);

/// Every training layout: tp within a node, cp as in serving, powers of two of stages, ep over divisors of a stage's
/// ranks, etp where ep cannot be doubled (with as many ranks, whole experts send less and hold as much), all schedules,
/// recomputation sets, sharded optimizer states (and parameters), micro-batches of 1 to 4 sequences.
std::vector<ParallelLayout> trainingSpace(const PlanRequest &request);

/// Every way of dividing a model for training among so many devices, without schedules and what is kept.
std::vector<ParallelLayout> trainingWays(const PlanRequest &request, int64_t devices);

/// What training layouts of a model may compute again, ascending by what they free: the published sets where the model
/// has their tensors, else norms and activations.
std::vector<RecomputeSet> recomputeSets(const ModelSpec &spec);

/// `set` without what the model does not have; itself where the model has all of it.
RecomputeSet recomputedOf(const ModelSpec &spec, RecomputeSet set);

/// Numbers of devices that lie well on the topology, ascending: divisors of a node, whole nodes.
std::vector<int64_t> alignedDevices(const Topology &topology);

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_CLUSTER_SPACE_H

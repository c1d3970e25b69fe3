//===- Workers.h - What the workers of the topology have to do ------------===//
#ifndef K2C_LIB_PIPELINES_WORKERS_H
#define K2C_LIB_PIPELINES_WORKERS_H

#include "k2c/Cluster/Topology.h"
#include "k2c/Kernels/WeightShare.h"
#include "k2c/Planner/KernelTime.h"
#include "k2c/Planner/Plan.h"

namespace k2c {

/// Adds remarks to `plan`, for a worker on each core of `device`: with several NUMA nodes, the weights that each node
/// reads (place-workers); the kernels whose launches have fewer items than there are workers when the step has one row
/// a sequence (share-launches). Kernels whose items are rows have as many as the step, and are left out.
void remarkWorkers(const Device &device, const std::vector<SlotShares> &shares,
                   const std::vector<ProgramKernel> &kernels, Plan &plan);

} // namespace k2c

#endif // K2C_LIB_PIPELINES_WORKERS_H

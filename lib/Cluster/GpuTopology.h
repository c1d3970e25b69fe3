//===- GpuTopology.h - What a driver states of a GPU, as a topology ---------===//
#ifndef K2C_LIB_CLUSTER_GPUTOPOLOGY_H
#define K2C_LIB_CLUSTER_GPUTOPOLOGY_H

#include "base/Gpu.h"
#include "k2c/Cluster/Topology.h"

namespace k2c::cluster {

/// What decides a device's rates, as the driver states it; 0: it does not.
struct GpuClocks {
  int multiprocessors = 0, kilohertz = 0, memoryKilohertz = 0, memoryBits = 0, l2Bytes = 0;
};

/// The topology `gpu` of this device. Errors: no code for its architecture; clocks that are not stated.
Expected<Topology> topologyOf(const GpuFacts &gpu, const GpuClocks &clocks);

} // namespace k2c::cluster

#endif // K2C_LIB_CLUSTER_GPUTOPOLOGY_H

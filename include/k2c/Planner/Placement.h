//===- Placement.h - Which rank holds which expert, and how often -------------===//
//
// Expert parallelism waits for its fullest rank. Replicas of hot experts level the load (rebalanceExperts: the
// published hierarchical and global policies). Experts that tokens choose together belong on one node, because a token
// crosses to a node once however many experts it visits there (placeByAffinity).
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_PLACEMENT_H
#define K2C_PLANNER_PLACEMENT_H

#include "base/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace k2c {

/// Load of one layer's experts: tokens that chose each, finite and not negative.
using ExpertLoad = std::vector<float>;

/// What replicas are spread over. GPU g holds the slots [g replicas/gpus, (g+1) replicas/gpus); node n its equal run
/// of GPUs.
struct ReplicaLayout {
  int64_t replicas = 1; ///< physical slots of a layer, at least one for each expert
  int64_t groups = 1;   ///< expert groups of the router; 1: none
  int64_t nodes = 1;
  int64_t gpus = 1;

  /// Groups are packed onto nodes whole when they divide; otherwise one group on one node.
  bool isHierarchical() const { return groups % nodes == 0; }
};

/// Slots of one layer.
struct ReplicaPlacement {
  std::vector<int32_t> expertOfSlot;               ///< [replicas]
  std::vector<std::vector<int32_t>> slotsOfExpert; ///< [experts], in the order in which the replicas were made

  int64_t count(int64_t expert) const { return int64_t(slotsOfExpert[expert].size()); }
};

/// What in a layout does not divide `experts` experts. `where` is the key: num_replicas, num_groups, num_gpus.
Status checkLayout(const ReplicaLayout &layout, int64_t experts);

/// Replicates and packs one layer: expert groups onto nodes by load, the heaviest expert of a node (load / replicas)
/// doubled until its slots are used, replicas onto the node's GPUs by load. Reproduces DeepSeek's published balancer
/// with a stable descending sort: float32 arithmetic, every tie to the lowest index. The layout passes checkLayout.
/// Two replicas of one expert may lie on one GPU. Time: replicas * log(replicas).
ReplicaPlacement rebalanceExperts(const ExpertLoad &load, const ReplicaLayout &layout);

/// Each expert in the slot of its number: no replicas, no balance.
ReplicaPlacement placeOnceInOrder(int64_t experts);

/// Load of each GPU when an expert's tokens spread evenly over its replicas.
std::vector<double> gpuLoads(const ExpertLoad &load, const ReplicaPlacement &placement, int64_t gpus);

/// Mean over largest of loads, 1 at best; 1 without any load.
double balancedness(const std::vector<double> &loads);

} // namespace k2c

#endif // K2C_PLANNER_PLACEMENT_H

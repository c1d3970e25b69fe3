//===- Affinity.h - Experts that are chosen together on one node --------------===//
//
// With node-deduplicated dispatch a token crosses once to each node that holds one of its experts, so what a layer
// sends between nodes is the mean number of nodes that a token visits. Experts that tokens choose together therefore
// belong on one node, as far as its slots and an even load allow.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_AFFINITY_H
#define K2C_PLANNER_AFFINITY_H

#include <cstdint>
#include <vector>

namespace k2c {

/// Which experts the tokens of one layer chose together.
struct CoActivation {
  int64_t experts = 1;
  double topK = 1; ///< experts of a token, the mean where tokens differ
  double tokens = 0;
  std::vector<double> together;              ///< [experts][experts], symmetric; the diagonal is the load
  std::vector<std::vector<int32_t>> choices; ///< distinct experts of a token, ascending; empty: only pairs are known
  std::vector<double> counts;                ///< tokens that made each choice

  double load(int64_t expert) const { return together[expert * experts + expert]; }
};

/// Pairs and loads of choices.
CoActivation coActivationOf(int64_t experts, std::vector<std::vector<int32_t>> choices, std::vector<double> counts);

/// Room for experts: nodes of equally many GPUs.
struct AffinityCapacity {
  int64_t nodes = 1;
  int64_t gpus = 1;
  int64_t expertsPerGpu = 1; ///< slots; gpus * expertsPerGpu >= experts
  double imbalance = 1.1;    ///< largest load of a node over the mean that a placement may cause

  int64_t slotsPerNode() const { return gpus / nodes * expertsPerGpu; }
  int64_t nodeOf(int64_t gpu) const { return gpu / (gpus / nodes); }
};

/// Experts in order over the GPUs, the placement without a plan. [experts] -> GPU
std::vector<int32_t> placeInOrder(int64_t experts, const AffinityCapacity &capacity);

/// Greedy growth of nodes, then swaps of two experts while they help: first those that end an overload, then those
/// that raise the pairs inside nodes, then (choices known) those that lower the exact mean. Deterministic; each
/// search ends after 64 sweeps or 4e7 steps (pairs judged, choices read). Inside a node GPUs are filled by load.
/// [experts] -> GPU
std::vector<int32_t> placeByAffinity(const CoActivation &co, const AffinityCapacity &capacity);

/// Mean number of nodes that a token visits: exact from choices (both equal). From pairs alone it is only bounded: a
/// token with P pairs inside nodes visits at least max(k - P, k^2/(k + 2P)) and at most k - 2P/k of them.
struct NodesVisited {
  double min = 0;
  double max = 0;
};
NodesVisited nodesVisited(const CoActivation &co, const AffinityCapacity &capacity,
                          const std::vector<int32_t> &gpuOfExpert);

/// Tokens for the experts of each GPU.
std::vector<double> affinityLoads(const CoActivation &co, const AffinityCapacity &capacity,
                                  const std::vector<int32_t> &gpuOfExpert);

} // namespace k2c

#endif // K2C_PLANNER_AFFINITY_H

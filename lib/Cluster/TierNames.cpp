//===- TierNames.cpp - What links between two ranks are called ----------------===//
#include "k2c/Cluster/TierNames.h"

#include "k2c/Cluster/Topology.h"

std::array<std::string, 2> k2c::tierNames(const Topology &topology) {
  const bool hasOuter = !topology.tiers.empty() && topology.tiers.back().name != "node";
  return {"node", hasOuter ? topology.tiers.back().name : "network"};
}

std::array<std::vector<std::string>, 2> k2c::foldedTiers(const Topology &topology) {
  std::array<std::vector<std::string>, 2> folded;
  const int64_t devicesPerNode = topology.devicesPerNode();
  int64_t devices = 1;
  for (const Tier &tier : topology.tiers) {
    devices *= tier.count;
    if (tier.count > 1)
      folded[devices > devicesPerNode ? 1 : 0].push_back(tier.name);
  }
  for (std::vector<std::string> &names : folded)
    if (names.size() == 1)
      names.clear();
  return folded;
}

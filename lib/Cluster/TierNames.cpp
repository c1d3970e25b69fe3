//===- TierNames.cpp - What links between two ranks are called ----------------===//
#include "k2c/Cluster/TierNames.h"

#include "k2c/Cluster/Topology.h"

std::array<std::string, 2> k2c::tierNames(const Topology &topology) {
  const bool hasOuter = !topology.tiers.empty() && topology.tiers.back().name != "node";
  return {"node", hasOuter ? topology.tiers.back().name : "network"};
}

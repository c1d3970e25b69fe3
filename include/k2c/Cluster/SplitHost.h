//===- SplitHost.h - A measured machine as several ranks ------------------===//
#ifndef K2C_CLUSTER_SPLITHOST_H
#define K2C_CLUSTER_SPLITHOST_H

#include "k2c/Cluster/Topology.h"

namespace k2c {

/// The links that lie between `ranks` equal ranks of a machine of `cores` processors, as tiers, the outermost called
/// "node"; rates are those of the largest read, where measured. Errors: processors that are not joined evenly, or that
/// ranks would cut unevenly.
Expected<std::vector<Tier>> tiersBetween(const std::vector<LinkRates> &links, int64_t cores, int64_t ranks);

/// A measured host as `ranks` equal ranks: these tiers, and a device that is one rank's share. Errors: likewise; links
/// that were not measured.
Expected<Topology> splitHost(const Topology &host, int64_t ranks);

} // namespace k2c

#endif // K2C_CLUSTER_SPLITHOST_H

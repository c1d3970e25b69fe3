//===- HostTiers.h - How the processors of this machine are joined --------===//
#ifndef K2C_CLUSTER_HOSTTIERS_H
#define K2C_CLUSTER_HOSTTIERS_H

#include <cstdint>
#include <string>
#include <vector>

namespace k2c {

/// Units that one more thing joins: threads of a core, cores of a last cache, caches of a NUMA node, NUMA nodes of a
/// socket, sockets of the node.
struct HostTier {
  std::string name;  ///< what they are joined to: core, cache, numa, socket, node
  int64_t count = 1; ///< units of the tier below in the largest unit; a processor is the innermost
  int first = 0;     ///< a processor of one of them
  int second = 0;    ///< a processor of its neighbour
};

/// The tiers among `processors` that join more than one unit, the innermost first, as sysfs below `root` describes
/// them. What cannot be read joins nothing: without sysfs all are joined by the node.
std::vector<HostTier> hostTiers(const std::vector<int> &processors, const std::string &root = "/");

} // namespace k2c

#endif // K2C_CLUSTER_HOSTTIERS_H

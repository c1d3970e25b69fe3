//===- TierNames.h - What links between two ranks are called ------------------===//
#ifndef K2C_CLUSTER_TIERNAMES_H
#define K2C_CLUSTER_TIERNAMES_H

#include <array>
#include <string>
#include <vector>

namespace k2c {

struct Topology;

/// Of links within a node, and of links between nodes; a program knows these two. "node" is what tiers up to the one of
/// that name are together; all beyond it have the name of the outermost.
std::array<std::string, 2> tierNames(const Topology &topology);

/// For each of the two, the tiers of the topology that it stands for, the innermost first, where they are several. A
/// tier of one unit joins nothing, and does not count.
std::array<std::vector<std::string>, 2> foldedTiers(const Topology &topology);

} // namespace k2c

#endif // K2C_CLUSTER_TIERNAMES_H

// What `run info` and the start of a run say about nodes: pure functions of the manifest and of what was found.
#ifndef K2RT_DEVICE_CPU_PLACEMENTREPORT_H
#define K2RT_DEVICE_CPU_PLACEMENTREPORT_H

#include "base/Container.h"
#include "device/cpu/FirstTouch.h"
#include "program/Manifest.h"

namespace k2c::runtime {

/// A node with its workers, and what they alone read.
struct NodeShare {
  int32_t node = 0, memory = 0;         ///< as in Node
  int32_t firstWorker = 0, workers = 0; ///< consecutive; no workers: the team is smaller than the nodes
  int64_t processors = 0;
  int64_t weights = 0; ///< bytes
};
std::vector<NodeShare> shareOverNodes(const Manifest &manifest, const Container &container, int32_t workers);

/// "8 workers on 2 NUMA nodes, each on a processor of its own", a line for each node that has workers.
std::string placementText(const Manifest &manifest, const Container &container, int32_t workers);

/// Why weights are not where their workers are, with the remedy; empty where they are. `folder`: the bundle.
std::string misplacementNote(const WeightPageCounts &pageCounts, const std::string &folder);

/// That many of the `possible` bytes of weights lie in small pages, with the remedy; empty where at least three
/// quarters lie in huge ones (`huge` bytes), and where none do: then the file system has none.
std::string smallPagesNote(int64_t huge, int64_t possible, const std::string &folder);

/// How this machine differs from the NUMA topology the program was compiled for; empty where it does not, and for
/// programs of one node.
std::string topologyNote(const Manifest &manifest, const Container &container);

} // namespace k2c::runtime

#endif

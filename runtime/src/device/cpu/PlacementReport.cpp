// Sentences with their numbers.
#include "device/cpu/PlacementReport.h"
#include "base/FormatBytes.h"
#include <cstring>

namespace k2c::runtime {

/// "1 node", "2 nodes".
static std::string counted(int64_t count, const std::string &what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

/// "worker 0", "workers 4-7".
static std::string workersText(const NodeShare &share) {
  const std::string first = std::to_string(share.firstWorker);
  return share.workers == 1 ? "worker " + first
                            : "workers " + first + "-" + std::to_string(share.firstWorker + share.workers - 1);
}

std::vector<NodeShare> shareOverNodes(const Manifest &manifest, const Container &container, int32_t workers) {
  std::vector<NodeShare> shares;
  for (const Node &node : container.nodes)
    shares.push_back({node.number, node.memory, 0, 0, static_cast<int64_t>(node.processors.size()), 0});
  const std::vector<WorkerBinding> bindings = bindingsOfWorkers(container.nodes, workers);
  for (int32_t worker = 0; worker < workers; ++worker) {
    NodeShare &share = shares[bindings[worker].node];
    if (share.workers++ == 0)
      share.firstWorker = worker;
  }
  for (NodeShare &share : shares)
    for (const SlotShares &run : manifest.shares)
      share.weights += run.slots / run.parts *
                       k2rt_share_bytes(&run.share, share.firstWorker, share.firstWorker + share.workers, workers);
  return shares;
}

std::string placementText(const Manifest &manifest, const Container &container, int32_t workers) {
  const std::vector<NodeShare> shares = shareOverNodes(manifest, container, workers);
  std::string text = "workers    " + std::to_string(workers) + " on " +
                     counted(static_cast<int64_t>(shares.size()), "NUMA node") + " with " +
                     counted(static_cast<int64_t>(container.processors.size()), "processor");
  if (static_cast<size_t>(workers) == container.processors.size())
    text += ", each on one of its own";
  text += "\n";
  if (shares.size() > 1)
    for (const NodeShare &share : shares) {
      text += "           node " + std::to_string(share.node) + ": ";
      if (share.workers == 0)
        text += "no workers";
      else
        text += workersText(share) + ", " + counted(share.processors, "processor") + ", " + formatBytes(share.weights) +
                " of weights of its own" +
                (share.memory == share.node ? "" : ", in memory of node " + std::to_string(share.memory));
      text += "\n";
    }
  return text;
}

/// How pages leave the page cache, so that the next run decides how they come back.
static std::string dropRemedy(const std::string &folder) {
  return "end the programs that use them, drop them with: for f in '" + folder +
         "'/weights/*.bin; do dd if=\"$f\" iflag=nocache count=0; done, and start again";
}

std::string misplacementNote(const WeightPageCounts &pageCounts, const std::string &folder) {
  if (pageCounts.refusal != 0)
    return std::string("the system does not tell on which NUMA node memory lies (move_pages: ") +
           std::strerror(pageCounts.refusal) + "): weights were read node by node, but this was not checked";
  // Pages at the borders of ranges belong to two workers.
  if (pageCounts.elsewhere <= pageCounts.bytes / 32)
    return "";
  const int64_t percent = pageCounts.elsewhere * 100 / pageCounts.bytes;
  return "about " + formatBytes(pageCounts.elsewhere) + " of " + formatBytes(pageCounts.bytes) + " of weights (" +
         std::to_string(percent) +
         " %) lie in memory of another NUMA node than the workers that read them, because the page cache held them "
         "before, or under a memory policy (numactl); to place them, " +
         dropRemedy(folder);
}

std::string smallPagesNote(int64_t huge, int64_t possible, const std::string &folder) {
  if (huge == 0 || possible - huge <= possible / 4)
    return "";
  return "only " + formatBytes(huge) + " of " + formatBytes(possible) + " of weights (" +
         std::to_string(huge * 100 / possible) +
         " %) lie in huge pages, because something read them before in small ones, and a step of few sequences can "
         "take a "
         "quarter longer; to have them read again, " +
         dropRemedy(folder);
}

std::string topologyNote(const Manifest &manifest, const Container &container) {
  const auto processors = static_cast<int64_t>(container.processors.size());
  const size_t nodes = container.nodes.size();
  if (manifest.numa.size() < 2 || (manifest.numa.size() == nodes && processors >= manifest.cores))
    return "";
  return "compiled for " + counted(manifest.cores, "core") + " on " +
         counted(static_cast<int64_t>(manifest.numa.size()), "NUMA node") + " (topology " + manifest.topology +
         "), this process may use " + counted(processors, "processor") + " on " +
         counted(static_cast<int64_t>(nodes), "node") +
         ": workers and memory follow this machine, predicted seconds do not";
}

} // namespace k2c::runtime

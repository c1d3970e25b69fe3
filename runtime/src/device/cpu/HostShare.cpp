// Ranks take processors as workers do: in the order of the nodes, so that a rank is on as few of them as possible.
#include "device/cpu/HostShare.h"
#include <algorithm>

namespace k2c::runtime {

Container partOf(const Container &host, const HostShare &share) {
  Container part = host;
  if (share.ranks > 1)
    part.defaultThreads = std::max(1, host.defaultThreads / share.ranks);
  if (!share.isApart(host))
    return part;
  const auto count = static_cast<int64_t>(host.processors.size());
  const int64_t begin = share.index * count / share.ranks, end = (share.index + 1) * count / share.ranks;
  part.processors.clear();
  part.nodes.clear();
  int64_t number = 0;
  for (const Node &node : host.nodes) {
    Node own = node;
    own.processors.clear();
    for (int processor : node.processors)
      if (const int64_t at = number++; at >= begin && at < end)
        own.processors.push_back(processor);
    part.processors.insert(part.processors.end(), own.processors.begin(), own.processors.end());
    if (!own.processors.empty())
      part.nodes.push_back(std::move(own));
  }
  std::sort(part.processors.begin(), part.processors.end());
  part.defaultThreads = std::min(part.defaultThreads, static_cast<int32_t>(part.processors.size()));
  return part;
}

int32_t spinsOf(const HostShare &share, const Container &host, int32_t workers) {
  constexpr int32_t ownProcessorSpins = 4000; // as long as a barrier's
  return share.isCrowded(host, workers + 1) ? 0 : ownProcessorSpins;
}

} // namespace k2c::runtime

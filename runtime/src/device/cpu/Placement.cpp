// Two passes: the node of each worker, then the counts that `owns` needs.
#include "k2rt/Placement.h"
#include <algorithm>

namespace k2c::runtime {

std::vector<WorkerPlace> placeWorkers(const std::vector<Node> &nodes, int32_t workers) {
  std::vector<std::pair<int32_t, int>> processors; // (node, processor) in the order of the nodes
  for (size_t node = 0; node < nodes.size(); ++node)
    for (int processor : nodes[node].processors)
      processors.emplace_back(static_cast<int32_t>(node), processor);
  std::vector<WorkerPlace> places(static_cast<size_t>(workers));
  std::vector<int64_t> counts(nodes.size(), 0);
  for (int32_t worker = 0; worker < workers; ++worker) {
    const auto &[node, processor] = processors[static_cast<int64_t>(worker) * processors.size() / workers];
    WorkerPlace &place = places[worker];
    place.node = node;
    place.index = counts[node]++;
    if (static_cast<size_t>(workers) == processors.size())
      place.processors = {processor};
    else if (nodes.size() > 1)
      place.processors = nodes[node].processors;
  }
  const auto turns = static_cast<int64_t>(nodes.size()) - std::count(counts.begin(), counts.end(), 0);
  for (WorkerPlace &place : places) {
    place.count = counts[place.node];
    place.turns = turns;
    place.turn = std::count_if(counts.begin(), counts.begin() + place.node, [](int64_t count) { return count > 0; });
  }
  return places;
}

} // namespace k2c::runtime

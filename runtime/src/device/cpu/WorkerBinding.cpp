// Two passes: the node of each worker, then the counts that `owns` needs.
#include "k2rt/WorkerBinding.h"
#include <algorithm>

namespace k2c::runtime {

std::vector<WorkerBinding> bindingsOfWorkers(const std::vector<Node> &nodes, int32_t workers, bool isApart) {
  std::vector<std::pair<int32_t, int>> processors; // (node, processor) in the order of the nodes
  for (size_t node = 0; node < nodes.size(); ++node)
    for (int processor : nodes[node].processors)
      processors.emplace_back(static_cast<int32_t>(node), processor);
  std::vector<WorkerBinding> bindings(static_cast<size_t>(workers));
  std::vector<int64_t> counts(nodes.size(), 0);
  for (int32_t worker = 0; worker < workers; ++worker) {
    const auto &[node, processor] = processors[static_cast<int64_t>(worker) * processors.size() / workers];
    WorkerBinding &binding = bindings[worker];
    binding.node = node;
    binding.index = counts[node]++;
    if (static_cast<size_t>(workers) == processors.size())
      binding.processors = {processor};
    else if (nodes.size() > 1 || isApart)
      binding.processors = nodes[node].processors;
  }
  const auto withWorkers = static_cast<int64_t>(nodes.size()) - std::count(counts.begin(), counts.end(), 0);
  for (WorkerBinding &binding : bindings) {
    binding.count = counts[binding.node];
    binding.nodes = withWorkers;
    binding.nodeIndex =
        std::count_if(counts.begin(), counts.begin() + binding.node, [](int64_t count) { return count > 0; });
  }
  return bindings;
}

} // namespace k2c::runtime

// sysfs: node/online names the nodes, node/has_memory those with memory, node/nodeN/cpulist the processors of one,
// node/nodeN/distance its distance to each node that is online, in their order.
#include "base/Nodes.h"
#include "base/SmallFile.h"
#include <algorithm>
#include <climits>
#include <cstdlib>

namespace k2c {

static const char nodeFolder[] = "sys/devices/system/node/";

std::vector<int> parseNumberList(const std::string &text) {
  constexpr long most = 65536;
  std::vector<int> numbers;
  for (const char *at = text.c_str(); *at >= '0' && *at <= '9';) {
    char *end = nullptr;
    const long first = std::strtol(at, &end, 10);
    const long last = *end == '-' ? std::strtol(end + 1, &end, 10) : first;
    if (first >= most || last < first || last >= most)
      return {};
    for (long number = first; number <= last; ++number)
      numbers.push_back(static_cast<int>(number));
    at = *end == ',' ? end + 1 : end;
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

/// The nearest node with memory as `number` sees it; itself when nothing is known.
static int32_t nearestMemory(int number, const std::vector<int> &online, const std::vector<int> &withMemory,
                             const std::string &root) {
  if (withMemory.empty() || std::binary_search(withMemory.begin(), withMemory.end(), number))
    return number;
  const std::string text = readSmallFile(root + nodeFolder + "node" + std::to_string(number) + "/distance");
  int nearest = number;
  long shortest = LONG_MAX;
  const char *at = text.c_str();
  for (int other : online) {
    char *end = nullptr;
    const long distance = std::strtol(at, &end, 10);
    if (end == at)
      break;
    at = end;
    if (distance < shortest && std::binary_search(withMemory.begin(), withMemory.end(), other)) {
      nearest = other;
      shortest = distance;
    }
  }
  return nearest;
}

std::vector<Node> readNodes(const std::vector<int> &processors, const std::string &root) {
  const std::vector<int> online = parseNumberList(readSmallFile(root + nodeFolder + "online"));
  std::vector<Node> nodes;
  if (online.size() > 1) {
    const std::vector<int> withMemory = parseNumberList(readSmallFile(root + nodeFolder + "has_memory"));
    std::vector<int> missing = processors;
    for (int number : online) {
      const std::string list = readSmallFile(root + nodeFolder + "node" + std::to_string(number) + "/cpulist");
      const std::vector<int> all = parseNumberList(list);
      Node node{number, {}, 0};
      std::set_intersection(missing.begin(), missing.end(), all.begin(), all.end(),
                            std::back_inserter(node.processors));
      if (node.processors.empty())
        continue;
      std::vector<int> left;
      std::set_difference(missing.begin(), missing.end(), all.begin(), all.end(), std::back_inserter(left));
      missing = std::move(left);
      node.memory = nearestMemory(number, online, withMemory, root);
      nodes.push_back(std::move(node));
    }
    if (!nodes.empty()) {
      std::vector<int> &first = nodes.front().processors;
      first.insert(first.end(), missing.begin(), missing.end());
      std::sort(first.begin(), first.end());
    }
  }
  if (nodes.empty()) {
    const int32_t number = online.empty() ? 0 : online.front();
    nodes.push_back({number, processors, number});
  }
  return nodes;
}

} // namespace k2c

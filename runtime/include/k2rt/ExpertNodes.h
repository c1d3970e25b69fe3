//===- ExpertNodes.h - Which nodes have each expert --------------------------===//
//
// All that a router which is bound to nodes depends on of a placement. Its hash is part of the numerics id of such a
// program: compiler and runtime make it here, and a placement that leaves every expert on its nodes has the same.
//
//   for each MoE layer, for each expert, for each node:  a byte, 1 where one of the node's slots has the expert, else 0
//   hash: the last 8 hex digits of these bytes' XXH3-64
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_EXPERTNODES_H
#define K2RT_EXPERTNODES_H

#include "base/ExpertPlacement.h"
#include "base/Hash.h"
#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

namespace k2c {

class ExpertNodes {
public:
  ExpertNodes(int64_t experts, int64_t nodes) : experts(experts), nodes(nodes) {}

  /// The next layer, in the order of the checkpoint, by the expert of each of `slots` slots, -1: none. Each node has
  /// equally many in a row.
  void addLayer(const int32_t *expertOfSlot, int64_t slots) {
    const size_t first = bytes.size();
    bytes.resize(first + experts * nodes);
    for (int64_t slot = 0; slot < slots; ++slot)
      if (expertOfSlot[slot] >= 0)
        bytes[first + expertOfSlot[slot] * nodes + slot / (slots / nodes)] = 1;
  }
  int64_t layerCount() const {
    return experts * nodes == 0 ? 0 : static_cast<int64_t>(bytes.size()) / (experts * nodes);
  }
  int64_t nodeCount() const { return nodes; }
  /// Of the layer that was added as number `layer`.
  bool has(int64_t layer, int64_t expert, int64_t node) const {
    return bytes[(layer * experts + expert) * nodes + node] != 0;
  }
  std::string hash() const { return hashText(hashOf(bytes.data(), bytes.size())).substr(8); }

private:
  int64_t experts, nodes;
  std::vector<uint8_t> bytes; ///< [layers][experts][nodes]
};

/// By one phase of a placement.
inline ExpertNodes expertNodes(const ExpertPlacement &placement, std::vector<int32_t> PlacedExperts::*phase,
                               int64_t experts, int64_t nodes) {
  ExpertNodes found(experts, nodes);
  for (const auto &[layer, placed] : placement.layers)
    found.addLayer((placed.*phase).data(), static_cast<int64_t>((placed.*phase).size()));
  return found;
}

/// What the numerics id of a bound program ends in: "/m2-1234abcd", "/p0.25-1234abcd", "/m2-p0.25-1234abcd". `limit`
/// and `penalty` are 0 where there is none, `hash` is that of the nodes.
inline std::string boundNumerics(int64_t limit, double penalty, const std::string &hash) {
  char digits[32];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof digits, penalty);
  return "/" + (limit > 0 ? "m" + std::to_string(limit) + "-" : "") +
         (penalty > 0 ? "p" + std::string(digits, end.ptr) + "-" : "") + hash;
}

} // namespace k2c

#endif // K2RT_EXPERTNODES_H

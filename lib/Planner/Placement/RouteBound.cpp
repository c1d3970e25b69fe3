//===- RouteBound.cpp - Binding the experts of a token to few nodes -----------===//
//
// Choices are any numbers, so a router may keep any groups, and of the nodes that have some of their experts any. A
// token always gets its experts if the fewest that it may choose among are enough:
//
//   the least, over all sets of kept groups, of the experts of these groups on the `limit` nodes with the fewest,
//   among the nodes that have some
//
// Where fewer nodes than the limit have some, it may choose among all experts of its groups. Under a limit an expert is
// on one node: with copies on others a token might meet its experts on more nodes than it is bound to, as it takes a
// copy by what else it has chosen. A penalty has no such rule.
//
//===----------------------------------------------------------------------===//
#include "k2c/Planner/RouteBound.h"

#include "base/Utf8.h"
#include <algorithm>
#include <numeric>

namespace k2c {

namespace {

/// Sets of groups that are looked at, for each layer and limit. DeepSeek-V3 keeps 4 of 8 groups: 70.
constexpr int64_t maxSets = 20000;

/// Sets of `kept` of `groups` groups, or more than maxSets.
int64_t setsOfGroups(int64_t groups, int64_t kept) {
  int64_t sets = 1;
  for (int64_t i = 1; i <= std::min(kept, groups - kept) && sets <= maxSets; ++i)
    sets = sets * (groups - i + 1) / i;
  return sets;
}

/// The experts of a layer's groups on each node.
class LayerNodes {
public:
  LayerNodes(const MoeSpec &moe, const ExpertNodes &nodes, int64_t layer)
      : moe(moe), counts(nodes.nodeCount(), std::vector<int64_t>(moe.groups)) {
    for (int64_t expert = 0; expert < moe.experts; ++expert)
      for (int64_t node = 0; node < nodes.nodeCount(); ++node)
        counts[node][expert * moe.groups / moe.experts] += nodes.has(layer, expert, node);
  }

  /// The fewest experts among which a token may have to choose on `limit` nodes.
  int64_t fewest(int64_t limit) const {
    std::vector<char> isKept(moe.groups);
    std::fill_n(isKept.begin(), moe.topGroups, 1);
    int64_t least = moe.experts;
    do
      least = std::min(least, fewestOf(isKept, limit));
    while (std::prev_permutation(isKept.begin(), isKept.end()));
    return least;
  }

  bool operator==(const LayerNodes &other) const { return counts == other.counts; }

private:
  /// Of the kept groups, on the `limit` nodes with the fewest of those that have some.
  int64_t fewestOf(const std::vector<char> &isKept, int64_t limit) const {
    std::vector<int64_t> sums;
    for (const std::vector<int64_t> &ofNode : counts)
      sums.push_back(std::inner_product(ofNode.begin(), ofNode.end(), isKept.begin(), int64_t(0)));
    sums.erase(std::remove(sums.begin(), sums.end(), 0), sums.end());
    std::sort(sums.begin(), sums.end());
    sums.resize(std::min<size_t>(sums.size(), limit));
    return std::accumulate(sums.begin(), sums.end(), int64_t(0));
  }

  const MoeSpec &moe;
  std::vector<std::vector<int64_t>> counts; ///< [nodes][groups]
};

/// Refuses an expert that is on several nodes.
Status checkOneNode(const ModelSpec &spec, const ExpertNodes &nodes) {
  for (int64_t layer = 0; layer < nodes.layerCount(); ++layer)
    for (int64_t expert = 0; expert < spec.moe->experts; ++expert) {
      std::string found;
      for (int64_t node = 0; node < nodes.nodeCount(); ++node)
        if (nodes.has(layer, expert, node))
          found += (found.empty() ? "" : ", ") + std::to_string(node);
      if (found.find(',') != found.npos)
        return Error{"--route-limit",
                     "expert " + std::to_string(expert) + " of layer " + std::to_string(spec.moeLayers()[layer]) +
                         " is on nodes " + shortened(found) + ", and under a limit an expert is on one node",
                     "leave out one of --route-limit and --placement, or keep copies of an expert on its node"};
    }
  return {};
}

std::string counted(int64_t count, const char *what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

/// The first layer in which `limit` nodes leave a token fewer than its experts, and how many.
struct TooFew {
  int64_t layer = -1, experts = 0;
};
TooFew tooFew(const MoeSpec &moe, const std::vector<LayerNodes> &layers, int64_t limit) {
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const bool isAsBefore = layer > 0 && layers[layer] == layers[layer - 1];
    const int64_t fewest = isAsBefore ? moe.topK : layers[layer].fewest(limit);
    if (fewest < moe.topK)
      return {static_cast<int64_t>(layer), fewest};
  }
  return {};
}

Status checkLimit(const ModelSpec &spec, const ExpertNodes &nodes, int64_t limit) {
  const MoeSpec &moe = *spec.moe;
  const std::string kept = std::to_string(moe.topGroups) + " of " + std::to_string(moe.groups) + " groups";
  if (setsOfGroups(moe.groups, moe.topGroups) > maxSets)
    return Error{"--route-limit",
                 "the router keeps " + kept + ", which are more than the " + std::to_string(maxSets) +
                     " sets of groups that this build looks at",
                 "leave it out"};
  if (Status status = checkOneNode(spec, nodes); !status)
    return status;
  std::vector<LayerNodes> layers;
  for (int64_t layer = 0; layer < nodes.layerCount(); ++layer)
    layers.emplace_back(moe, nodes, layer);
  const TooFew found = tooFew(moe, layers, limit);
  if (found.layer < 0)
    return {};
  int64_t enough = limit + 1;
  while (enough < nodes.nodeCount() && tooFew(moe, layers, enough).layer >= 0)
    ++enough;
  return Error{"--route-limit",
               counted(limit, "node") + (limit == 1 ? " has" : " have") + " as few as " +
                   counted(found.experts, "expert") + (moe.topGroups < moe.groups ? " of " + kept : "") + " in layer " +
                   std::to_string(spec.moeLayers()[found.layer]) + ", and a token takes " + std::to_string(moe.topK),
               enough < nodes.nodeCount() ? "use --route-limit " + std::to_string(enough) : "leave it out"};
}

} // namespace

Status checkBinds(const ModelSpec &spec, const Topology &topology, int64_t nodes, const RouteBound &asked) {
  if (!asked.isBound())
    return {};
  const char *const flag = asked.limit > 0 ? "--route-limit" : "--locality-penalty";
  if (!spec.moe)
    return Error{flag, "model '" + shortened(spec.name) + "' has no experts, and experts are what is bound to nodes",
                 "leave it out"};
  const int64_t fewest = std::max<int64_t>(asked.limit, 1) + 1;
  if (nodes >= fewest)
    return {};
  return Error{flag,
               (asked.limit > 0 ? "is " + std::to_string(asked.limit) + ", " : "") + "topology '" +
                   shortened(topology.name) + "' has " + counted(nodes, "node") +
                   (topology.nodes() > nodes ? " a stage" : "") + ", and there are others to keep away from on " +
                   std::to_string(fewest) + " or more",
               nodes == 1 ? "leave it out, or use a topology of several nodes"
                          : "leave it out, or use at most " + std::to_string(nodes - 1)};
}

Status checkRouteBound(const ModelSpec &spec, const Topology &topology, const ExpertNodes &nodes,
                       const RouteBound &asked) {
  if (Status status = checkBinds(spec, topology, nodes.nodeCount(), asked); !status || asked.limit == 0)
    return status;
  return checkLimit(spec, nodes, asked.limit);
}

} // namespace k2c

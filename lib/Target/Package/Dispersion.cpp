//===- Dispersion.cpp - To how many nodes a token goes ------------------------===//
//
// A token chooses at most `topK` experts, of at most `topGroups` groups, on at most as many nodes as a route limit lets
// it: all bound the nodes that it goes to, and so do copies of experts on its own node. A penalty bounds nothing, as
// choices may differ by more. Sums that come back are as many as a receiver has whole subtrees, but no more than
// choices.
//
//===----------------------------------------------------------------------===//
#include "Dispersion.h"
#include "k2c/Planner/CompileLayout.h"
#include "k2rt/placement.h"
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

using nlohmann::json;

namespace k2c {

namespace {

/// The largest `count` of `numbers`, added up.
int64_t sumOfLargest(std::vector<int64_t> numbers, int64_t count) {
  std::sort(numbers.rbegin(), numbers.rend());
  return std::accumulate(numbers.begin(), numbers.begin() + std::min<int64_t>(count, int64_t(numbers.size())),
                         int64_t(0));
}

/// How far a token goes in a layer.
struct Spread {
  int64_t choices = 0; ///< nodes that have its experts, by the number of its choices alone
  int64_t nodes = 0;   ///< by the groups of the router, too
  int64_t away = 0;    ///< of these, other nodes than its own

  void includes(const Spread &other) {
    choices = std::max(choices, other.choices);
    nodes = std::max(nodes, other.nodes);
    away = std::max(away, other.away);
  }
};

/// A layer's experts, and who holds them.
class Placed {
public:
  Placed(const MoeSpec &moe, std::vector<int32_t> expertOf, int64_t ranks, int64_t nodes)
      : moe(moe), nodes(nodes), perRank(int64_t(expertOf.size()) / ranks), perNode(perRank * ranks / nodes),
        expertOf(std::move(expertOf)), nodesOf(moe.experts) {
    for (int64_t slot = 0; slot < int64_t(this->expertOf.size()); ++slot)
      if (const int32_t expert = this->expertOf[slot]; expert >= 0)
        nodesOf[expert].insert(slot / perNode);
  }

  /// At most, of a token of any node.
  Spread spread() const {
    Spread most;
    for (int64_t home = 0; home < nodes; ++home)
      most.includes(spreadFrom(home));
    return most;
  }
  /// The most sums that `count` holders send back, nodes or ranks.
  int64_t sums(int64_t count, bool areNodes) const {
    const int64_t held = areNodes ? perNode : perRank, slots = int64_t(expertOf.size());
    std::vector<int32_t> places(k2rt_places_entries(moe.experts, slots)), subtrees(moe.experts);
    k2rt_placement_list(places.data(), expertOf.data(), moe.experts, slots);
    k2rt_placement_subtrees(subtrees.data(), places.data(), moe.experts, held);
    std::vector<int64_t> each;
    for (int64_t first = 0; first < slots; first += held) {
      std::set<int32_t> own;
      for (int64_t slot = first; slot < first + held; ++slot)
        if (expertOf[slot] >= 0)
          own.insert(subtrees[expertOf[slot]]);
      each.push_back(int64_t(own.size()));
    }
    return std::min(moe.topK, sumOfLargest(each, count));
  }

private:
  /// A token takes what its own node has there.
  Spread spreadFrom(int64_t home) const {
    std::set<int64_t> all;
    std::vector<int64_t> ofGroups;
    for (int64_t group = 0; group < moe.groups; ++group) {
      std::set<int64_t> reached;
      for (int64_t e = group * moe.experts / moe.groups; e < (group + 1) * moe.experts / moe.groups; ++e)
        if (nodesOf[e].count(home))
          reached.insert(home);
        else
          reached.insert(nodesOf[e].begin(), nodesOf[e].end());
      ofGroups.push_back(int64_t(reached.size()));
      all.insert(reached.begin(), reached.end());
    }
    const int64_t choices = std::min(moe.topK, int64_t(all.size()));
    const int64_t most = std::min(choices, sumOfLargest(ofGroups, moe.topGroups));
    return {choices, most, std::min(most, int64_t(all.size() - all.count(home)))};
  }

  const MoeSpec &moe;
  int64_t nodes, perRank, perNode; ///< slots of a rank, of a node
  std::vector<int32_t> expertOf;   ///< by slot
  std::vector<std::set<int64_t>> nodesOf;
};

/// Bytes of a row of experts at the first site that crosses nodes, by quota or back.
int64_t rowBytes(const ProgramFacts &program, bool isQuota) {
  for (const CollectiveFact &site : program.collectives)
    if ((site.group == "ep" || site.group == "rail") && (site.quota > 0) == isQuota)
      return site.rowBytes;
  return 0;
}

/// Bytes of a token that go from stage to stage, where these are on several nodes; of the replica with the most.
int64_t bytesOfStages(const ParallelLayout &layout, const ProgramFacts &program, int64_t nodes) {
  int64_t crossings = 0, bytes = 0;
  for (int64_t replica = 0; replica < layout.replicas; ++replica)
    crossings = std::max(crossings, hopsOfReplica(layout, nodes, replica)[1]);
  for (const CollectiveFact &site : program.collectives)
    if (site.op == "send")
      bytes += crossings * site.rowBytes;
  return bytes;
}

} // namespace

json dispersionJson(const ModelSpec &spec, const Plan &plan, const ProgramFacts &program, const BundleFacts &bundle) {
  auto said = [](const char *kind, int64_t most, int64_t bytes) {
    return json{{"kind", kind}, {"nodes_per_token", {{"max", most}}}, {"inter_node_bytes_per_token", {{"max", bytes}}}};
  };
  const int64_t ranks = plan.layout.ep, nodes = nodesOfStage(plan.layout, bundle.nodes); // of a stage
  int64_t bytes = bytesOfStages(plan.layout, program, bundle.nodes);
  if (!spec.moe || nodes == 1)
    return said("none", 1, bytes);
  const bool isTwoHop = std::any_of(program.collectives.begin(), program.collectives.end(),
                                    [](const CollectiveFact &site) { return site.group == "rail"; });
  std::map<std::vector<int32_t>, std::pair<Spread, int64_t>> known; // bytes; layers are often alike
  Spread most;
  for (const auto &[layer, placed] : bundle.placement.layers) {
    auto [entry, isNew] = known.try_emplace(placed.decode);
    auto &[spread, ofLayer] = entry->second;
    if (isNew) {
      const Placed experts(*spec.moe, placed.decode, ranks, nodes);
      spread = experts.spread();
      if (program.bound.limit > 0) // an expert is on one node then
        spread.away = std::min(spread.away, program.bound.limit);
      const int64_t receivers = isTwoHop ? spread.away : std::min(spec.moe->topK, spread.away * (ranks / nodes));
      ofLayer = receivers * rowBytes(program, /*isQuota=*/true) +
                experts.sums(receivers, isTwoHop) * rowBytes(program, /*isQuota=*/false);
    }
    most.includes(spread);
    bytes += ofLayer;
  }
  if (program.bound.isBound())
    return program.bound.limit > 0 ? said("route-limit", std::min(most.nodes, program.bound.limit), bytes)
                                   : said("penalty", most.nodes, bytes);
  return said(most.nodes < most.choices                      ? "group-limited"
              : most.nodes < std::min(spec.moe->topK, nodes) ? "placement"
                                                             : "none",
              most.nodes, bytes);
}

} // namespace k2c

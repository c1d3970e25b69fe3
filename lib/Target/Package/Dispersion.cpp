//===- Dispersion.cpp - To how many nodes a token goes ------------------------===//
//
// A token chooses at most `topK` experts, of at most `topGroups` groups: both bound the nodes that it goes to. Sums
// that come back are as many as a receiver has whole subtrees, but no more than choices.
//
//===----------------------------------------------------------------------===//
#include "Dispersion.h"
#include "k2rt/placement.h"
#include <algorithm>
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

/// The layer's experts in order, and who holds them.
class Placed {
public:
  Placed(const MoeSpec &moe, int64_t slots, int64_t ranks, int64_t nodes)
      : moe(moe), slots(slots * ranks), perRank(slots), perNode(slots * ranks / nodes),
        table(k2rt_placement_entries(moe.experts, slots * ranks), -1) {
    for (int64_t expert = 0; expert < moe.experts; ++expert)
      table[k2rt_placement_held(moe.experts) + expert] = static_cast<int32_t>(expert);
    k2rt_placement_fill(table.data(), moe.experts, this->slots, ranks, nodes);
  }

  /// The most nodes by the number of choices alone, and by the groups of the router.
  int64_t nodesOfChoices() const { return std::min(moe.topK, holders(0, moe.experts, perNode)); }
  int64_t nodesOfGroups() const {
    std::vector<int64_t> each;
    for (int64_t group = 0; group < moe.groups; ++group)
      each.push_back(holders(group * moe.experts / moe.groups, (group + 1) * moe.experts / moe.groups, perNode));
    return std::min(nodesOfChoices(), sumOfLargest(each, moe.topGroups));
  }
  /// The most sums that `count` holders send back, nodes or ranks.
  int64_t sums(int64_t count, bool areNodes) const {
    const int32_t *subtrees = table.data() + (areNodes ? k2rt_placement_node_subtree(moe.experts, slots)
                                                       : k2rt_placement_rank_subtree(moe.experts, slots));
    const int64_t held = areNodes ? perNode : perRank;
    std::vector<int64_t> each;
    for (int64_t first = 0; first < moe.experts; first += held)
      each.push_back(static_cast<int64_t>(
          std::set<int32_t>(subtrees + first, subtrees + std::min(first + held, moe.experts)).size()));
    return std::min(moe.topK, sumOfLargest(each, count));
  }

private:
  static int64_t holders(int64_t begin, int64_t end, int64_t held) { return (end - 1) / held - begin / held + 1; }

  const MoeSpec &moe;
  int64_t slots, perRank, perNode; ///< of all ranks, of one, of a node
  std::vector<int32_t> table;
};

/// Bytes of a row at the first site that crosses nodes, by quota or back.
int64_t rowBytes(const ProgramFacts &program, bool isQuota) {
  for (const CollectiveFact &site : program.collectives)
    if (site.group != "node" && (site.quota > 0) == isQuota)
      return site.rowBytes;
  return 0;
}

} // namespace

json dispersionJson(const ModelSpec &spec, const Plan &plan, const ProgramFacts &program, int64_t nodes) {
  auto said = [](const char *kind, int64_t most, int64_t bytes) {
    return json{{"kind", kind}, {"nodes_per_token", {{"max", most}}}, {"inter_node_bytes_per_token", {{"max", bytes}}}};
  };
  if (!spec.moe || nodes == 1)
    return said("none", 1, 0);
  const Placed placed(*spec.moe, plan.expertSlots, program.ranks, nodes);
  const int64_t free = std::min(spec.moe->topK, nodes), placement = placed.nodesOfChoices(),
                most = placed.nodesOfGroups();
  const bool isTwoHop = std::any_of(program.collectives.begin(), program.collectives.end(),
                                    [](const CollectiveFact &site) { return site.group == "rail"; });
  const int64_t perNode = program.ranks / nodes, away = std::min(most, nodes - 1);
  const int64_t receivers = isTwoHop ? away : std::min(spec.moe->topK, away * perNode);
  const int64_t bytes = receivers * rowBytes(program, /*isQuota=*/true) +
                        placed.sums(receivers, isTwoHop) * rowBytes(program, /*isQuota=*/false);
  return said(most < placement ? "group-limited"
              : most < free    ? "placement"
                               : "none",
              most, bytes * static_cast<int64_t>(spec.moeLayers().size()));
}

} // namespace k2c

// A token's bytes are summed over layers, while routes lie layer by layer: a step has a sum for each of its rows.
#include "engine/RouteTraffic.h"
#include <algorithm>
#include <numeric>
#include <utility>

namespace k2c::runtime {

void Spread::add(int64_t number) {
  sum += number;
  ++numbers;
  most = std::max(most, number);
}

/// How many stages forward rows of `source` to one on another node.
static int64_t stagesBetweenNodes(const RankFacts &ranks, int64_t source) {
  int64_t crossings = 0;
  for (int64_t stage = 1; stage < ranks.stageCount(); ++stage)
    crossings += ranks.each[static_cast<size_t>(ranks.rankOf(source, stage - 1))].node !=
                 ranks.each[static_cast<size_t>(ranks.rankOf(source, stage))].node;
  return crossings;
}

RouteTraffic::RouteTraffic(const Bundle &bundle) : bundle(bundle) {
  const Manifest &manifest = bundle.manifest;
  const RankFacts &ranks = manifest.ranks;
  division = {ranks.placement.experts, ranks.placement.slots, ranks.expertRanks(), ranks.stageNodes(), 0};
  for (const CollectiveFacts &site : ranks.collectives) {
    if (site.op == K2RT_SEND)
      stageRowBytes = site.rowBytes;
    if (site.op != K2RT_ALL_TO_ALL_ROWS)
      continue;
    division.two_hop |= site.axis == K2RT_AXIS_RAIL;
    int64_t &bytes = site.quotaRows > 0 ? messageBytes : rowBytes;
    if ((site.axis == K2RT_AXIS_EP || site.axis == K2RT_AXIS_RAIL) && bytes == 0)
      bytes = site.rowBytes;
  }
  tokensOfRank.resize(static_cast<size_t>(ranks.sources()));
  rowsOfRank.assign(manifest.moeLayers.size(),
                    std::vector<int64_t>(static_cast<size_t>(ranks.expertRanks() * ranks.replicas)));
  chosen.assign(manifest.moeLayers.size(), ExpertLoads(manifest.experts));
}

const int32_t *RouteTraffic::entriesOf(size_t table, size_t moeLayer) const {
  return bundle.placement.entries(table) +
         static_cast<int64_t>(moeLayer) * k2rt_placement_entries(division.experts, division.slots);
}

/// Those of the table are where tokens of this rank go.
const std::vector<int32_t> &RouteTraffic::slotsOf(size_t table, size_t moeLayer) {
  slots.resize(std::max(slots.size(), table + 1));
  slots[table].resize(chosen.size());
  std::vector<int32_t> &list = slots[table][moeLayer];
  if (list.empty()) {
    list.resize(static_cast<size_t>(k2rt_places_entries(division.experts, division.slots)));
    k2rt_placement_list(list.data(), entriesOf(table, moeLayer), division.experts, division.slots);
  }
  return list;
}

void RouteTraffic::count(const std::vector<int32_t> &sources, const int32_t *experts, size_t table) {
  const RankFacts &ranks = bundle.manifest.ranks;
  const int64_t topK = bundle.manifest.topK, ofNode = division.slots / division.nodes;
  std::vector<int64_t> bytes;
  for (const int32_t source : sources) {
    bytes.push_back(stageRowBytes * stagesBetweenNodes(ranks, source));
    ++tokensOfRank[static_cast<size_t>(source)];
  }
  std::vector<int32_t> own, slot, places(static_cast<size_t>(k2rt_places_entries(division.experts, division.slots)));
  for (size_t layer = 0; ranks.divideExperts && layer < chosen.size(); ++layer) {
    int32_t source = -1, place = 0; // of the row before; of its rank among those that divide experts
    for (size_t row = 0; row < sources.size(); ++row, experts += topK) {
      if (std::exchange(source, sources[row]) != sources[row]) {
        place = static_cast<int32_t>(ranks.expertRankOf(source));
        k2rt_placement_choose(places.data(), slotsOf(table, layer).data(), division.experts, division.slots,
                              division.ranks, division.nodes, place);
      }
      own.assign(experts, experts + topK);
      own.erase(std::remove_if(own.begin(), own.end(), [](int32_t expert) { return expert < 0; }), own.end());
      const auto choices = static_cast<int64_t>(own.size());
      slot.clear();
      for (int64_t i = 0; i < choices; ++i) {
        slot.push_back(k2rt_placement_slot(places.data(), division.experts, ofNode, own.data(), choices, i));
        chosen[layer].add(own[i], 1);
        ++rowsOfRank[layer][source / ranks.etp - place + slot.back() * division.ranks / division.slots];
      }
      const k2rt_token_rows rows =
          k2rt_rows_of_token(entriesOf(table, layer), &division, place, own.data(), slot.data(), choices);
      nodesOfTokens.add(rows.nodes);
      bytes[row] += rows.sent[1] * messageBytes + rows.back[1] * rowBytes;
    }
  }
  for (const int64_t ofToken : bytes)
    bytesOfTokens.add(ofToken);
}

bool RouteTraffic::hasLayer(int32_t rank, size_t moeLayer) const {
  const Manifest &manifest = bundle.manifest;
  const std::array<int64_t, 2> own = manifest.ranks.layersOf(rank, manifest.layers);
  return manifest.moeLayers[moeLayer] >= own[0] && manifest.moeLayers[moeLayer] < own[1];
}

int64_t RouteTraffic::tokens(int32_t rank) const { return tokensOfRank[bundle.manifest.ranks.sourceOf(rank)]; }

int64_t RouteTraffic::expertRows(int32_t rank) const {
  const RankFacts &ranks = bundle.manifest.ranks;
  int64_t rows = 0;
  for (size_t layer = 0; layer < rowsOfRank.size(); ++layer)
    rows += hasLayer(rank, layer) ? rowsOfRank[layer][ranks.sourceOf(rank) / ranks.etp] : 0;
  return rows;
}

int64_t RouteTraffic::deadExperts(int32_t rank) const {
  const int64_t slots = division.slots / division.ranks;
  int64_t dead = 0;
  for (size_t layer = 0; bundle.manifest.ranks.divideExperts && layer < chosen.size(); ++layer) {
    if (!hasLayer(rank, layer))
      continue;
    const int32_t *held = entriesOf(0, layer) + bundle.manifest.ranks.expertRankOf(rank) * slots;
    dead +=
        std::count_if(held, held + slots, [&](int32_t expert) { return expert >= 0 && chosen[layer].isDead(expert); });
  }
  return dead;
}

double RouteTraffic::balancedness(size_t moeLayer) const {
  const std::vector<int64_t> &rows = rowsOfRank[moeLayer];
  const auto sum = static_cast<double>(std::accumulate(rows.begin(), rows.end(), int64_t(0)));
  const auto most = static_cast<double>(*std::max_element(rows.begin(), rows.end()));
  return most > 0 ? sum / static_cast<double>(rows.size()) / most : 1;
}

} // namespace k2c::runtime

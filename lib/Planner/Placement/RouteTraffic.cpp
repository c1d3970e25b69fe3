//===- RouteTraffic.cpp - What the routes of a run cost under a placement -----===//
//
// Rows of a token to experts and back are counted layer by layer, by the rule that the runtime has, too
// (k2rt/traffic.h). Where groups of ranks share experts (etp), these rows go between ranks with the same part of them,
// so that the rule sees groups; within a group, what has arrived at a rank goes to each other one, which sends back its
// part of the row of each choice. What goes from stage to stage, what tensor-parallel ranks gather and scatter, and
// what ranks with parts of embedding and head exchange depends on no route: so many rows a token, and so many an output
// row.
//
//===----------------------------------------------------------------------===//

#include "k2c/Planner/RouteTraffic.h"

#include "k2c/Cluster/TierNames.h"
#include "k2c/Planner/CompileLayout.h"
#include "k2c/Planner/TensorParts.h"
#include "k2rt/traffic.h"
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

using namespace k2c;

/// To each other rank of a group, on the same node.
static void addSlices(ExpertDivision &division, const ModelSpec &spec, int64_t tp, DType compute) {
  for (const LayerKind &kind : layerKinds(spec)) {
    Expected<LayerParts> parts = layerParts(spec, kind, tp);
    const int64_t layers =
        countWithin(spec.layersOf([&](const LayerKind &other) { return other == kind; }), {0, spec.layerCount()});
    auto add = [&](const std::vector<int64_t> &widths, DType type) {
      for (const int64_t width : widths) {
        division.ofToken[0].rows += layers * (tp - 1);
        division.ofToken[0].bytes += layers * (tp - 1) * width * byteWidth(type);
      }
    };
    if (parts) {
      add(parts->gathered, compute);
      add(parts->scattered, DType::F32);
    }
  }
}

/// A token's id goes to each other of the `ranks` of a stage, and its part of the columns comes back; an output row
/// goes to each, and its part of the logits comes back.
static void addVocabulary(ExpertDivision &division, const ModelSpec &spec, int64_t ranks, DType compute) {
  constexpr int64_t idBytes = 4, logitBytes = 4;
  const int64_t ofNode = std::max<int64_t>(ranks / division.nodes, 1);
  const std::array<int64_t, 2> others{ofNode - 1, ranks - ofNode};
  for (size_t tier = 0; tier < others.size(); ++tier) {
    RowsOfRow &token = division.ofToken[tier], &output = division.ofOutput[tier];
    token.rows += 2 * others[tier];
    token.bytes += others[tier] * (idBytes + spec.hidden / ranks * byteWidth(compute));
    output.rows += 2 * others[tier];
    output.bytes += others[tier] * (spec.hidden * byteWidth(compute) + spec.vocab / ranks * logitBytes);
  }
}

ExpertDivision k2c::expertDivision(const ModelSpec &spec, const Topology &topology, const ParallelLayout &layout,
                                   DType compute) {
  ExpertDivision division;
  division.model = {spec.name, spec.moeLayers(), spec.moe ? spec.moe->experts : 0, layout.ep,
                    expertSlots(spec, layout)};
  division.topK = spec.moe ? spec.moe->topK : 0;
  division.etp = layout.etp;
  division.nodes = nodesOfStage(layout, topology.nodes());
  division.hops.clear();
  for (int64_t replica = 0; replica < layout.replicas; ++replica)
    division.hops.push_back(hopsOfReplica(layout, topology.nodes(), replica));
  division.isTwoHop = division.nodes > 1 && division.nodes < layout.ep;
  division.rowBytes = spec.hidden * byteWidth(compute);
  division.partBytes = spec.hidden * byteWidth(DType::F32);
  division.messageBytes = k2rt_message_bytes(division.rowBytes, division.topK);
  addSlices(division, spec, layout.tp, compute);
  addVocabulary(division, spec, layout.vocab, compute);
  division.tiers = tierNames(topology);
  division.hasTier = {topology.ranks() > topology.nodes(), topology.nodes() > 1};
  return division;
}

double RouteTraffic::imbalance(int64_t layer) const {
  const std::vector<int64_t> &rows = rankRows.at(layer);
  const double sum = std::accumulate(rows.begin(), rows.end(), 0.0);
  return sum > 0 ? double(*std::max_element(rows.begin(), rows.end())) * double(rows.size()) / sum : 1;
}

double RouteTraffic::imbalanceMean() const {
  double sum = 0;
  for (const auto &[layer, rows] : rankRows)
    sum += imbalance(layer);
  return rankRows.empty() ? 1 : sum / double(rankRows.size());
}

double RouteTraffic::imbalanceMost() const {
  double most = 1;
  for (const auto &[layer, rows] : rankRows)
    most = std::max(most, imbalance(layer));
  return most;
}

namespace {

/// One layer and phase.
class LayerCount {
public:
  LayerCount(const ExpertDivision &division, const std::vector<int32_t> &expertOfSlot, std::vector<int64_t> &rankRows)
      : division(division),
        by{division.model.experts, division.slots(), division.model.ranks, division.nodes, division.isTwoHop},
        table(k2rt_placement_entries(by.experts, by.slots)), list(k2rt_places_entries(by.experts, by.slots)),
        rankRows(rankRows) {
    std::copy(expertOfSlot.begin(), expertOfSlot.end(), table.begin());
    k2rt_placement_fill(table.data(), list.data(), by.experts, by.slots, by.ranks, by.nodes, /*rank=*/0);
  }

  void add(const SourcedChoice &choice, RouteTraffic &to);

private:
  void addParts(const std::vector<int32_t> &slots, int64_t tokens, SentRows &near) const;
  /// Where tokens of `source` go.
  const int32_t *placesOf(int64_t source) {
    auto [entry, isNew] = places.try_emplace(source, list.size());
    if (isNew)
      k2rt_placement_choose(entry->second.data(), list.data(), by.experts, by.slots, by.ranks, by.nodes, source);
    return entry->second.data();
  }

  const ExpertDivision &division;
  const k2rt_division by;
  std::vector<int32_t> table, list; ///< of a rank; all slots of all experts (k2rt/placement.h)
  std::map<int64_t, std::vector<int32_t>> places;
  std::vector<int64_t> &rankRows;
};

/// One message goes from where it arrives, or starts, to each other rank of the group, and a row comes back for each
/// choice.
void LayerCount::addParts(const std::vector<int32_t> &slots, int64_t tokens, SentRows &near) const {
  std::set<int64_t> groups;
  for (const int32_t slot : slots)
    groups.insert(slot * by.ranks / by.slots);
  const auto messages = static_cast<int64_t>(groups.size()), choices = static_cast<int64_t>(slots.size());
  near.messages += Checked(messages + choices) * (division.etp - 1) * tokens;
  near.payloadBytes +=
      (Checked(messages) * division.messageBytes + Checked(choices) * division.partBytes) * (division.etp - 1) * tokens;
}

void LayerCount::add(const SourcedChoice &choice, RouteTraffic &to) {
  const auto count = static_cast<int64_t>(choice.experts.size());
  // One of outside is of no rank.
  const bool isOfRank = choice.source < division.sources();
  const int64_t source = isOfRank ? choice.source % division.stageRanks() / division.etp : by.ranks;
  const int32_t *chosen = choice.experts.data(), *places = placesOf(source);
  std::vector<int32_t> slots;
  for (int64_t i = 0; i < count; ++i) {
    slots.push_back(k2rt_placement_slot(places, by.experts, by.slots / by.nodes, chosen, count, i));
    rankRows[slots.back() * by.ranks / by.slots] += choice.tokens;
  }
  const k2rt_token_rows rows = k2rt_rows_of_token(table.data(), &by, source, chosen, slots.data(), count);
  for (size_t tier = 0; tier < to.tiers.size(); ++tier) {
    to.tiers[tier].messages += Checked(rows.sent[tier] + rows.back[tier]) * choice.tokens;
    to.tiers[tier].payloadBytes +=
        (Checked(rows.sent[tier]) * division.messageBytes + Checked(rows.back[tier]) * division.rowBytes) *
        choice.tokens;
  }
  addParts(slots, choice.tokens, to.tiers[0]);
  to.nodesMean += double(rows.nodes) * double(choice.tokens);
  to.nodesMost = std::max(to.nodesMost, rows.nodes);
}

void addRows(RouteTraffic &traffic, int64_t count, const std::array<RowsOfRow, 2> &ofEach) {
  for (size_t tier = 0; tier < ofEach.size(); ++tier) {
    traffic.tiers[tier].messages += Checked(count) * ofEach[tier].rows;
    traffic.tiers[tier].payloadBytes += Checked(count) * ofEach[tier].bytes;
  }
}

} // namespace

Expected<RouteTraffic> k2c::countTraffic(const RouteStatistics &statistics, const ExpertPlacement &placement,
                                         const ExpertDivision &division, RoutedPhase phase) {
  RouteTraffic traffic;
  double tokens = 0;
  std::vector<double> ofReplica(division.hops.size()); // tokens in all layers, those of outside not
  for (const auto &[layer, choices] : statistics.layers) {
    std::vector<int64_t> &rows = traffic.rankRows[layer];
    rows.resize(static_cast<size_t>(division.model.ranks));
    const PlacedExperts &placed = placement.layers.at(layer);
    for (auto [of, entries, experts] : {std::tuple{RoutedPhase::Prefill, &choices.prefill, &placed.prefill},
                                        std::tuple{RoutedPhase::Decode, &choices.decode, &placed.decode}}) {
      if (phase != RoutedPhase::Both && phase != of)
        continue;
      LayerCount count(division, *experts, rows);
      for (const SourcedChoice &choice : *entries) {
        count.add(choice, traffic);
        tokens += double(choice.tokens);
        if (choice.source < division.sources())
          ofReplica[size_t(choice.source / division.stageRanks())] += double(choice.tokens);
      }
    }
  }
  const double layers = double(std::max<size_t>(statistics.layers.size(), 1));
  for (size_t replica = 0; replica < division.hops.size(); ++replica) { // a token is counted in each layer
    const auto count = static_cast<int64_t>(ofReplica[replica] / layers);
    for (size_t tier = 0; tier < traffic.tiers.size(); ++tier) {
      const int64_t rows = count * division.hops[replica][tier];
      traffic.tiers[tier].messages += rows;
      traffic.tiers[tier].payloadBytes += Checked(rows) * division.rowBytes;
    }
    addRows(traffic, count, division.ofToken);
  }
  const bool hasPrompts = phase != RoutedPhase::Decode, hasTokens = phase != RoutedPhase::Prefill;
  if (const RowsOfRow &away = division.ofOutput[1], &near = division.ofOutput[0];
      !statistics.outputs && away.rows + near.rows > 0)
    return Error{"outputs", "are not stated, and ranks that divide the head send each other rows and logits of these",
                 "count anew, with this build: --expert-stats"};
  const RouteStatistics::Outputs outputs = statistics.outputs.value_or(RouteStatistics::Outputs());
  addRows(traffic, hasPrompts ? outputs.prefill : 0, division.ofOutput);
  addRows(traffic, hasTokens ? outputs.decode : 0, division.ofOutput);
  traffic.nodesMean = tokens > 0 ? traffic.nodesMean / tokens : 0;
  for (const SentRows &tier : traffic.tiers)
    if (!tier.payloadBytes.isValid() || !tier.messages.isValid())
      return Error{"traffic", "is more than 2^63 bytes", "count fewer tokens"};
  return traffic;
}

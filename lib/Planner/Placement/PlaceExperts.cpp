//===- PlaceExperts.cpp - A placement from statistics -------------------------===//
//
// A layer at a time. Candidates are made by published algorithms, and the best by the objective wins:
//
//   before        where they are now
//   in order      what a compile does by itself, and the same without its copies
//   balanced      the expert-parallel load balancer (Placement.h) over all ranks
//   by affinity   experts that tokens choose together on one node (Affinity.h), in blocks of 1, 2, 4, .. experts: N5
//                 adds up a block that a rank has whole, so that one row returns for it, where single experts that are
//                 spread out return a row each
//
// Spare slots of in order without copies and of the last get copies: of the expert with most rows a copy, on the
// emptiest rank that lacks it, as long as that rank does not become the fullest.
//
// Candidates are compared by tokens from outside and copies that share evenly, since nobody knows which rank will have
// a sequence. So they do not say which node is which: each becomes the one whose tokens visit it most. By nodes, one
// that has more rows between them than before, of the tokens from the ranks that had them, is behind all that do not
// and are as even.
//
//===----------------------------------------------------------------------===//

#include "k2c/Planner/PlaceExperts.h"

#include "k2c/Planner/Affinity.h"
#include "k2c/Planner/Placement.h"
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

using namespace k2c;

std::optional<PlacementObjective> k2c::parsePlacementObjective(std::string_view word) {
  return word == "balance" ? std::optional(PlacementObjective::Balance)
         : word == "nodes" ? std::optional(PlacementObjective::Nodes)
                           : std::nullopt;
}

namespace {

constexpr int32_t noExpert = -1;
/// Loads that differ by less are even: a step's rows vary more.
constexpr double evenStep = 0.05;
/// Counts of a search by affinity, of sets and nodes: more take too much memory, and are placed without it.
constexpr int64_t maxVisits = int64_t(1) << 28;

using Slots = std::vector<int32_t>; ///< the expert of each slot of all ranks

std::vector<double> rankLoads(const std::vector<double> &rows, const Slots &experts, int64_t ranks) {
  std::vector<int64_t> copies(rows.size(), 0);
  for (const int32_t expert : experts)
    if (expert != noExpert)
      ++copies[expert];
  std::vector<double> loads(static_cast<size_t>(ranks), 0.0);
  const size_t slotsOfRank = experts.size() / static_cast<size_t>(ranks);
  for (size_t slot = 0; slot < experts.size(); ++slot)
    if (experts[slot] != noExpert)
      loads[slot / slotsOfRank] += rows[experts[slot]] / double(copies[experts[slot]]);
  return loads;
}

template <class Visit> void visitChoices(const RouteStatistics::Layer &layer, RoutedPhase phase, Visit visit) {
  for (auto [of, entries] :
       {std::pair{RoutedPhase::Prefill, &layer.prefill}, std::pair{RoutedPhase::Decode, &layer.decode}})
    if (phase == RoutedPhase::Both || phase == of)
      for (const SourcedChoice &choice : *entries)
        visit(choice);
}

std::vector<double> expertRows(const RouteStatistics::Layer &layer, RoutedPhase phase, int64_t experts) {
  std::vector<double> rows(static_cast<size_t>(experts), 0.0);
  visitChoices(layer, phase, [&](const SourcedChoice &choice) {
    for (const int32_t expert : choice.experts)
      rows[expert] += double(choice.tokens);
  });
  return rows;
}

/// Rows of the fullest rank over the mean; 1 without any.
double imbalance(const std::vector<double> &rows, const Slots &experts, int64_t ranks) {
  const std::vector<double> loads = rankLoads(rows, experts, ranks);
  const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  return sum > 0 ? *std::max_element(loads.begin(), loads.end()) * double(ranks) / sum : 1;
}

class LayerPlacer {
public:
  LayerPlacer(const RouteStatistics::Layer &layer, const ExpertDivision &division, const PlaceOptions &options)
      : division(division), options(options), rows(expertRows(layer, options.phase, division.model.experts)) {
    visitChoices(layer, options.phase,
                 [&](const SourcedChoice &choice) { tokensOfSet[choice.experts] += choice.tokens; });
    RouteStatistics::Layer &strangers = fromOutside.layers[0], &own = fromSources.layers[0];
    for (const auto &[set, tokens] : tokensOfSet)
      strangers.prefill.push_back({division.sources(), set, tokens});
    visitChoices(layer, options.phase, [&](const SourcedChoice &choice) { own.prefill.push_back(choice); });
  }

  Slots best(const Slots &before);

private:
  int64_t slotsOfRank() const { return *division.model.slotsOfRank; }
  bool has(const Slots &experts, int64_t rank, int32_t expert) const {
    const auto begin = experts.begin() + rank * slotsOfRank(), end = begin + slotsOfRank();
    return std::find(begin, end, expert) != end;
  }
  double bytesBetweenNodes(const RouteStatistics &tokens, const Slots &experts) const;
  std::array<double, 4> cost(const Slots &experts, double bytesBefore) const;
  Slots balanced() const;
  Slots byAffinity(int64_t width) const;
  void addCopies(Slots &experts) const;
  std::vector<double> visits(const Slots &experts) const;
  Slots nearTokens(const Slots &experts) const;

  const ExpertDivision &division;
  const PlaceOptions &options;
  std::vector<double> rows; ///< by expert
  std::map<std::vector<int32_t>, int64_t> tokensOfSet;
  /// The same tokens from a rank behind the last, on a node of its own: where sequences will be nobody knows.
  RouteStatistics fromOutside;
  RouteStatistics fromSources; ///< and from the ranks that had them
};

double LayerPlacer::bytesBetweenNodes(const RouteStatistics &tokens, const Slots &experts) const {
  ExpertPlacement placement;
  placement.slotsOfRank = slotsOfRank();
  placement.layers[0] = {experts, experts};
  const Expected<RouteTraffic> traffic = countTraffic(tokens, placement, division);
  return traffic ? traffic->tiers[1].payloadBytes.real() : 0;
}

/// What is lowered first, then second, and so on. `bytesBefore`: of `fromSources`, where experts are now.
std::array<double, 4> LayerPlacer::cost(const Slots &experts, double bytesBefore) const {
  const double load = imbalance(rows, experts, division.model.ranks), bytes = bytesBetweenNodes(fromOutside, experts);
  if (options.objective == PlacementObjective::Balance)
    return {std::ceil((load - 1) / evenStep), 0, bytes, load};
  return {std::ceil(std::max(0.0, load - maxLoadByNodes) / evenStep),
          double(bytesBetweenNodes(fromSources, experts) > bytesBefore), bytes, load};
}

/// By the published balancer; copies of an expert beyond the first on a rank are left out.
Slots LayerPlacer::balanced() const {
  const ReplicaLayout layout{division.slots(), 1, 1, division.model.ranks};
  Slots experts = rebalanceExperts(ExpertLoad(rows.begin(), rows.end()), layout).expertOfSlot;
  for (int64_t slot = 0; slot < division.slots(); ++slot) {
    const auto begin = experts.begin() + slot / slotsOfRank() * slotsOfRank();
    if (std::find(begin, experts.begin() + slot, experts[slot]) != experts.begin() + slot)
      experts[slot] = noExpert;
  }
  return experts;
}

/// Blocks of `width` consecutive experts as units.
Slots LayerPlacer::byAffinity(int64_t width) const {
  const int64_t blocks = division.model.experts / width;
  std::map<std::vector<int32_t>, double> tokensOfBlocks;
  for (const auto &[set, tokens] : tokensOfSet) {
    std::vector<int32_t> chosen;
    for (const int32_t expert : set)
      if (chosen.empty() || chosen.back() != expert / width)
        chosen.push_back(static_cast<int32_t>(expert / width));
    tokensOfBlocks[std::move(chosen)] += double(tokens);
  }
  std::vector<std::vector<int32_t>> choices;
  std::vector<double> counts;
  for (auto &[chosen, tokens] : tokensOfBlocks) {
    choices.push_back(chosen);
    counts.push_back(tokens);
  }
  AffinityCapacity capacity{division.nodes, division.model.ranks, slotsOfRank() / width};
  capacity.imbalance = options.objective == PlacementObjective::Nodes ? maxLoadByNodes : 1 + evenStep;
  const std::vector<int32_t> rankOfBlock =
      placeByAffinity(coActivationOf(blocks, std::move(choices), std::move(counts)), capacity);
  Slots experts(static_cast<size_t>(division.slots()), noExpert);
  std::vector<int64_t> used(static_cast<size_t>(division.model.ranks), 0);
  for (int64_t expert = 0; expert < division.model.experts; ++expert) {
    const int32_t rank = rankOfBlock[expert / width];
    experts[rank * slotsOfRank() + used[rank]++] = static_cast<int32_t>(expert);
  }
  return experts;
}

void LayerPlacer::addCopies(Slots &experts) const {
  std::vector<int64_t> copies(rows.size(), 1);
  for (int64_t left = std::count(experts.begin(), experts.end(), noExpert); left > 0; --left) {
    const std::vector<double> loads = rankLoads(rows, experts, division.model.ranks);
    const double most = *std::max_element(loads.begin(), loads.end());
    int64_t hottest = 0;
    for (int64_t expert = 1; expert < division.model.experts; ++expert)
      if (rows[expert] / double(copies[expert]) > rows[hottest] / double(copies[hottest]))
        hottest = expert;
    int64_t to = -1;
    for (int64_t rank = 0; rank < division.model.ranks; ++rank)
      if (has(experts, rank, noExpert) && !has(experts, rank, static_cast<int32_t>(hottest)) &&
          (to < 0 || loads[rank] < loads[to]))
        to = rank;
    if (to < 0 || loads[to] + rows[hottest] / double(copies[hottest] + 1) >= most)
      return;
    *std::find(experts.begin() + to * slotsOfRank(), experts.end(), noExpert) = static_cast<int32_t>(hottest);
    ++copies[hottest];
  }
}

/// How many tokens of each node visit each node: [visited][node of the token].
std::vector<double> LayerPlacer::visits(const Slots &experts) const {
  const int64_t nodes = division.nodes, ofNode = division.slots() / nodes;
  std::vector<std::vector<int64_t>> nodesOf(rows.size());
  for (int64_t slot = 0; slot < division.slots(); ++slot)
    if (experts[slot] != noExpert)
      nodesOf[experts[slot]].push_back(slot / ofNode);
  std::vector<double> tokens(static_cast<size_t>(nodes * nodes), 0.0);
  std::vector<size_t> lastChoice(static_cast<size_t>(nodes), 0);
  size_t count = 0;
  for (const SourcedChoice &choice : fromSources.layers.at(0).prefill) {
    const int64_t home = choice.source % division.stageRanks() * nodes / division.stageRanks();
    ++count;
    for (const int32_t expert : choice.experts)
      for (const int64_t node : nodesOf[expert])
        if (std::exchange(lastChoice[node], count) != count)
          tokens[node * nodes + home] += double(choice.tokens);
  }
  return tokens;
}

/// The same nodes under other numbers, the most visited first: all pairs of nodes have equal links.
Slots LayerPlacer::nearTokens(const Slots &experts) const {
  const int64_t nodes = division.nodes, ofNode = division.slots() / nodes;
  const std::vector<double> tokens = visits(experts);
  std::vector<char> isMoved(static_cast<size_t>(nodes), 0), isTaken(static_cast<size_t>(nodes), 0);
  Slots moved(experts.size());
  for (int64_t i = 0; i < nodes; ++i) {
    int64_t from = -1, to = -1;
    for (int64_t node = 0; node < nodes; ++node)
      for (int64_t home = 0; home < nodes; ++home)
        if (!isMoved[node] && !isTaken[home] && (from < 0 || tokens[node * nodes + home] > tokens[from * nodes + to]))
          from = node, to = home;
    isMoved[from] = isTaken[to] = 1;
    std::copy_n(experts.begin() + from * ofNode, ofNode, moved.begin() + to * ofNode);
  }
  return moved;
}

Slots LayerPlacer::best(const Slots &before) {
  std::vector<Slots> candidates = {before};
  for (const bool hasCopies : {true, false})
    candidates.push_back(placedInOrder(division.model, hasCopies).layers.begin()->second.decode);
  addCopies(candidates.back());
  candidates.push_back(nearTokens(balanced()));
  const bool isSmall = int64_t(tokensOfSet.size()) * division.nodes <= maxVisits;
  for (int64_t width = 1; isSmall && division.model.experts % width == 0 && slotsOfRank() % width == 0; width *= 2) {
    Slots experts = byAffinity(width);
    addCopies(experts);
    candidates.push_back(nearTokens(experts));
  }
  std::vector<std::array<double, 4>> costs;
  const double bytesBefore = bytesBetweenNodes(fromSources, before);
  for (const Slots &candidate : candidates)
    costs.push_back(cost(candidate, bytesBefore));
  return candidates[std::min_element(costs.begin(), costs.end()) - costs.begin()];
}

} // namespace

Expected<PlacementFigures> k2c::placementFigures(const RouteStatistics &statistics, const ExpertPlacement &placement,
                                                 const ExpertDivision &division, RoutedPhase phase) {
  Expected<RouteTraffic> traffic = countTraffic(statistics, placement, division, phase);
  if (!traffic)
    return traffic.takeError();
  return PlacementFigures{traffic->imbalanceMean(), traffic->imbalanceMost(), traffic->nodesMean,
                          traffic->tiers[1].messages};
}

ExpertPlacement k2c::placeExperts(const RouteStatistics &statistics, const ExpertDivision &division,
                                  const ExpertPlacement &before, const PlaceOptions &options) {
  ExpertPlacement placement;
  placement.slotsOfRank = *division.model.slotsOfRank;
  for (const auto &[layer, choices] : statistics.layers) {
    const Slots experts = LayerPlacer(choices, division, options).best(before.layers.at(layer).decode);
    placement.layers[layer] = {experts, experts};
  }
  return placement;
}

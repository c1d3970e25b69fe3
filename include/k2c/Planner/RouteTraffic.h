//===- RouteTraffic.h - What the routes of a run cost under a placement -------===//
//
// Exact, by the rule of k2rt/traffic.h, by which programs exchange rows: bytes by tier equal those that the exchange
// counts (run --counters) in the run that gave the statistics.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_ROUTETRAFFIC_H
#define K2C_PLANNER_ROUTETRAFFIC_H

#include "base/ExpertPlacement.h"
#include "k2c/Cluster/Topology.h"
#include "k2c/Model/ModelSpec.h"
#include "k2c/Planner/Checked.h"
#include "k2c/Planner/ClusterPlan.h"
#include "k2c/Planner/RouteStatistics.h"
#include <array>

namespace k2c {

/// Rows that are sent for a row, and the bytes of all of them.
struct RowsOfRow {
  int64_t rows = 0, bytes = 0;
};

/// How a program of several ranks divides a layer's experts, and what it sends for a token.
struct ExpertDivision {
  PlacedModel model; ///< with its slots; its ranks are those of a stage, or groups of them that share experts
  int64_t topK = 0;  ///< experts that a token chooses; 0: nobody knows
  int64_t etp = 1;   ///< ranks of such a group, next to each other: each has a part of all experts of it
  int64_t nodes = 1;
  bool isTwoHop = false;
  int64_t messageBytes = 0; ///< of a row to experts, with its choices
  int64_t rowBytes = 0;     ///< of a row that comes back, or goes to the next stage
  int64_t partBytes = 0;    ///< of a choice: of the row that each other rank of a group sends back
  /// Of each replica of the model: how often a token goes from stage to stage, within a node and between nodes.
  std::vector<std::array<int64_t, 2>> hops{{}};
  /// By tier. Of a token: what tensor-parallel ranks gather and scatter in all layers, and what ranks that divide the
  /// embedding send for its row. Of an output row: what ranks that divide the head send for its logits.
  std::array<RowsOfRow, 2> ofToken{}, ofOutput{};
  std::array<std::string, 2> tiers; ///< within a node, between nodes

  /// Ranks that carry rows of their own, by which sources are numbered: those of a stage, in all replicas.
  int64_t sources() const { return stageRanks() * static_cast<int64_t>(hops.size()); }
  int64_t stageRanks() const { return model.ranks * etp; }
  int64_t slots() const { return model.ranks * model.slotsOfRank.value_or(0); }
  /// Whether some pair of ranks is of a tier, of all ranks of the topology.
  std::array<bool, 2> hasTier{};
};

/// Of the program that compiles for `layout`, which is one that compiles, in type `compute`.
ExpertDivision expertDivision(const ModelSpec &spec, const Topology &topology, const ParallelLayout &layout,
                              DType compute);

struct SentRows {
  Checked payloadBytes, messages; ///< rows
};

struct RouteTraffic {
  std::array<SentRows, 2> tiers; ///< within a node, between nodes
  double nodesMean = 0;          ///< of tokens and layers: nodes that have a token's experts
  int64_t nodesMost = 0;         ///< the same
  /// By layer: rows that the experts of each rank, or group that shares experts, compute.
  std::map<int64_t, std::vector<int64_t>> rankRows;

  /// Rows of the fullest rank over the mean, of a layer; 1 without any.
  double imbalance(int64_t layer) const;
  /// The mean of all layers, and the largest.
  double imbalanceMean() const, imbalanceMost() const;
};

/// Tokens of a phase go by its own placement. Error: more bytes than 2^63.
Expected<RouteTraffic> countTraffic(const RouteStatistics &statistics, const ExpertPlacement &placement,
                                    const ExpertDivision &division, RoutedPhase phase = RoutedPhase::Both);

} // namespace k2c

#endif // K2C_PLANNER_ROUTETRAFFIC_H

//===- PlaceExperts.h - A placement from statistics ---------------------------===//
//
// Ranks wait for the fullest of them, and links between nodes carry what tokens cross for. A placement evens the first
// and saves of the second, for the routes of a run.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_PLACEEXPERTS_H
#define K2C_PLANNER_PLACEEXPERTS_H

#include "k2c/Planner/RouteTraffic.h"

namespace k2c {

/// What is looked at first: how even the rows of ranks are, or the bytes between nodes.
enum class PlacementObjective : uint8_t { Balance, Nodes };
std::optional<PlacementObjective> parsePlacementObjective(std::string_view word);

struct PlaceOptions {
  RoutedPhase phase = RoutedPhase::Both; ///< whose tokens count
  PlacementObjective objective = PlacementObjective::Balance;
};

/// Placing by nodes may cost this load in rows of the fullest rank over the mean.
inline constexpr double maxLoadByNodes = 1.15;

/// Experts of all layers for the slots of `division`; both phases alike. Slots beyond the experts hold copies of the
/// experts with most rows, each on ranks that do not have it. No layer is worse than in order or `before`, as far as
/// the search sees: rows of an expert are taken to spread evenly over its copies. By nodes, a layer has no more bytes
/// between them than `before`, counted as by placementFigures, unless `before` has more load than maxLoadByNodes.
/// Statistics are of the division's model.
ExpertPlacement placeExperts(const RouteStatistics &statistics, const ExpertDivision &division,
                             const ExpertPlacement &before, const PlaceOptions &options);

/// What placements are compared by.
struct PlacementFigures {
  double loadMean = 1, loadMost = 1; ///< of layers: rows of the fullest rank over the mean
  double nodesPerToken = 0;          ///< the mean of tokens and layers
  Checked rowsBetweenNodes;
};

/// Of the tokens of a phase, each from the rank that had its sequence, as a run of the same sequences counts them.
/// `placement` has phases only where `phase` is one.
Expected<PlacementFigures> placementFigures(const RouteStatistics &statistics, const ExpertPlacement &placement,
                                            const ExpertDivision &division, RoutedPhase phase);

} // namespace k2c

#endif // K2C_PLANNER_PLACEEXPERTS_H

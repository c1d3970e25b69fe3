//===- Charts.h - The drawings of a plan's page ---------------------------===//
#ifndef K2C_LIB_REPORT_CHARTS_H
#define K2C_LIB_REPORT_CHARTS_H

#include "Derived.h"
#include "Svg.h"

namespace k2c::report {

/// A legend entry: a class of the style sheet and what it stands for.
struct Key {
  std::string classes, text;
};
std::string legend(const std::vector<Key> &keys);

// Each is empty where the plan has nothing to draw.

/// One stacked bar for each class of equal ranks, the device's capacity as a line.
std::string memoryChart(const ClusterPlan &plan);
/// The parts of each phase side by side, coloured by what bounds them.
std::string stepChart(const ClusterPlan &plan);
/// FLOP/s that parts reach over the FLOP they do for each byte, under the device's roofs.
std::string rooflineChart(const PlanReport &report);
/// Tasks of the pipeline's ranks over time.
std::string timelineChart(const ClusterPlan &plan);
/// Seconds that each tier of links is busy in a step.
std::string trafficChart(const ClusterPlan &plan);
/// Plans of the search by latency and rate.
std::string scatterChart(const PlanSearch &search);

} // namespace k2c::report

#endif // K2C_LIB_REPORT_CHARTS_H

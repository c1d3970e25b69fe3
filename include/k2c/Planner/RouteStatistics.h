//===- RouteStatistics.h - Statistics of the program that is planned ----------===//
#ifndef K2C_PLANNER_ROUTESTATISTICS_H
#define K2C_PLANNER_ROUTESTATISTICS_H

#include "base/RouteStatistics.h"
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace k2c {

struct PlacedModel;

/// Of which tokens: those of prompts, generated ones, or all.
enum class RoutedPhase : uint8_t { Both, Prefill, Decode };
std::optional<RoutedPhase> parseRoutedPhase(std::string_view word);

/// Refuses statistics of another model, or of another number of experts, ranks or layers with experts.
Status checkStatistics(const RouteStatistics &statistics, const std::string &file, const PlacedModel &model,
                       int64_t sources);

} // namespace k2c

#endif // K2C_PLANNER_ROUTESTATISTICS_H

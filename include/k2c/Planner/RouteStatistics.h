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

/// Refuses statistics of another model, of another number of experts, ranks or layers with experts, or with tokens that
/// chose more than the `topK` experts that the model's tokens choose; 0: nobody knows how many these are.
Status checkStatistics(const RouteStatistics &statistics, const std::string &file, const PlacedModel &model,
                       int64_t sources, int64_t topK);

} // namespace k2c

#endif // K2C_PLANNER_ROUTESTATISTICS_H

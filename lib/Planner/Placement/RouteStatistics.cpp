//===- RouteStatistics.cpp - Which experts tokens chose in a run --------------===//

#include "k2c/Planner/RouteStatistics.h"

#include "base/ExpertPlacement.h"
#include "base/Utf8.h"
#include <tuple>

using namespace k2c;

std::optional<RoutedPhase> k2c::parseRoutedPhase(std::string_view word) {
  return word == "both"      ? std::optional(RoutedPhase::Both)
         : word == "prefill" ? std::optional(RoutedPhase::Prefill)
         : word == "decode"  ? std::optional(RoutedPhase::Decode)
                             : std::nullopt;
}

/// Refuses a set of more than `topK` experts.
static Status checkChosen(const RouteStatistics &statistics, const std::string &file, int64_t topK,
                          const std::string &write) {
  for (const auto &[layer, choices] : statistics.layers)
    for (auto [phase, entries] : {std::pair{"prefill", &choices.prefill}, std::pair{"decode", &choices.decode}})
      for (size_t i = 0; i < entries->size(); ++i)
        if (const size_t chosen = (*entries)[i].experts.size(); chosen > static_cast<size_t>(topK))
          return Error{file + ": layers." + std::to_string(layer) + "." + phase + "[" + std::to_string(i) + "].experts",
                       "has " + std::to_string(chosen) + ", and a token of the program chooses " + std::to_string(topK),
                       write};
  return Status::success();
}

Status k2c::checkStatistics(const RouteStatistics &statistics, const std::string &file, const PlacedModel &model,
                            int64_t sources, int64_t topK) {
  const std::string write = std::string(statisticsRemedy) + " of the program that is planned";
  if (statistics.model != model.name)
    return Error{file + ": model",
                 "is " + shortened(statistics.model, maxQuoted / 2) + ", the statistics are needed of " +
                     shortened(model.name, maxQuoted / 2),
                 write};
  for (auto [key, is, wanted] :
       {std::tuple{"experts", statistics.experts, model.experts}, std::tuple{"ranks", statistics.ranks, sources}})
    if (is != wanted)
      return Error{file + ": " + key, "is " + std::to_string(is) + ", the program has " + std::to_string(wanted),
                   write};
  for (const int64_t layer : model.layers)
    if (statistics.layers.count(layer) == 0)
      return Error{file + ": layers", "has no layer " + std::to_string(layer) + ", which has experts", write};
  if (statistics.layers.size() != model.layers.size())
    return Error{file + ": layers",
                 "has " + std::to_string(statistics.layers.size()) + " entries, the model has " +
                     std::to_string(model.layers.size()) + " layers of experts",
                 write};
  return topK > 0 ? checkChosen(statistics, file, topK, write) : Status::success();
}

//===- TrafficCommand.cpp - k2c plan MODEL --stats FILE -----------------------===//
//
// The traffic of a program of several ranks for the routes of a run, exactly: what `run --counters` counts as payload
// in the run that wrote the statistics. Nothing is predicted, so flags of predictions are refused.
//
//===----------------------------------------------------------------------===//
#include "TrafficCommand.h"

#include "../CommandLine.h"
#include "base/File.h"
#include "base/JsonText.h"
#include "k2c/Planner/CompileLayout.h"
#include "k2c/Planner/ComputeType.h"
#include "k2c/Planner/RouteBound.h"
#include "k2c/Planner/RouteTraffic.h"
#include <cstdio>
#include <iostream>

using namespace k2c;

namespace {

/// A flag that says nothing of which rows are sent.
Status checkFlags(const ClusterFlags &flags) {
  const CompileFlags &c = flags.compile;
  const std::pair<const char *, bool> others[] = {{"--workload", !flags.workload.empty()},
                                                  {"--train", flags.train},
                                                  {"--search", flags.search},
                                                  {"--objective", !flags.objective.empty()},
                                                  {"--weights", !flags.weights.empty()},
                                                  {"--cache", !c.cache.empty()},
                                                  {"--mla", !c.mla.empty()},
                                                  {"--step-tokens", c.stepTokens.has_value()},
                                                  {"--max-sequences", c.maxSequences.has_value()},
                                                  {"--max-context", c.maxContext.has_value()},
                                                  {"--output-rows", c.outputRows.has_value()},
                                                  {"--html", !flags.output.html.empty()},
                                                  {"--trace", !flags.output.trace.empty()}};
  for (const auto &[flag, isGiven] : others)
    if (isGiven)
      return Error{flag, "has no meaning beside --stats", "leave one of them out"};
  if (flags.stats.empty())
    return Error{"--placement", "is where the experts of --stats are, and there are none", "add --stats FILE"};
  if (c.compute == "fp8")
    return Error{"--compute fp8", "k2c compile has f32 and bf16", "choose one of these"};
  return Status::success();
}

/// As asked for, else as the statistics state, else as a compile for the topology would choose: a note says so then, as
/// the run may have been of another program.
DType computeOf(const ClusterFlags &flags, const RouteStatistics &statistics, const ModelSpec &spec,
                const Device &device) {
  if (std::optional<DType> asked = parseComputeType(flags.compile.compute))
    return *asked;
  if (const std::optional<DType> ofRun = parseComputeType(statistics.compute))
    return *ofRun;
  const DType chosen =
      chooseCompute(spec, device.f32.value < device.bf16.value ? Bf16Unit::Avx512 : Bf16Unit::None).type;
  std::fprintf(stderr,
               "k2c: note: %s has no \"compute\", the type of the rows: bytes are of rows in %s; --compute says "
               "another\n",
               flags.stats.c_str(), wordOf(chosen).c_str());
  return chosen;
}

Expected<ExpertPlacement> placementOf(const ClusterFlags &flags, const ModelSpec &spec, const Topology &topology,
                                      const ExpertDivision &division) {
  const std::string &path = flags.placement;
  if (Status status = checkBinds(spec, topology, division.nodes, {flags.routeLimit, 0}); !status)
    return status.takeError();
  const PlacedModel &model = division.model;
  if (path.empty())
    return defaultPlacement(model, flags.routeLimit);
  Expected<std::string> text = readUserFile(path, maxPlacementBytes);
  if (!text)
    return text.takeError();
  return readExpertPlacement(*text, path, model, "make it with k2c place");
}

void print(const RouteTraffic &traffic, const ExpertDivision &division, const std::string &layout, bool isJson) {
  nlohmann::ordered_json tiers = nlohmann::ordered_json::array();
  for (size_t tier = 0; tier < traffic.tiers.size(); ++tier)
    if (division.hasTier[tier])
      tiers.push_back({{"tier", division.tiers[tier]},
                       {"payload_bytes", traffic.tiers[tier].payloadBytes.value()},
                       {"messages", traffic.tiers[tier].messages.value()}});
  if (isJson) {
    std::cout << jsonText(nlohmann::ordered_json{
                     {"format", 1},
                     {"model", division.model.name},
                     {"layout", layout},
                     {"traffic", tiers},
                     {"nodes_per_token", {{"mean", traffic.nodesMean}, {"max", traffic.nodesMost}}},
                     {"fullest_over_mean", {{"mean", traffic.imbalanceMean()}, {"max", traffic.imbalanceMost()}}}})
              << "\n";
    return;
  }
  std::printf("%-12s%20s%16s\n", "tier", "payload bytes", "messages");
  for (const auto &tier : tiers)
    std::printf("%-12s%20lld%16lld\n", tier["tier"].get<std::string>().c_str(),
                static_cast<long long>(tier["payload_bytes"]), static_cast<long long>(tier["messages"]));
  std::printf("nodes a token, in a layer: %.3f, at most %lld\nrows of the fullest rank over the mean: %.3f, in the "
              "worst layer %.3f\n",
              traffic.nodesMean, static_cast<long long>(traffic.nodesMost), traffic.imbalanceMean(),
              traffic.imbalanceMost());
}

} // namespace

bool k2c::asksTraffic(const ClusterFlags &flags) { return !flags.stats.empty() || !flags.placement.empty(); }

int k2c::planTraffic(const ClusterFlags &flags, const ModelSpec &spec, const Topology &topology) {
  if (Status status = checkFlags(flags); !status)
    return fail(status.error());
  Expected<ParallelLayout> layout = parseCompileLayout(flags.layout, spec, topology);
  if (!layout)
    return fail(layout.error());
  Expected<RouteStatistics> statistics = readStatistics(flags.stats);
  if (!statistics)
    return fail(statistics.error());
  const ExpertDivision division =
      expertDivision(spec, topology, *layout, computeOf(flags, *statistics, spec, topology.device));
  if (Status right = checkStatistics(*statistics, flags.stats, division.model, division.sources(), division.topK);
      !right)
    return fail(right.error());
  Expected<ExpertPlacement> placement = placementOf(flags, spec, topology, division);
  if (!placement)
    return fail(placement.error());
  Expected<RouteTraffic> traffic = countTraffic(*statistics, *placement, division);
  if (!traffic)
    return fail(traffic.error());
  print(*traffic, division, compiledText(*layout), flags.output.json);
  return 0;
}

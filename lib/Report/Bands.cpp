//===- Bands.cpp - What plans of published runs came to -------------------===//

#include "Bands.h"

#include "EmbeddedBands.h"
#include <algorithm>

using namespace k2c;
using namespace k2c::report;

namespace {

/// Planned rate / published one, by the name of the run.
using Ratios = std::vector<std::pair<std::string, double>>;

Ratios ratiosOf(const std::string &name) {
  static const nlohmann::json classes = nlohmann::json::parse(embeddedBands().front().text, nullptr, false);
  Ratios ratios;
  if (const auto runs = classes.find(name); runs != classes.end())
    for (const auto &[run, ratio] : runs->items())
      ratios.emplace_back(run, ratio.get<double>());
  return ratios;
}

std::string printed(double ratio) { return formatNumber(ratio, 3); }

Band bandOf(const std::string &name) {
  constexpr size_t fewest = 3; // two runs say nothing of a third
  const Ratios ratios = ratiosOf(name);
  if (ratios.size() >= fewest) {
    const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end(),
                                                   [](const auto &a, const auto &b) { return a.second < b.second; });
    return {name, "within " + printed(least->second) + " to " + printed(most->second) + " of " +
                      std::to_string(ratios.size()) + " published runs"};
  }
  std::string runs;
  for (const auto &[run, ratio] : ratios)
    runs += (runs.empty() ? ": " : ", ") + run + " " + printed(ratio);
  return {name,
          "no band, " + (runs.empty() ? "no published run" : std::to_string(ratios.size()) + " published" + runs)};
}

} // namespace

std::vector<Band> report::bandsOf(const PlanReport &report) {
  const ClusterPlan &plan = report.plan;
  if (report.topology.device.kind == DeviceKind::Cpu)
    return {};
  if (plan.phase == PlanPhase::Train)
    return {bandOf("training")};
  std::vector<Band> bands;
  auto has = [&](const char *phase) {
    return std::any_of(plan.steps.begin(), plan.steps.end(), [&](const StepPart &p) { return p.phase == phase; });
  };
  if (has("prefill"))
    bands.push_back(bandOf(plan.overlaps("prefill") ? "prefill with overlap" : "prefill without overlap"));
  if (has("decode")) {
    const double each = plan.figure("sequences_per_rank").value_or(1) / double(plan.layout.tp * plan.layout.cp);
    bands.push_back(bandOf(each > 128 ? "decode above 128 sequences a device" : "decode up to 128 sequences a device"));
  }
  return bands;
}

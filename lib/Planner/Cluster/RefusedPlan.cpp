//===- RefusedPlan.cpp - Why a plan is refused, and what would help ---------------===//

#include "k2c/Planner/RefusedPlan.h"

#include "Variant.h"
#include <algorithm>

using namespace k2c;
using namespace k2c::planner;

const MemoryPart *RefusedPlan::tooLarge() const {
  if (!plan || plan->memory.empty() || plan->fullest().fits())
    return nullptr;
  const std::vector<MemoryPart> &parts = plan->fullest().parts;
  return &*std::max_element(parts.begin(), parts.end(),
                            [](const MemoryPart &a, const MemoryPart &b) { return a.bytes < b.bytes; });
}

/// As --layout takes it.
static std::string textOf(const ParallelLayout &layout, PlanPhase phase) {
  const bool isOneDevice =
      layout.devices() == 1 && layout.stepTokens == 0 && !layout.prefill && layout.role == PoolRole::Both;
  return isOneDevice ? oneRankLayout : format(layout, phase);
}

/// What `variant` changes in `asked`. `saysLayout`: its layout with it, in place of a search where there was one.
static Remedy remedyOf(const PlanRequest &asked, LayoutOrigin origin, const Variant &variant, bool saysLayout) {
  Remedy remedy;
  const Topology &machines = variant.topology;
  if (machines.name != asked.topology.name)
    remedy.flags.push_back({"--topology", machines.name});
  for (size_t i = 0; machines.name == asked.topology.name && i < machines.tiers.size(); ++i)
    if (machines.tiers[i].count != asked.topology.tiers[i].count)
      remedy.tiers.push_back({machines.tiers[i].name, std::to_string(machines.tiers[i].count)});
  if (saysLayout)
    remedy.flags.push_back({"--layout", textOf(variant.layout, asked.phase)});
  if (saysLayout && origin == LayoutOrigin::Searched)
    remedy.inPlaceOf = {"--search"};
  const bool ranks = asked.objective > Objective::Latency ||
                     (asked.phase == PlanPhase::Train && asked.objective != Objective::Throughput);
  if (!remedy.inPlaceOf.empty() && ranks) // which has no meaning beside a layout
    remedy.inPlaceOf.push_back("--objective");
  const bool hasOtherDevice = machines.device.kind != asked.topology.device.kind;
  if (variant.compute != asked.compute || hasOtherDevice)
    remedy.flags.push_back({"--compute", wordOf(variant.compute)});
  if (asked.phase == PlanPhase::Serve && (variant.cache != asked.cache || hasOtherDevice))
    remedy.flags.push_back({"--cache", wordOf(variant.cache)});
  if (variant.weights != asked.weights)
    remedy.flags.push_back({"--weights", "published"});
  if (variant.workload.memoryRouting() != asked.workload.memoryRouting())
    remedy.workload.push_back({"routing", "mean"});
  if (variant.workload.serve.batch != asked.workload.serve.batch)
    remedy.workload.push_back({"batch", std::to_string(*variant.workload.serve.batch)});
  return remedy;
}

RefusedPlan k2c::explainRefused(const PlanRequest &request, const ParallelLayout &layout, LayoutOrigin origin,
                                Error error) {
  RefusedPlan refused{std::move(error), {}, {}, {}, {}};
  if (!checkRequest(request))
    return refused;
  PlanRequest whatever = request;
  whatever.mustFit = false;
  if (Expected<ClusterPlan> plan = evaluate(whatever, layout))
    refused.plan = std::move(*plan);
  auto remedyFrom = [&](const std::optional<Variant> &variant, bool isFewest) -> std::optional<Remedy> {
    std::optional<ClusterPlan> plan = variant ? accepted(request, *variant) : std::nullopt;
    if (!plan)
      return std::nullopt;
    const bool isOther = textOf(variant->layout, request.phase) != format(layout, request.phase);
    const bool saysLayout = origin == LayoutOrigin::Searched ? isFewest : isOther || origin == LayoutOrigin::Default;
    Remedy remedy = remedyOf(request, origin, *variant, saysLayout);
    remedy.plan = std::move(*plan);
    return remedy;
  };
  refused.remedy = remedyFrom(cheapestChange(request, layout, origin), /*isFewest=*/false);
  refused.fewest = remedyFrom(fewestDevices(request, layout), /*isFewest=*/true);
  refused.soughtFewest = true;
  const bool isOfTargets = refused.error.where == missedTarget || origin == LayoutOrigin::Searched;
  if (!refused.remedy && !refused.fewest && isOfTargets)
    refused.unmet = unmetTarget(request, layout.role);
  return refused;
}

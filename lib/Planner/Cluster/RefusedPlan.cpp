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

/// What `variant` changes in `asked`; its layout where the request has one of its own.
static Remedy remedyOf(const PlanRequest &asked, const std::string &layout, LayoutOrigin origin,
                       const Variant &variant) {
  Remedy remedy;
  const Topology &machines = variant.topology;
  if (machines.name != asked.topology.name)
    remedy.flags.push_back({"--topology", machines.name});
  for (size_t i = 0; machines.name == asked.topology.name && i < machines.tiers.size(); ++i)
    if (machines.tiers[i].count != asked.topology.tiers[i].count)
      remedy.tiers.push_back({machines.tiers[i].name, std::to_string(machines.tiers[i].count)});
  const ParallelLayout &made = variant.layout;
  const std::string text = made.devices() > 1 || made.stepTokens > 0 || made.prefill || made.role != PoolRole::Both
                               ? format(made, asked.phase)
                               : oneRankLayout;
  if (origin != LayoutOrigin::Searched && (origin == LayoutOrigin::Default || text != layout))
    remedy.flags.push_back({"--layout", text});
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
  RefusedPlan refused{std::move(error), {}, {}, {}};
  if (!checkRequest(request))
    return refused;
  PlanRequest whatever = request;
  whatever.mustFit = false;
  if (Expected<ClusterPlan> plan = evaluate(whatever, layout))
    refused.plan = std::move(*plan);
  auto remedyFrom = [&](const std::optional<Variant> &variant) -> std::optional<Remedy> {
    std::optional<ClusterPlan> plan = variant ? accepted(request, *variant) : std::nullopt;
    if (!plan)
      return std::nullopt;
    Remedy remedy = remedyOf(request, format(layout, request.phase), origin, *variant);
    remedy.plan = std::move(*plan);
    return remedy;
  };
  refused.remedy = remedyFrom(cheapestChange(request, layout, origin));
  refused.fewest = remedyFrom(fewestDevices(request, layout));
  return refused;
}

//===- Describe.cpp - Names, notes and what compiles --------------------------===//

#include "RequestModel.h"

#include "base/Utf8.h"
#include "k2c/Planner/Planner.h"
#include <algorithm>
#include <cmath>

using namespace k2c;
using namespace k2c::planner;

std::string k2c::whyNotCompiled(const PlanRequest &request, const ParallelLayout &layout) {
  if (request.phase == PlanPhase::Train)
    return "training programs are not in this build";
  if (layout.prefill || layout.role != PoolRole::Both)
    return "separate devices for prompts and for tokens are not in this build";
  if (Status status = checkCompiles(request.topology); !status)
    return status.error().message;
  if (!canCompile(request.spec))
    return "family " + request.spec.family + " is described for planning only";
  Status status = checkCompiles(request.spec, request.topology, layout);
  return status ? "" : status.error().message;
}

ClusterPlan planner::describePlan(const RequestModel &context, const ParallelLayout &layout) {
  const PlanRequest &request = context.request;
  ClusterPlan plan;
  plan.model = request.spec.name;
  plan.topology = request.topology.name;
  plan.workload = request.workload.name;
  plan.phase = request.phase;
  plan.layout = layout;
  plan.devices = layout.devices();
  plan.available = request.topology.ranks();
  plan.compute = request.compute;
  plan.weightFormat = nameOf(request.weights);
  plan.cache = request.cache;
  plan.layers = request.spec.layerCount();
  plan.expertLayers = request.spec.moeLayers();
  plan.whyNotCompilable = whyNotCompiled(request, layout);
  plan.notes = context.rates.notes;
  if (request.spec.moe && layout.ep > 1 && request.workload.memoryRouting() == Routing::Mean)
    plan.notes.push_back("memory is that of ranks whose experts get an even share of the tokens; a workload with "
                         "expert_load or routing: worst makes room for more");
  return plan;
}

StepPart planner::linkPart(const Links &links, const char *phase, const char *name, const LinkUse &use, double seconds,
                           double hidden) {
  const Bound bound = use.latency > links.transfer(use) ? Bound::Latency : Bound::Link;
  return {phase, name, Seconds(seconds), Flops(0), 0, use.total(), links.slowestName(use), bound, Seconds(hidden)};
}

void planner::addTraffic(ClusterPlan &plan, const char *phase, const LinkUse &use, const Topology &topology) {
  for (size_t tier = 0; tier < topology.tiers.size(); ++tier) {
    const Tier &t = topology.tiers[tier];
    plan.traffic.push_back(
        {phase, t.name, t.link, use.bytes[tier], t.effective(), Seconds(use.bytes[tier] / t.effective().value)});
  }
}

Bytes planner::wholeBytes(double bytes) { return Bytes(int64_t(std::ceil(std::clamp(bytes, 0.0, 9e18)))); }

Status planner::checkRequest(const PlanRequest &request) {
  const ModelSpec &spec = request.spec;
  const std::string where = "model '" + shortened(spec.name) + "'";
  const Checked total = totalParameters(spec),
                cache = cacheBytesOfContext(spec, CacheFormat::Plain, 4, spec.maxPosition);
  constexpr double most = 1e18; // sums of some such sizes stay below 2^63
  if (total.real() > most || cache.real() > most)
    return Error{where, "has more than 1e18 parameters or cache bytes", "take config.json from the published model"};
  if (total.value() <= 0)
    return Error{where, "has no parameters", ""};
  const ExpertLoad &load = request.workload.expertLoad;
  if (!load.empty() && (!spec.moe || int64_t(load.size()) != spec.moe->experts))
    return Error{"expert_load",
                 "has " + std::to_string(load.size()) + " loads, the model has " +
                     std::to_string(spec.moe ? spec.moe->experts : 0) + " experts",
                 "give one load for each expert"};
  if (request.workload.peakRouting == Routing::Measured && load.empty())
    return Error{"routing", "is measured, but there is no expert_load", "add the loads of the experts"};
  if (request.objective == Objective::Cost && !request.workload.dollarsPerDeviceHour)
    return Error{"--objective cost", "the workload has no price", "add dollars_per_device_hour to the workload"};
  if (request.phase == PlanPhase::Train)
    return Status::success();
  const RequestMix mix(request.workload.serve);
  const std::optional<Seconds> &perToken = request.workload.serve.timePerToken;
  if (perToken && mix.output <= 1)
    return Error{"targets.per_token", "is " + format(*perToken) + ", but requests of one generated token have no TPOT",
                 "leave it out, or raise output_tokens"};
  const int64_t longest = mix.longest;
  if (spec.encoderLayers == 0 && spec.maxPosition > 0 && longest > spec.maxPosition)
    return Error{"workload '" + shortened(request.workload.name) + "'",
                 "its longest sequence has " + std::to_string(longest) + " tokens, the model has " +
                     std::to_string(spec.maxPosition) + " positions",
                 "shorten prompt_tokens, history_tokens or output_tokens"};
  return Status::success();
}

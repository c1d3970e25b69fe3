//===- Evaluate.cpp - Requests checked and sent to serving or training --------===//

#include "RequestModel.h"
#include "Space.h"
#include "k2c/Model/Layers.h"

#include <algorithm>

using namespace k2c;
using namespace k2c::planner;

Expected<ClusterPlan> k2c::evaluate(const PlanRequest &request, const ParallelLayout &layout) {
  if (Status status = checkRequest(request); !status)
    return status.takeError();
  RequestModel context(request);
  return request.phase == PlanPhase::Serve ? evaluateServe(context, layout) : evaluateTrain(context, layout);
}

Workload k2c::defaultWorkload(const ModelSpec &spec, int64_t maxContext) {
  Workload workload;
  if (maxContext > 0 && spec.encoderLayers == 0) {
    workload.serve.prompt = Lengths::fixed(std::clamp<int64_t>(maxContext * 4 / 5, 1, 2000));
    workload.serve.output = Lengths::fixed(std::clamp<int64_t>(maxContext / 5, 1, 500));
  }
  return workload;
}

Workload k2c::defaultWorkload(const ModelSpec &spec) { return defaultWorkload(spec, spec.maxPosition); }

/// Replicas of `devices` devices: experts spread over them while there are enough, then layers; dense models split
/// attention within a node, then layers.
static ParallelLayout simpleServing(const PlanRequest &request, int64_t devices) {
  ParallelLayout layout;
  layout.replicas = request.topology.ranks() / devices;
  if (request.spec.moe) {
    layout.ep = std::min(devices, request.spec.moe->experts);
    while (devices % layout.ep)
      --layout.ep;
    layout.dp = layout.ep;
    layout.pp = devices / layout.ep;
    return layout;
  }
  const int64_t heads = commonHeads(request.spec);
  const int64_t node = std::max<int64_t>(1, request.topology.devicesPerNode());
  layout.tp = std::min(devices, node);
  while (heads % layout.tp || devices % layout.tp)
    --layout.tp;
  layout.pp = devices / layout.tp;
  return layout;
}

static ParallelLayout simpleTraining(const PlanRequest &request, int64_t pp, RecomputeSet recompute) {
  ParallelLayout layout;
  layout.pp = pp;
  layout.dp = request.topology.ranks() / pp;
  layout.zero = Zero::Os;
  layout.recompute = recompute;
  if (request.spec.moe)
    for (int64_t ep = 1; ep <= std::min<int64_t>(layout.dp, 64); ++ep)
      if (layout.dp % ep == 0 && request.spec.moe->experts % ep == 0)
        layout.ep = ep;
  return layout;
}

static std::vector<ParallelLayout> simpleTrainings(const PlanRequest &request) {
  std::vector<ParallelLayout> layouts;
  for (int64_t pp = 1; pp <= std::min(request.topology.ranks(), request.spec.layerCount()); pp *= 2)
    for (RecomputeSet set : {RecomputeSet::None, RecomputeSet::Layer})
      if (request.topology.ranks() % pp == 0)
        layouts.push_back(simpleTraining(request, pp, set));
  return layouts;
}

ParallelLayout k2c::largestDefault(const PlanRequest &request) {
  if (request.phase == PlanPhase::Serve)
    return simpleServing(request, request.topology.ranks());
  return simpleTrainings(request).back();
}

/// The plan with the most devices that the simple layouts use; of errors, that of the last.
static Expected<ClusterPlan> evaluateSimpleServing(const RequestModel &context, const PlanRequest &request) {
  const std::vector<int64_t> sizes = alignedDevices(request.topology);
  Expected<ClusterPlan> plan = evaluateServe(context, simpleServing(request, sizes.front()));
  for (size_t i = 1; i < sizes.size(); ++i) {
    const ParallelLayout layout = simpleServing(request, sizes[i]);
    if (plan && layout.devices() <= plan->devices)
      continue;
    if (Expected<ClusterPlan> next = evaluateServe(context, layout); next || !plan)
      plan = std::move(next);
  }
  return plan;
}

/// The first of the simple layouts that has a plan; of errors, that of the last.
static Expected<ClusterPlan> evaluateSimpleTraining(const RequestModel &context, const PlanRequest &request) {
  const std::vector<ParallelLayout> layouts = simpleTrainings(request);
  std::optional<Error> tooLarge; // what a layout that divides the model more is refused for otherwise comes after it
  for (const ParallelLayout &layout : layouts) {
    Expected<ClusterPlan> plan = evaluateTrain(context, layout);
    if (plan || (&layout == &layouts.back() && !tooLarge))
      return plan;
    if (plan.error().where == "memory")
      tooLarge = plan.error();
  }
  return *tooLarge;
}

Expected<ClusterPlan> k2c::evaluateDefault(const PlanRequest &request) {
  if (Status status = checkRequest(request); !status)
    return status.takeError();
  RequestModel context(request);
  return request.phase == PlanPhase::Serve ? evaluateSimpleServing(context, request)
                                           : evaluateSimpleTraining(context, request);
}

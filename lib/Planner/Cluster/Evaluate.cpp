//===- Evaluate.cpp - Requests checked and sent to serving or training --------===//

#include "RequestModel.h"
#include "Space.h"

#include <algorithm>

using namespace k2c;
using namespace k2c::planner;

Expected<ClusterPlan> k2c::evaluate(const PlanRequest &request, const ParallelLayout &layout) {
  if (Status status = checkRequest(request); !status)
    return status.takeError();
  RequestModel context(request);
  return request.phase == PlanPhase::Serve ? evaluateServe(context, layout) : evaluateTrain(context, layout);
}

Workload k2c::defaultWorkload(const ModelSpec &spec) {
  Workload workload;
  if (spec.maxPosition > 0 && spec.encoderLayers == 0) {
    workload.serve.prompt = Lengths::fixed(std::clamp<int64_t>(spec.maxPosition * 4 / 5, 1, 2000));
    workload.serve.output = Lengths::fixed(std::clamp<int64_t>(spec.maxPosition / 5, 1, 500));
  }
  return workload;
}

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
  const auto *gqa = std::get_if<GqaSpec>(&request.spec.attention);
  const int64_t heads = gqa ? gqa->heads : std::get<MlaSpec>(request.spec.attention).heads;
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

Expected<ClusterPlan> k2c::evaluateDefault(const PlanRequest &request) {
  if (Status status = checkRequest(request); !status)
    return status.takeError();
  RequestModel context(request);
  Expected<ClusterPlan> plan = Error{"layout", "there is none", ""};
  if (request.phase == PlanPhase::Serve) {
    int64_t used = 0;
    for (int64_t devices : alignedDevices(request.topology)) {
      const ParallelLayout layout = simpleServing(request, devices);
      if (plan && layout.devices() <= used)
        continue;
      Expected<ClusterPlan> next = evaluateServe(context, layout);
      if (!next && plan)
        continue;
      if (next)
        used = next->devices;
      plan = std::move(next);
    }
    return plan;
  }
  for (int64_t pp = 1; pp <= std::min(request.topology.ranks(), request.spec.layerCount()); pp *= 2)
    for (RecomputeSet set : {RecomputeSet::None, RecomputeSet::Layer})
      if (request.topology.ranks() % pp == 0)
        if ((plan = evaluateTrain(context, simpleTraining(request, pp, set))))
          return plan;
  return plan;
}

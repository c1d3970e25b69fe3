//===- NearestLayout.cpp - The accepted layout that changes least ---------------===//
//
// Layouts of the search space with the other keys of one that is refused, nearest first: by the factors between their
// ways and those asked for. The first that is accepted is planned. Of two pools one is changed.
//
//===----------------------------------------------------------------------===//

#include "Space.h"
#include "Variant.h"

#include <algorithm>
#include <cmath>

using namespace k2c;
using namespace k2c::planner;

namespace {

/// The ways of `from` with all else of `layout`; a pipeline of one stage has no schedule. A vocabulary that is divided
/// stays so, among the ranks that a stage has then.
ParallelLayout withWays(ParallelLayout layout, const ParallelLayout &from) {
  layout.tp = from.tp, layout.ep = from.ep, layout.etp = from.etp, layout.pp = from.pp;
  layout.dp = from.dp, layout.cp = from.cp, layout.sp = from.sp, layout.replicas = from.replicas;
  layout.redundantExperts = from.redundantExperts;
  layout.vocab = layout.vocab > 1 ? from.devicesOfStage() : 1;
  layout.layers.clear();
  layout.microbatches = 0;
  if (!layout.dividesExperts())
    layout.overlap = false;
  return layout;
}

ParallelLayout withoutSchedule(ParallelLayout layout) {
  layout.schedule = PipelineKind::OneFOneB;
  layout.chunks = 1;
  layout.overlap = false;
  return layout;
}

/// Sum of the factors between two layouts' ways, in doublings.
double distance(const ParallelLayout &a, const ParallelLayout &b) {
  double sum = 0;
  for (auto [one, other] : {std::pair{a.tp, b.tp}, std::pair{a.ep, b.ep}, std::pair{a.etp, b.etp},
                            std::pair{a.pp, b.pp}, std::pair{a.cp, b.cp}, std::pair{a.devices(), b.devices()}})
    sum += std::abs(std::log2(double(one) / double(std::max<int64_t>(1, other))));
  return sum;
}

/// Ways of the search space, each with the other keys of `layout`.
std::vector<ParallelLayout> candidates(const PlanRequest &request, const ParallelLayout &layout, int64_t devices) {
  std::vector<ParallelLayout> space;
  if (request.phase == PlanPhase::Train) {
    for (const ParallelLayout &ways : trainingWays(request, devices)) {
      space.push_back(withWays(layout, ways));
      if (layout.schedule != PipelineKind::OneFOneB || ways.pp == 1)
        space.push_back(withoutSchedule(space.back()));
    }
    return space;
  }
  for (ParallelLayout ways : replicaSpace(request)) {
    const int64_t most = devices / ways.devices();
    if (ways.overlap || most == 0)
      continue;
    ways.replicas = std::clamp<int64_t>(layout.devicesOfReplica() * layout.replicas / ways.devices(), 1, most);
    space.push_back(withWays(layout, ways));
    if (ways.replicas == most)
      continue;
    ways.replicas = most;
    space.push_back(withWays(layout, ways));
  }
  return space;
}

/// Whether a layout is accepted, without its tables.
bool holds(const RequestModel &context, const ParallelLayout &layout, PipelineCache &cache) {
  if (context.request.phase == PlanPhase::Train)
    return scoreTrain(context, layout, cache, /*simulates=*/false) && evaluateTrain(context, layout);
  const double capacity = double(context.request.topology.device.memory.value.value);
  if (!layout.prefill && minServingBytes(context, layout).value_or(INFINITY) > capacity)
    return false;
  return bool(evaluateServe(context, layout));
}

/// The nearest of `space` that is accepted takes the place of `layout`.
bool takeNearest(const RequestModel &context, std::vector<ParallelLayout> space, ParallelLayout &layout) {
  std::stable_sort(space.begin(), space.end(), [&](const ParallelLayout &a, const ParallelLayout &b) {
    return distance(a, layout) < distance(b, layout);
  });
  PipelineCache cache;
  const auto found =
      std::find_if(space.begin(), space.end(), [&](const ParallelLayout &each) { return holds(context, each, cache); });
  if (found == space.end())
    return false;
  layout = *found;
  return true;
}

} // namespace

bool planner::moveToNearest(const PlanRequest &asked, Variant &variant, int64_t devices) {
  const PlanRequest request = variant.of(asked);
  const RequestModel context(request);
  if (!variant.layout.prefill)
    return takeNearest(context, candidates(request, variant.layout, devices), variant.layout);
  // Of two pools one is changed: that of tokens, else that of prompts.
  ParallelLayout tokens = variant.layout;
  tokens.prefill = nullptr;
  const ParallelLayout prompts = *variant.layout.prefill;
  auto both = [&](const ParallelLayout &first, const ParallelLayout &second) {
    ParallelLayout layout = first;
    layout.prefill = std::make_shared<const ParallelLayout>(second);
    return layout;
  };
  std::vector<ParallelLayout> space;
  if (devices > prompts.devices())
    for (const ParallelLayout &each : candidates(request, tokens, devices - prompts.devices()))
      space.push_back(both(each, prompts));
  if (takeNearest(context, std::move(space), variant.layout))
    return true;
  space.clear();
  if (devices > tokens.devices())
    for (const ParallelLayout &each : candidates(request, prompts, devices - tokens.devices()))
      space.push_back(both(tokens, each));
  return takeNearest(context, std::move(space), variant.layout);
}

//===- UnmetTarget.cpp - A target that no layout reaches --------------------------===//

#include "Ranking.h"
#include "Space.h"
#include "Variant.h"

#include <cmath>

using namespace k2c;
using namespace k2c::planner;

namespace {

/// The layout with the least of a figure.
struct Least {
  explicit Least(const char *figure) : figure(figure) {}
  const char *const figure;
  double value = INFINITY;
  std::string layout;

  void take(const ClusterPlan &plan) {
    const std::optional<double> next = plan.figure(figure); // none of the other pool's
    if (!next || *next >= value)
      return;
    value = *next;
    layout = format(plan.layout, plan.phase);
  }
  bool misses(const std::optional<Seconds> &target) const { return target && value > target->value; }
};

} // namespace

std::optional<UnmetTarget> planner::unmetTarget(const PlanRequest &asked, PoolRole role) {
  const ServeWorkload &targets = asked.workload.serve;
  if (asked.phase == PlanPhase::Train || (!targets.timeToFirstToken && !targets.timePerToken))
    return std::nullopt;
  Variant variant(asked, ParallelLayout());
  variant.workload.serve.timeToFirstToken = variant.workload.serve.timePerToken = std::nullopt;
  PlanRequest request = variant.of(asked);
  request.objective = Objective::Latency; // one sequence a rank, where the workload does not say how many
  const RequestModel context(request);
  Least each("tpot_s"), first("ttft_p95_s");
  auto look = [&](std::vector<ParallelLayout> layouts) {
    for (ParallelLayout &layout : layouts) {
      layout.role = role;
      if (role == PoolRole::Decode)
        layout.stepTokens = 0;
      if (const Expected<ClusterPlan> plan = evaluateServe(context, layout)) {
        each.take(*plan);
        first.take(*plan);
      }
    }
  };
  look(servingSpace(request));
  if (role == PoolRole::Both && (each.misses(targets.timePerToken) || first.misses(targets.timeToFirstToken))) {
    int64_t compared = 0;
    look(bestPools(context, 32, compared));
  }
  for (const auto &[least, target, isFirst] :
       {std::tuple{&each, &targets.timePerToken, false}, std::tuple{&first, &targets.timeToFirstToken, true}})
    if (least->misses(*target) && !least->layout.empty())
      return UnmetTarget{isFirst, **target, Seconds(least->value), least->layout};
  return std::nullopt;
}

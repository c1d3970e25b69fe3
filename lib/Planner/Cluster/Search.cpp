//===- Search.cpp - The best of all layouts, and why the others lose ----------===//
//
// Every serving layout of the space is evaluated, and pairs of two pools (PoolSearch.cpp); training layouts are
// bounded, then simulated (TrainSearch.cpp). Of those that hold, the ones that k2c compile accepts come first, then the
// objective ranks them; nothing is pruned that could win. Ties go to fewer devices, then to the simpler layout.
//
//===----------------------------------------------------------------------===//

#include "Ranking.h"
#include "Space.h"
#include "TrainingModel.h"
#include "base/Utf8.h"
#include "k2c/Support/Largest.h"

#include <algorithm>
#include <limits>

using namespace k2c;
using namespace k2c::planner;

namespace {

constexpr size_t maxRunnersUp = 5;
constexpr size_t maxFrontier = 12;

/// A candidate and the numbers that it is ranked by; less is better in each.
struct Candidate {
  ClusterPlan plan;
  std::vector<double> rank;
};

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

/// True when `a` is no worse than `b` in any of throughput, devices and, serving, the time of a token, training,
/// memory.
bool covers(const ClusterPlan &a, const ClusterPlan &b) {
  auto third = [](const ClusterPlan &plan) {
    return plan.phase == PlanPhase::Serve ? latencyOf(plan) : double(plan.fullest().total().value);
  };
  return tokensPerSecond(a) >= tokensPerSecond(b) && third(a) <= third(b) && a.devices <= b.devices;
}

/// What no other covers, by throughput, thinned evenly to a dozen.
std::vector<ClusterPlan> frontierOf(std::vector<const ClusterPlan *> plans) {
  std::sort(plans.begin(), plans.end(), [](const ClusterPlan *a, const ClusterPlan *b) {
    return std::tuple(-tokensPerSecond(*a), latencyOf(*a), a->devices) <
           std::tuple(-tokensPerSecond(*b), latencyOf(*b), b->devices);
  });
  std::vector<const ClusterPlan *> kept;
  for (const ClusterPlan *plan : plans)
    if (std::none_of(kept.begin(), kept.end(), [&](const ClusterPlan *other) { return covers(*other, *plan); }))
      kept.push_back(plan);
  std::vector<ClusterPlan> frontier;
  const size_t count = std::min(kept.size(), maxFrontier);
  for (size_t i = 0; i < count; ++i)
    frontier.push_back(*kept[count == 1 ? 0 : i * (kept.size() - 1) / (count - 1)]);
  return frontier;
}

/// The layout of the space whose fullest rank needs least, in words; empty when none divides the model.
std::string closest(const RequestModel &context, const std::vector<ParallelLayout> &space) {
  const PlanRequest &request = context.request;
  PipelineCache cache;
  double least = std::numeric_limits<double>::infinity();
  std::string which;
  for (ParallelLayout layout : space) {
    if (request.phase == PlanPhase::Train && request.topology.host)
      layout.offload = Offload::Both;
    std::optional<double> bytes =
        request.phase == PlanPhase::Serve ? minServingBytes(context, layout) : trainingBytes(context, layout, cache);
    if (!bytes || *bytes >= least)
      continue;
    least = *bytes;
    which = format(layout, request.phase);
  }
  if (which.empty())
    return "";
  return "the smallest, " + which + ", needs " + format(wholeBytes(least)) + " of a device's " +
         format(request.topology.device.memory.value);
}

Error nothingFits(const RequestModel &context, const std::vector<ParallelLayout> &space,
                  const std::vector<Refused> &refused) {
  const PlanRequest &request = context.request;
  std::string reasons = closest(context, space);
  for (const Refused &each : refused)
    reasons +=
        (reasons.empty() ? "" : "; ") + each.reason + " refuses " + std::to_string(each.count) + ": " + each.example;
  return {"model '" + shortened(request.spec.name) + "' on topology '" + shortened(request.topology.name) + "'",
          "none of " + std::to_string(space.size()) + " layouts holds: " + reasons,
          "choose a larger topology or a smaller workload"};
}

/// The best layouts with fewer sequences: slower clusters, faster users.
void addSmallerBatches(const RequestModel &context, const std::vector<Candidate> &ranked,
                       std::vector<ClusterPlan> &extra) {
  const ServeWorkload &serve = context.request.workload.serve;
  if (serve.batch || serve.arrivalRate)
    return;
  const size_t layouts = std::min<size_t>(ranked.size(), 16);
  for (size_t i = 0; i < layouts; ++i) {
    Workload workload = context.request.workload;
    int64_t batch = int64_t(ranked[i].plan.figure("batch").value_or(0)) / 4;
    const int64_t least = ranked[i].plan.layout.dp * ranked[i].plan.layout.replicas;
    for (; batch >= least; batch /= 4) {
      workload.serve.batch = batch;
      PlanRequest request = context.request;
      PlanRequest smaller{request.spec,      request.topology, workload,      request.phase,
                          request.weights,   request.compute,  request.cache, request.withTimeline,
                          request.objective, request.mustFit};
      RequestModel model(smaller);
      if (Expected<ClusterPlan> plan = evaluateServe(model, ranked[i].plan.layout))
        extra.push_back(std::move(*plan));
    }
  }
}

/// The fewest replicas of a layout that serve what arrives; `plan` is that of as many as there may be.
ClusterPlan withFewestReplicas(const RequestModel &context, const ParallelLayout &layout, ClusterPlan plan) {
  smallest(layout.replicas, [&](int64_t replicas) {
    ParallelLayout fewer = layout;
    fewer.replicas = replicas;
    Expected<ClusterPlan> smaller = evaluateServe(context, fewer);
    if (smaller)
      plan = std::move(*smaller);
    return bool(smaller);
  });
  return plan;
}

/// Serving: every layout's plan.
std::vector<ClusterPlan> evaluateAll(const RequestModel &context, const std::vector<ParallelLayout> &space,
                                     Refusals &refusals) {
  // Where arrivals say how many tokens there are, fewer devices are better; more make a token faster.
  const bool fewest =
      context.request.objective != Objective::Latency && context.request.workload.serve.arrivalRate.has_value();
  std::vector<ClusterPlan> plans;
  for (const ParallelLayout &layout : space) {
    Expected<ClusterPlan> plan = evaluateServe(context, layout);
    if (!plan)
      refusals.add(plan.error(), layout, PlanPhase::Serve);
    else
      plans.push_back(fewest ? withFewestReplicas(context, layout, std::move(*plan)) : std::move(*plan));
  }
  return plans;
}

/// Serving: plans of the best pairs of two pools; how many pairs were compared.
int64_t evaluatePools(const RequestModel &context, std::vector<ClusterPlan> &plans, Refusals &refusals) {
  constexpr size_t planned = 32;
  int64_t compared = 0;
  for (const ParallelLayout &layout : bestPools(context, planned, compared)) {
    Expected<ClusterPlan> plan = evaluateServe(context, layout);
    if (plan)
      plans.push_back(std::move(*plan));
    else
      refusals.add(plan.error(), layout, PlanPhase::Serve);
  }
  return compared;
}

/// The next in the objective; the last of them is the best that shares its devices otherwise (one pool or two), when
/// the others do not show one.
std::vector<RunnerUp> runnersUpOf(const std::vector<Candidate> &ranked, Objective objective) {
  const ClusterPlan &best = ranked.front().plan;
  auto other = [&](const Candidate &each) { return !each.plan.layout.prefill != !best.layout.prefill; };
  const size_t count = std::min(ranked.size(), maxRunnersUp + 1);
  std::vector<const ClusterPlan *> next;
  for (size_t i = 1; i < count; ++i)
    next.push_back(&ranked[i].plan);
  auto found = std::find_if(ranked.begin(), ranked.end(), other);
  if (found != ranked.end() && size_t(found - ranked.begin()) >= count)
    next.back() = &found->plan;
  std::vector<RunnerUp> runnersUp;
  for (const ClusterPlan *plan : next)
    runnersUp.push_back({*plan, whyItLoses(*plan, best, objective)});
  return runnersUp;
}

} // namespace

Expected<PlanSearch> k2c::search(const PlanRequest &request) {
  if (Status status = checkRequest(request); !status)
    return status.takeError();
  const bool serves = request.phase == PlanPhase::Serve;
  RequestModel context(request);
  PlanSearch result;
  result.objective = request.objective;
  Refusals refusals;
  std::vector<Candidate> ranked;
  const std::vector<ParallelLayout> space = serves ? servingSpace(request) : trainingSpace(request);
  result.candidates = int64_t(space.size());
  std::vector<ClusterPlan> plans =
      serves ? evaluateAll(context, space, refusals) : trainingPlans(context, space, refusals, result.candidates);
  if (serves)
    result.candidates += evaluatePools(context, plans, refusals);
  for (ClusterPlan &plan : plans) {
    result.compiling += plan.whyNotCompilable.empty();
    std::vector<double> rank = searchRank(plan, request.objective);
    ranked.push_back({std::move(plan), std::move(rank)});
  }
  result.refused = refusals.list();
  if (ranked.empty())
    return nothingFits(context, space, result.refused);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Candidate &a, const Candidate &b) { return a.rank < b.rank; });
  result.best = ranked.front().plan;
  result.runnersUp = runnersUpOf(ranked, request.objective);
  std::vector<ClusterPlan> extra;
  if (serves)
    addSmallerBatches(context, ranked, extra);
  std::vector<const ClusterPlan *> all;
  for (const Candidate &candidate : ranked)
    all.push_back(&candidate.plan);
  for (const ClusterPlan &plan : extra)
    all.push_back(&plan);
  result.frontier = frontierOf(std::move(all));
  return result;
}

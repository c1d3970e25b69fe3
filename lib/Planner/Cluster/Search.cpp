//===- Search.cpp - The best of all layouts, and why the others lose ----------===//
//
// Every layout of the space is evaluated; the objective ranks those that hold. A layout is cheap (prefix sums, closed
// forms), so nothing is pruned that could win. Ties go to fewer devices, then to the simpler layout.
//
//===----------------------------------------------------------------------===//

#include "RequestModel.h"
#include "Space.h"
#include "Trainer.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>

using namespace k2c;
using namespace k2c::planner;

namespace {

constexpr size_t mostRunnersUp = 5;
constexpr size_t mostFrontier = 12;

/// A candidate and the numbers that it is ranked by; less is better in each.
struct Candidate {
  ClusterPlan plan;
  std::vector<double> rank;
};

double tokensPerSecond(const ClusterPlan &plan) {
  return plan.figure(plan.phase == PlanPhase::Serve ? "output_tokens_per_s" : "tokens_per_s").value_or(0);
}
double latency(const ClusterPlan &plan) {
  return plan.figure(plan.phase == PlanPhase::Serve ? "tpot_s" : "step_s").value_or(0);
}

double objectiveOf(const ClusterPlan &plan, Objective objective) {
  switch (objective) {
  case Objective::Throughput:
    return -tokensPerSecond(plan);
  case Objective::Latency:
    return latency(plan);
  case Objective::Devices:
    return double(plan.devices);
  case Objective::ExpertParallel:
    return double(plan.layout.ep);
  case Objective::Cost:
    return plan.figure("dollars_per_million_tokens").value_or(0);
  }
  return 0;
}

std::vector<double> rankOf(const ClusterPlan &plan, Objective objective) {
  const ParallelLayout &l = plan.layout;
  return {objectiveOf(plan, objective),
          -tokensPerSecond(plan),
          double(plan.devices),
          double(l.pp),
          double(l.tp),
          double(l.overlap),
          double(l.ep),
          double(l.redundantExperts)};
}

//===----------------------------------------------------------------------===//
// Why one loses
//===----------------------------------------------------------------------===//

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

/// Device-seconds that each part of a step costs for a token that users get.
std::map<std::string, double> costs(const ClusterPlan &plan) {
  std::map<std::string, double> each;
  const double tokens = std::max(1e-9, tokensPerSecond(plan));
  double all = 0;
  for (const StepPart &part : plan.steps)
    all += part.exposed().value;
  for (const StepPart &part : plan.steps)
    each[part.phase + ": " + part.name] += part.exposed().value / all * double(plan.devices) / tokens;
  return each;
}

std::string whyItLoses(const ClusterPlan &plan, const ClusterPlan &best, Objective objective) {
  const double mine = objectiveOf(plan, objective), theirs = objectiveOf(best, objective);
  std::string text;
  if (objective == Objective::Throughput)
    text = number(theirs / mine) + " times fewer tokens/s";
  else if (objective == Objective::Latency)
    text = number(mine / theirs) + " times longer " + (plan.phase == PlanPhase::Serve ? "for a token" : "for a step");
  else if (objective == Objective::Cost)
    text = number(mine / theirs) + " times the dollars";
  else
    text =
        number(mine) + " against " + number(theirs) + (objective == Objective::Devices ? " devices" : " expert ranks");
  if (mine == theirs)
    text = "as good, " + number(tokensPerSecond(best) / tokensPerSecond(plan)) + " times fewer tokens/s";
  const std::map<std::string, double> ours = costs(plan), other = costs(best);
  std::string where;
  double most = 0;
  for (const auto &[part, cost] : ours) {
    auto found = other.find(part);
    const double more = cost - (found == other.end() ? 0 : found->second);
    if (more > most) {
      most = more;
      where = part;
    }
  }
  if (where.empty())
    return text;
  auto found = other.find(where);
  auto spent = [](double seconds) { return format(Seconds(seconds)); };
  return text + "; " + where + " takes " + spent(ours.at(where)) + " of a device for a token, there " +
         (found == other.end() ? "nothing" : spent(found->second));
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

class Refusals {
public:
  void add(const Error &error, const ParallelLayout &layout, PlanPhase phase) {
    Refused &entry = byReason[error.where];
    if (entry.count++ == 0)
      entry.example = format(layout, phase) + ": " + error.message;
    entry.reason = error.where;
  }
  std::vector<Refused> list() const {
    std::vector<Refused> all;
    for (const auto &[reason, entry] : byReason)
      all.push_back(entry);
    std::sort(all.begin(), all.end(), [](const Refused &a, const Refused &b) { return a.count > b.count; });
    return all;
  }

private:
  std::map<std::string, Refused> byReason;
};

/// True when `a` is no worse than `b` in any of throughput, devices and, serving, the time of a token, training,
/// memory.
bool covers(const ClusterPlan &a, const ClusterPlan &b) {
  auto third = [](const ClusterPlan &plan) {
    return plan.phase == PlanPhase::Serve ? latency(plan) : double(plan.fullest().total().value);
  };
  return tokensPerSecond(a) >= tokensPerSecond(b) && third(a) <= third(b) && a.devices <= b.devices;
}

/// What no other covers, by throughput, thinned evenly to a dozen.
std::vector<ClusterPlan> frontierOf(std::vector<const ClusterPlan *> plans) {
  std::sort(plans.begin(), plans.end(), [](const ClusterPlan *a, const ClusterPlan *b) {
    return std::tuple(-tokensPerSecond(*a), latency(*a), a->devices) <
           std::tuple(-tokensPerSecond(*b), latency(*b), b->devices);
  });
  std::vector<const ClusterPlan *> kept;
  for (const ClusterPlan *plan : plans)
    if (std::none_of(kept.begin(), kept.end(), [&](const ClusterPlan *other) { return covers(*other, *plan); }))
      kept.push_back(plan);
  std::vector<ClusterPlan> frontier;
  const size_t count = std::min(kept.size(), mostFrontier);
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
      layout.offload = Offload::Activations;
    std::optional<double> bytes =
        request.phase == PlanPhase::Serve ? leastServingBytes(context, layout) : trainingBytes(context, layout, cache);
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
  return {"model '" + request.spec.name + "' on topology '" + request.topology.name + "'",
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
  int64_t low = 0, high = layout.replicas; // `high` replicas serve it
  while (high - low > 1) {
    ParallelLayout fewer = layout;
    fewer.replicas = low + (high - low) / 2;
    Expected<ClusterPlan> smaller = evaluateServe(context, fewer);
    (smaller ? high : low) = fewer.replicas;
    if (smaller)
      plan = std::move(*smaller);
  }
  return plan;
}

/// Serving: every layout's plan.
std::vector<ClusterPlan> evaluateAll(const RequestModel &context, const std::vector<ParallelLayout> &space,
                                     Refusals &refusals) {
  const bool fewest =
      context.request.objective == Objective::Devices && context.request.workload.serve.arrivalRate.has_value();
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

/// A score's numbers, less is better.
std::vector<double> rankOf(const TrainScore &score, Objective objective) {
  const double devices = double(score.layout.devices());
  const double first = objective == Objective::Devices          ? devices
                       : objective == Objective::ExpertParallel ? double(score.layout.ep)
                       : objective == Objective::Cost           ? devices / score.tokensPerSecond
                       : objective == Objective::Latency        ? score.stepSeconds
                                                                : -score.tokensPerSecond;
  return {first, -score.tokensPerSecond, devices, score.mostBytes};
}

/// Training: every layout is scored (`tried` adds those scored with offload as well); the first in the objective, and
/// those that are faster than all that need less memory, get a plan of their own.
std::vector<ClusterPlan> scoreAll(const RequestModel &context, const std::vector<ParallelLayout> &space,
                                  Refusals &refusals, int64_t &tried) {
  constexpr size_t planned = 16;
  const Objective objective = context.request.objective;
  PipelineCache cache;
  std::vector<std::pair<std::vector<double>, TrainScore>> scores;
  for (const ParallelLayout &layout : space) {
    Expected<TrainScore> score = scoreTrain(context, layout, cache);
    if (!score && score.error().where == "memory" && context.request.topology.host) {
      // A layout that holds its activations is never faster with them on the host; one that does not may hold them so.
      ParallelLayout offloaded = layout;
      offloaded.offload = Offload::Activations;
      ++tried;
      if (Expected<TrainScore> other = scoreTrain(context, offloaded, cache))
        score = std::move(other);
    }
    if (score)
      scores.emplace_back(rankOf(*score, objective), *score);
    else
      refusals.add(score.error(), layout, PlanPhase::Train);
  }
  std::stable_sort(scores.begin(), scores.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  std::vector<ClusterPlan> plans;
  double least = std::numeric_limits<double>::infinity();
  size_t steps = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    const TrainScore &score = scores[i].second;
    // Steps of 3 % of memory, so that the frontier is not a list of equals.
    const bool smaller = score.mostBytes < 0.97 * least && steps < planned;
    steps += smaller;
    if (smaller)
      least = score.mostBytes;
    if (i < planned || smaller)
      if (Expected<ClusterPlan> plan = evaluateTrain(context, score.layout))
        plans.push_back(std::move(*plan));
  }
  return plans;
}

} // namespace

Expected<PlanSearch> k2c::search(const PlanRequest &request) {
  if (Status status = checkRequest(request); !status)
    return status.takeError();
  if (request.objective == Objective::Cost && !request.workload.dollarsPerDeviceHour)
    return Error{"--objective cost", "the workload has no price", "add dollars_per_device_hour to the workload"};
  const bool serves = request.phase == PlanPhase::Serve;
  RequestModel context(request);
  PlanSearch result;
  result.objective = request.objective;
  Refusals refusals;
  std::vector<Candidate> ranked;
  const std::vector<ParallelLayout> space = serves ? servingSpace(request) : trainingSpace(request);
  result.candidates = int64_t(space.size());
  for (ClusterPlan &plan :
       serves ? evaluateAll(context, space, refusals) : scoreAll(context, space, refusals, result.candidates)) {
    std::vector<double> rank = rankOf(plan, request.objective);
    ranked.push_back({std::move(plan), std::move(rank)});
  }
  result.refused = refusals.list();
  if (ranked.empty())
    return nothingFits(context, space, result.refused);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Candidate &a, const Candidate &b) { return a.rank < b.rank; });
  result.best = ranked.front().plan;
  for (size_t i = 1; i < ranked.size() && result.runnersUp.size() < mostRunnersUp; ++i)
    result.runnersUp.push_back({ranked[i].plan, whyItLoses(ranked[i].plan, result.best, request.objective)});
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

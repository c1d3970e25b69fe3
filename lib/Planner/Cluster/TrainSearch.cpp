//===- TrainSearch.cpp - The training layouts that are worth a plan -----------===//
//
// Simulating a pipeline costs far more than all else of a layout. So every layout is bounded first: its memory, and a
// step without bubbles. Layouts are then simulated in the order of their bounds; one is passed over when enough others
// are known to be better than it can be, and one of these needs no more memory. What is planned is as if all had been
// simulated.
//
//===----------------------------------------------------------------------===//

#include "Ranking.h"
#include "TrainingModel.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <set>

using namespace k2c;
using namespace k2c::planner;

namespace {

constexpr size_t planned = 16;

using Rank = std::vector<double>;

/// A score's numbers, less is better.
Rank rankOf(const TrainScore &score, Objective objective) {
  const double devices = double(score.layout.devices());
  const Merits merits{score.tokensPerSecond, score.stepSeconds, devices, double(score.layout.ep),
                      devices / score.tokensPerSecond};
  return {objectiveOf(merits, objective), -score.tokensPerSecond, devices, score.maxBytes};
}

struct Scored {
  Rank rank;
  TrainScore score;
};

void sortByRank(std::vector<Scored> &scores) {
  std::stable_sort(scores.begin(), scores.end(), [](const Scored &a, const Scored &b) { return a.rank < b.rank; });
}

/// Whether a layout can still matter, asked by ascending bounds.
class Settled {
public:
  void add(const Scored &scored) {
    best.insert(scored.rank);
    if (best.size() > planned)
      best.erase(std::prev(best.end()));
    waiting.push({scored.rank, scored.score.maxBytes});
  }
  bool operator()(const Scored &bound) {
    while (!waiting.empty() && waiting.top().first <= bound.rank) {
      least = std::min(least, waiting.top().second);
      waiting.pop();
    }
    return best.size() == planned && *best.rbegin() < bound.rank && least <= bound.score.maxBytes;
  }

private:
  using Entry = std::pair<Rank, double>;
  std::multiset<Rank> best;                                                    ///< the first few known
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> waiting; ///< not yet sure to come before
  double least = std::numeric_limits<double>::infinity();                      ///< bytes of those that come before
};

/// Layouts that may hold a step, each with a lower bound of its time.
class Bounds {
public:
  Bounds(const RequestModel &context, Refusals &refusals, int64_t &tried, PipelineCache &cache)
      : context(context), refusals(refusals), tried(tried), cache(cache) {}

  /// False: memory refuses `layout` by so much that no other split of its layers can hold.
  bool add(const ParallelLayout &layout) {
    const Expected<TrainScore> bound = scoreTrain(context, layout, cache, /*simulates=*/false);
    if (keep(bound))
      return true;
    const bool isMemory = bound.error().where == "memory", hasHost = context.request.topology.host.has_value();
    // A layout that holds all is never faster with a part of it on the host; one that does not may hold it so. Both
    // parts are moved only where one is not enough.
    const Expected<TrainScore> both = isMemory && hasHost ? offloaded(layout, Offload::Both) : bound;
    if (both) {
      const bool activations = keep(offloaded(layout, Offload::Activations));
      if (!keep(offloaded(layout, Offload::Optimizer)) && !activations)
        keep(both);
      return true;
    }
    refusals.add(bound.error(), layout, PlanPhase::Train);
    if (!isMemory)
      return true;
    // Even stages have at most twice the mean's layers, and some rank of any split has the mean's.
    ParallelLayout least = layout;
    least.offload = hasHost ? Offload::Both : Offload::None;
    const double capacity = double(context.request.topology.device.memory.value.value);
    return trainingBytes(context, least, cache).value_or(0) <= 2 * capacity;
  }

  /// All that were kept, the fastest bound first.
  std::vector<Scored> sorted() && {
    sortByRank(bounds);
    return std::move(bounds);
  }

private:
  bool keep(const Expected<TrainScore> &bound) {
    if (bound)
      bounds.push_back({rankOf(*bound, context.request.objective), *bound});
    return bool(bound);
  }
  Expected<TrainScore> offloaded(ParallelLayout layout, Offload offload) {
    layout.offload = offload;
    ++tried;
    return scoreTrain(context, layout, cache, /*simulates=*/false);
  }

  const RequestModel &context;
  Refusals &refusals;
  int64_t &tried;
  PipelineCache &cache;
  std::vector<Scored> bounds;
};

/// The fastest plans, and behind them those that need less memory.
std::vector<ClusterPlan> frontier(const RequestModel &context, const std::vector<Scored> &scores) {
  std::vector<ClusterPlan> plans;
  double least = std::numeric_limits<double>::infinity();
  size_t steps = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    const TrainScore &score = scores[i].score;
    // Steps of 3 % of memory, so that the frontier is not a list of equals.
    const bool smaller = score.maxBytes < 0.97 * least && steps < planned;
    steps += smaller;
    if (smaller)
      least = score.maxBytes;
    if (i < planned || smaller)
      if (Expected<ClusterPlan> plan = evaluateTrain(context, score.layout))
        plans.push_back(std::move(*plan));
  }
  return plans;
}

} // namespace

std::vector<ClusterPlan> planner::trainingPlans(const RequestModel &context, const std::vector<ParallelLayout> &space,
                                                Refusals &refusals, int64_t &tried) {
  PipelineCache cache;
  Bounds bounds(context, refusals, tried, cache);
  for (const ParallelLayout &layout : space) {
    if (!bounds.add(layout))
      continue;
    if (const std::optional<ParallelLayout> chosen = withChosenLayers(context, layout)) {
      ++tried;
      bounds.add(*chosen);
    }
  }
  std::vector<Scored> scores;
  Settled settled;
  for (const Scored &bound : std::move(bounds).sorted()) {
    if (settled(bound))
      continue;
    Expected<TrainScore> score = scoreTrain(context, bound.score.layout, cache, /*simulates=*/true);
    if (!score) {
      refusals.add(score.error(), bound.score.layout, PlanPhase::Train);
      continue;
    }
    scores.push_back({rankOf(*score, context.request.objective), *score});
    settled.add(scores.back());
  }
  sortByRank(scores);
  return frontier(context, scores);
}

//===- Ranking.h - What plans are ranked by -----------------------------------===//
#ifndef K2C_LIB_PLANNER_CLUSTER_RANKING_H
#define K2C_LIB_PLANNER_CLUSTER_RANKING_H

#include "RequestModel.h"
#include <algorithm>
#include <map>

namespace k2c::planner {

/// Generated, trained, or, of a pool that computes prompts alone, those of prompts.
double tokensPerSecond(const ClusterPlan &plan);
/// Seconds of a token, of the first where there is no other; training: of a step.
double latencyOf(const ClusterPlan &plan);
/// What layouts are compared by.
struct Merits {
  double tokens = 0;  ///< a second
  double latency = 0; ///< seconds of a token; training: of a step
  double devices = 0;
  double ep = 0;   ///< the larger one of two pools
  double cost = 0; ///< in proportion to the dollars of a token
};
/// What the objective compares; less is better.
double objectiveOf(const Merits &merits, Objective objective);
double objectiveOf(const ClusterPlan &plan, Objective objective);
/// The numbers that a search ranks a plan by, less is better in each: whether k2c compile accepts it, the objective,
/// then fewer devices and the simpler layout.
std::vector<double> searchRank(const ClusterPlan &plan, Objective objective);
/// By how much a plan loses to the best one, and the part of a step that costs it most; or why it does not compile,
/// where the best one does.
std::string whyItLoses(const ClusterPlan &plan, const ClusterPlan &best, Objective objective);

/// The best pairs of a pool that computes prompts and one that generates tokens, by the objective, at most `most`; and
/// how many were compared. Every layout of one replica is a candidate for either; how many replicas each pool has
/// follows from what a request costs it.
std::vector<ParallelLayout> bestPools(const RequestModel &context, size_t most, int64_t &compared);

/// Layouts that were refused, counted by reason.
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

/// Training: plans of the layouts that are first in the objective, and of those that are faster than all that need less
/// memory. `tried` adds the layouts that were looked at with offload as well.
std::vector<ClusterPlan> trainingPlans(const RequestModel &context, const std::vector<ParallelLayout> &space,
                                       Refusals &refusals, int64_t &tried);

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_CLUSTER_RANKING_H

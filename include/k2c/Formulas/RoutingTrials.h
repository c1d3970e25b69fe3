//===- RoutingTrials.h - Simulated routing with a fixed seed --------------===//
#ifndef K2C_FORMULAS_ROUTINGTRIALS_H
#define K2C_FORMULAS_ROUTINGTRIALS_H

#include "k2c/Planner/Experts.h"

namespace k2c {

/// Simulated routing with a fixed seed, `trials` independent batches; the same numbers on every machine. Experts lie on
/// GPUs (or in groups) in order, equally many each (the first ones take one more where they do not divide).
struct RoutingTrials {
  int64_t trials = 1000;
  uint64_t seed = 1;
};
/// Mean over batches of the most experts hit on one GPU.
double simulatedMaxExperts(const ExpertChoice &choice, int64_t gpus, const RoutingTrials &trials);
/// Mean over batches of mean / largest number of requests of a GPU: the beta_eb of a uniform router.
double simulatedBalancedness(const ExpertChoice &choice, int64_t gpus, const RoutingTrials &trials);
/// Mean number of groups a token reaches when only its `topGroups` best groups (by the sum of their two best scores,
/// scores independent and uniform) take part in the choice.
double simulatedGroupLimitedNodes(int64_t experts, int64_t topK, int64_t groups, int64_t topGroups,
                                  const RoutingTrials &trials);

} // namespace k2c

#endif // K2C_FORMULAS_ROUTINGTRIALS_H

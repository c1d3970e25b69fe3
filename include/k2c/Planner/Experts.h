//===- Experts.h - How many experts and nodes a batch of tokens reaches -------===//
//
// N tokens choose k of M experts each. With exchangeable experts (also under group-limited choice) an expert is missed
// by all tokens with probability (1 - k/M)^N, so the mean number hit is exact for any router of that kind; variance and
// distribution are those of N independent draws without replacement (paper 004, section 3.1.2). What bounds a step is
// the worst GPU: the paper's balls-into-bins bound exceeds what a GPU owns, so k2c takes the maximum of g binomials
// (within 0.3 % of simulation) and never more than the GPU's experts.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_EXPERTS_H
#define K2C_PLANNER_EXPERTS_H

#include "base/Error.h"
#include <cstdint>
#include <vector>

namespace k2c {

/// A router's choice: `topK` of `experts` for each of `tokens`. tokens may be fractional (half a batch of odd size).
struct ExpertChoice {
  int64_t experts = 1;
  int64_t topK = 1;
  double tokens = 0;
};

/// Experts that at least one token chose: mean and variance.
double expertHitMean(const ExpertChoice &choice);
double expertHitVariance(const ExpertChoice &choice);
/// Probability of exactly `distinct` experts, 0 to 1; tokens is a whole number. Costs tokens * experts * topK.
double expertHitProbability(const ExpertChoice &choice, int64_t distinct);
/// Mean over experts with their own inclusion probabilities (from load statistics; they sum to top-k).
double expertHitMeanNonuniform(const std::vector<double> &inclusion, double tokens);

/// Mean of the largest of `gpus` independent Binomial(experts, p): the worst GPU's share of the experts hit.
double binomialMaxMean(int64_t experts, double p, int64_t gpus);
/// Paper 004's bound n/g + sqrt(2 n ln g / g); it may exceed what a GPU owns.
double ballsInBinsMax(double active, int64_t gpus);

/// Mean number of nodes that one token's experts lie on, experts spread evenly over `nodes`:
/// N (1 - C(M - M/N, k) / C(M, k)).
double distinctNodesMean(int64_t experts, int64_t topK, int64_t nodes);

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

#endif // K2C_PLANNER_EXPERTS_H

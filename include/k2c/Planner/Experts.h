//===- Experts.h - How many experts and nodes a batch of tokens reaches ---===//
//
// N tokens choose k of M experts each. With exchangeable experts (also under group-limited choice) an expert is missed
// by all tokens with probability (1 - k/M)^N, so the mean number hit is exact for any router of that kind. What bounds
// a step is the worst GPU: k2c takes the maximum of g binomials (within 0.3 % of simulation) and never more than the
// GPU's experts.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_EXPERTS_H
#define K2C_PLANNER_EXPERTS_H

#include <cstdint>

namespace k2c {

/// A router's choice: `topK` of `experts` for each of `tokens`. tokens may be fractional (half a batch of odd size).
struct ExpertChoice {
  int64_t experts = 1;
  int64_t topK = 1;
  double tokens = 0;
};

/// Logarithm of the chance that one token misses an expert: -inf when it chooses all.
double expertMissedLog(const ExpertChoice &choice);
/// Mean number of experts that at least one token chose.
double expertHitMean(const ExpertChoice &choice);

/// Mean of the largest of `gpus` independent Binomial(experts, p): the worst GPU's share of the experts hit.
double binomialMaxMean(int64_t experts, double p, int64_t gpus);

/// Mean number of nodes that one token's experts lie on, experts spread evenly over `nodes`:
/// N (1 - C(M - M/N, k) / C(M, k)).
double distinctNodesMean(int64_t experts, int64_t topK, int64_t nodes);

/// Logarithm of the probability that `n` draws, each of probability `p` in (0, 1), succeed `x` times.
double binomialLog(double n, double x, double p);

} // namespace k2c

#endif // K2C_PLANNER_EXPERTS_H

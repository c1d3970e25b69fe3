//===- ExpertHits.h - The distribution of the experts that a batch reaches -===//
//
// What is asked about a router beside the means that the planner uses (k2c/Planner/Experts.h). Variance and
// distribution are those of independent draws without replacement (paper 004, section 3.1.2); the paper's
// balls-into-bins bound of the worst GPU exceeds what a GPU owns.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_FORMULAS_EXPERTHITS_H
#define K2C_FORMULAS_EXPERTHITS_H

#include "k2c/Planner/Experts.h"
#include <vector>

namespace k2c {

/// Variance of the number of experts that at least one token chose.
double expertHitVariance(const ExpertChoice &choice);
/// Probability of exactly `distinct` experts, 0 to 1; tokens is a whole number. Costs tokens * experts * topK.
double expertHitProbability(const ExpertChoice &choice, int64_t distinct);
/// Mean over experts with their own inclusion probabilities (from load statistics; they sum to top-k).
double expertHitMeanNonuniform(const std::vector<double> &inclusion, double tokens);
/// Paper 004's bound n/g + sqrt(2 n ln g / g); it may exceed what a GPU owns.
double ballsInBinsMax(double active, int64_t gpus);

} // namespace k2c

#endif // K2C_FORMULAS_EXPERTHITS_H

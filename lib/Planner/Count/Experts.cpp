//===- Experts.cpp - How many experts and nodes a batch of tokens reaches -===//

#include "k2c/Planner/Experts.h"

#include <algorithm>
#include <cmath>

using namespace k2c;

/// C(n - m, k) / C(n, k): the chance that k draws of n without replacement avoid m of them.
static double avoids(int64_t n, int64_t m, int64_t k) {
  double product = 1;
  for (int64_t i = 0; i < k; ++i)
    product *= std::max(0.0, static_cast<double>(n - m - i)) / static_cast<double>(n - i);
  return product;
}

double k2c::expertMissedLog(const ExpertChoice &choice) {
  return std::log1p(-static_cast<double>(choice.topK) / static_cast<double>(choice.experts));
}

double k2c::expertHitMean(const ExpertChoice &choice) {
  if (choice.tokens <= 0)
    return 0;
  return -static_cast<double>(choice.experts) * std::expm1(choice.tokens * expertMissedLog(choice));
}

double k2c::binomialLog(double n, double x, double p) {
  return std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) + x * std::log(p) + (n - x) * std::log1p(-p);
}

double k2c::binomialMaxMean(int64_t experts, double p, int64_t gpus) {
  if (p <= 0)
    return 0;
  if (p >= 1)
    return static_cast<double>(experts);
  // E[max] = sum over j of P(max > j) = sum of 1 - F(j)^gpus.
  double cumulative = 0, mean = 0;
  for (int64_t j = 0; j < experts; ++j) {
    cumulative += std::exp(binomialLog(static_cast<double>(experts), static_cast<double>(j), p));
    mean += 1 - std::pow(std::min(1.0, cumulative), static_cast<double>(gpus));
  }
  return mean;
}

double k2c::distinctNodesMean(int64_t experts, int64_t topK, int64_t nodes) {
  // Nodes that hold one expert more than others are kept apart, so that any count of experts is exact.
  int64_t few = experts / nodes, fuller = experts % nodes;
  return static_cast<double>(nodes - fuller) * (1 - avoids(experts, few, topK)) +
         static_cast<double>(fuller) * (1 - avoids(experts, few + 1, topK));
}

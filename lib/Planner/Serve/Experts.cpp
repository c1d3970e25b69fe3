//===- Experts.cpp - How many experts and nodes a batch of tokens reaches -----===//

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

/// Logarithm of the chance that one token misses an expert: -inf when it chooses all.
static double logMissed(const ExpertChoice &choice) {
  return std::log1p(-static_cast<double>(choice.topK) / static_cast<double>(choice.experts));
}

double k2c::expertHitMean(const ExpertChoice &choice) {
  if (choice.tokens <= 0)
    return 0;
  return -static_cast<double>(choice.experts) * std::expm1(choice.tokens * logMissed(choice));
}

double k2c::expertHitVariance(const ExpertChoice &choice) {
  const double m = static_cast<double>(choice.experts), k = static_cast<double>(choice.topK);
  if (choice.tokens <= 1 || choice.experts == 1)
    return 0; // one token hits k experts
  // m a (1 - a) + m (m - 1) (b - a^2) with a and b the chances that one and two experts are missed; b / a^2 of one
  // token is 1 - k / ((m - 1) (m - k)), which keeps the small difference of the two.
  const double one = std::exp(choice.tokens * logMissed(choice)), hit = -std::expm1(choice.tokens * logMissed(choice));
  const double excess = std::expm1(choice.tokens * std::log1p(-k / ((m - 1) * (m - k))));
  return std::max(0.0, m * one * hit + m * (m - 1) * one * one * excess);
}

double k2c::expertHitProbability(const ExpertChoice &choice, int64_t distinct) {
  const int64_t m = choice.experts, k = choice.topK, tokens = static_cast<int64_t>(choice.tokens);
  // One token moves from u experts hit to u + j with the hypergeometric chance C(m-u, j) C(u, k-j) / C(m, k).
  auto logChoose = [](int64_t n, int64_t r) {
    return std::lgamma(double(n) + 1) - std::lgamma(double(r) + 1) - std::lgamma(double(n - r) + 1);
  };
  std::vector<double> step(static_cast<size_t>((m + 1) * (k + 1)), 0);
  for (int64_t u = 0; u <= m; ++u) {
    const int64_t least = std::max<int64_t>(0, k - u), most = std::min(k, m - u);
    double sum = 0;
    for (int64_t j = least; j <= most; ++j)
      sum += step[size_t(u * (k + 1) + j)] = std::exp(logChoose(m - u, j) + logChoose(u, k - j) - logChoose(m, k));
    for (int64_t j = least; j <= most; ++j)
      step[size_t(u * (k + 1) + j)] /= sum; // exactly a distribution, whatever lgamma rounds
  }
  std::vector<double> now(size_t(m) + 1, 0), next;
  now[0] = 1;
  for (int64_t token = 0; token < tokens; ++token) {
    next.assign(size_t(m) + 1, 0);
    int64_t reached = std::min(m, token * k);
    for (int64_t u = 0; u <= reached; ++u)
      if (now[size_t(u)] > 0)
        for (int64_t j = std::max<int64_t>(0, k - u); j <= std::min(k, m - u); ++j)
          next[size_t(u + j)] += now[size_t(u)] * step[size_t(u * (k + 1) + j)];
    now.swap(next);
  }
  return distinct >= 0 && distinct <= m ? std::min(1.0, now[size_t(distinct)]) : 0;
}

double k2c::expertHitMeanNonuniform(const std::vector<double> &inclusion, double tokens) {
  double sum = 0;
  for (double p : inclusion)
    sum += 1 - std::pow(1 - p, tokens);
  return sum;
}

double k2c::binomialMaxMean(int64_t experts, double p, int64_t gpus) {
  if (p <= 0)
    return 0;
  if (p >= 1)
    return static_cast<double>(experts);
  // E[max] = sum over j of P(max > j) = sum of 1 - F(j)^gpus.
  double cumulative = 0, mean = 0;
  for (int64_t j = 0; j < experts; ++j) {
    double n = static_cast<double>(experts), x = static_cast<double>(j);
    cumulative += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) + x * std::log(p) +
                           (n - x) * std::log1p(-p));
    mean += 1 - std::pow(std::min(1.0, cumulative), static_cast<double>(gpus));
  }
  return mean;
}

double k2c::ballsInBinsMax(double active, int64_t gpus) {
  double g = static_cast<double>(gpus);
  return active / g + std::sqrt(2 * active * std::log(g) / g);
}

double k2c::distinctNodesMean(int64_t experts, int64_t topK, int64_t nodes) {
  // Nodes that hold one expert more than others are kept apart, so that any count of experts is exact.
  int64_t few = experts / nodes, fuller = experts % nodes;
  return static_cast<double>(nodes - fuller) * (1 - avoids(experts, few, topK)) +
         static_cast<double>(fuller) * (1 - avoids(experts, few + 1, topK));
}

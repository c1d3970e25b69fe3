//===- ExpertHits.cpp - The distribution of the experts that a batch reaches -===//

#include "k2c/Formulas/ExpertHits.h"

#include <algorithm>
#include <cmath>

using namespace k2c;

double k2c::expertHitVariance(const ExpertChoice &choice) {
  const double m = static_cast<double>(choice.experts), k = static_cast<double>(choice.topK);
  if (choice.tokens <= 1 || choice.experts == 1)
    return 0; // one token hits k experts
  // m a (1 - a) + m (m - 1) (b - a^2) with a and b the chances that one and two experts are missed; b / a^2 of one
  // token is 1 - k / ((m - 1) (m - k)), which keeps the small difference of the two.
  const double one = std::exp(choice.tokens * expertMissedLog(choice)),
               hit = -std::expm1(choice.tokens * expertMissedLog(choice));
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

double k2c::ballsInBinsMax(double active, int64_t gpus) {
  double g = static_cast<double>(gpus);
  return active / g + std::sqrt(2 * active * std::log(g) / g);
}

//===- CoActivation.cpp - Pairs of experts and the nodes that tokens visit ----===//

#include "k2c/Planner/Affinity.h"

#include <algorithm>

using namespace k2c;

CoActivation k2c::coActivationOf(int64_t experts, std::vector<std::vector<int32_t>> choices,
                                 std::vector<double> counts) {
  CoActivation co;
  co.experts = experts;
  co.together.assign(experts * experts, 0.0);
  double chosen = 0;
  for (size_t c = 0; c < choices.size(); ++c) {
    for (int32_t a : choices[c])
      for (int32_t b : choices[c])
        co.together[a * experts + b] += counts[c];
    co.tokens += counts[c];
    chosen += counts[c] * double(choices[c].size());
  }
  co.topK = co.tokens > 0 ? chosen / co.tokens : 1;
  co.choices = std::move(choices);
  co.counts = std::move(counts);
  return co;
}

std::vector<int32_t> k2c::placeInOrder(int64_t experts, const AffinityCapacity &capacity) {
  std::vector<int32_t> gpus(experts);
  for (int64_t expert = 0; expert < experts; ++expert)
    gpus[expert] = int32_t(expert * capacity.gpus / experts);
  return gpus;
}

NodesVisited k2c::nodesVisited(const CoActivation &co, const AffinityCapacity &capacity,
                               const std::vector<int32_t> &gpuOfExpert) {
  if (co.tokens <= 0)
    return {};
  auto node = [&](int64_t expert) { return capacity.nodeOf(gpuOfExpert[expert]); };
  if (!co.choices.empty()) {
    double sum = 0;
    std::vector<size_t> lastChoice(capacity.nodes, 0);
    for (size_t c = 0; c < co.choices.size(); ++c)
      for (int32_t expert : co.choices[c])
        if (lastChoice[node(expert)] != c + 1) {
          lastChoice[node(expert)] = c + 1;
          sum += co.counts[c];
        }
    return {sum / co.tokens, sum / co.tokens};
  }
  double inside = 0;
  for (int64_t a = 0; a < co.experts; ++a)
    for (int64_t b = a + 1; b < co.experts; ++b)
      if (node(a) == node(b))
        inside += co.together[a * co.experts + b];
  double k = co.topK, pairs = inside / co.tokens;
  double least = std::max({1.0, k - pairs, k * k / (k + 2 * pairs)});
  return {least, std::max(least, std::min(k - 2 * pairs / k, double(capacity.nodes)))};
}

std::vector<double> k2c::affinityLoads(const CoActivation &co, const AffinityCapacity &capacity,
                                       const std::vector<int32_t> &gpuOfExpert) {
  std::vector<double> loads(capacity.gpus, 0.0);
  for (int64_t expert = 0; expert < co.experts; ++expert)
    loads[gpuOfExpert[expert]] += co.load(expert);
  return loads;
}

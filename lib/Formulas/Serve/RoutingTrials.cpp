//===- RoutingTrials.cpp - Simulated routing with a fixed seed ------------===//
//
// The generator is SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014): a few
// instructions, no state beyond a counter, the same numbers on every machine.
//
//===----------------------------------------------------------------------===//

#include "k2c/Formulas/RoutingTrials.h"

#include <algorithm>
#include <numeric>
#include <vector>

using namespace k2c;

namespace {

class Generator {
public:
  explicit Generator(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// 0 to n - 1; the bias is below n / 2^64.
  int64_t below(int64_t n) {
    return static_cast<int64_t>((static_cast<unsigned __int128>(next()) * uint64_t(n)) >> 64);
  }

private:
  uint64_t state;
};

/// Draws k of n without replacement: the first k of a partial shuffle, which starts where the last one ended.
class Draw {
public:
  explicit Draw(int64_t n) : deck(size_t(n)) { std::iota(deck.begin(), deck.end(), 0); }
  template <class Each> void operator()(int64_t k, Generator &random, Each each) {
    for (int64_t i = 0; i < k; ++i) {
      std::swap(deck[size_t(i)], deck[size_t(i + random.below(int64_t(deck.size()) - i))]);
      each(deck[size_t(i)]);
    }
  }

private:
  std::vector<int64_t> deck;
};

/// Expert -> GPU, in order, the first GPUs one expert more where they do not divide.
std::vector<int64_t> placeInOrder(int64_t experts, int64_t gpus) {
  std::vector<int64_t> gpuOf;
  for (int64_t gpu = 0; gpu < gpus; ++gpu)
    gpuOf.insert(gpuOf.end(), size_t(experts / gpus + (gpu < experts % gpus)), gpu);
  return gpuOf;
}

} // namespace

double k2c::simulatedMaxExperts(const ExpertChoice &choice, int64_t gpus, const RoutingTrials &trials) {
  Generator random(trials.seed);
  Draw draw(choice.experts);
  std::vector<int64_t> gpuOf = placeInOrder(choice.experts, gpus), hits(static_cast<size_t>(gpus));
  std::vector<char> isHit;
  int64_t sum = 0;
  for (int64_t trial = 0; trial < trials.trials; ++trial) {
    isHit.assign(size_t(choice.experts), 0);
    std::fill(hits.begin(), hits.end(), 0);
    for (int64_t token = 0; token < static_cast<int64_t>(choice.tokens); ++token)
      draw(choice.topK, random, [&](int64_t expert) {
        hits[size_t(gpuOf[size_t(expert)])] += !isHit[size_t(expert)];
        isHit[size_t(expert)] = 1;
      });
    sum += *std::max_element(hits.begin(), hits.end());
  }
  return static_cast<double>(sum) / static_cast<double>(trials.trials);
}

double k2c::simulatedBalancedness(const ExpertChoice &choice, int64_t gpus, const RoutingTrials &trials) {
  Generator random(trials.seed);
  Draw draw(choice.experts);
  std::vector<int64_t> gpuOf = placeInOrder(choice.experts, gpus), load(static_cast<size_t>(gpus));
  double mean = choice.tokens * static_cast<double>(choice.topK) / static_cast<double>(gpus), sum = 0;
  for (int64_t trial = 0; trial < trials.trials; ++trial) {
    std::fill(load.begin(), load.end(), 0);
    for (int64_t token = 0; token < static_cast<int64_t>(choice.tokens); ++token)
      draw(choice.topK, random, [&](int64_t expert) { ++load[size_t(gpuOf[size_t(expert)])]; });
    sum += mean / static_cast<double>(*std::max_element(load.begin(), load.end()));
  }
  return sum / static_cast<double>(trials.trials);
}

double k2c::simulatedGroupLimitedNodes(int64_t experts, int64_t topK, int64_t groups, int64_t topGroups,
                                       const RoutingTrials &trials) {
  Generator random(trials.seed);
  const int64_t size = experts / groups;
  std::vector<uint64_t> scores(static_cast<size_t>(experts)), best;
  std::vector<std::pair<double, int64_t>> ranked(static_cast<size_t>(groups));
  std::vector<int64_t> chosen;
  int64_t reached = 0;
  for (int64_t trial = 0; trial < trials.trials; ++trial) {
    for (int64_t group = 0; group < groups; ++group) {
      double first = 0, second = 0;
      for (int64_t i = 0; i < size; ++i) {
        double score = static_cast<double>(scores[size_t(group * size + i)] = random.next() >> 11);
        second = std::max(second, std::min(first, score));
        first = std::max(first, score);
      }
      ranked[size_t(group)] = {-(first + second), group};
    }
    std::partial_sort(ranked.begin(), ranked.begin() + topGroups, ranked.end());
    chosen.clear();
    for (int64_t g = 0; g < topGroups; ++g)
      for (int64_t i = 0; i < size; ++i)
        chosen.push_back(ranked[size_t(g)].second * size + i);
    std::nth_element(chosen.begin(), chosen.begin() + (topK - 1), chosen.end(),
                     [&](int64_t a, int64_t b) { return scores[size_t(a)] > scores[size_t(b)]; });
    std::vector<char> isReached(size_t(groups), 0);
    for (int64_t i = 0; i < topK; ++i)
      isReached[size_t(chosen[size_t(i)] / size)] = 1;
    reached += std::count(isReached.begin(), isReached.end(), 1);
  }
  return static_cast<double>(reached) / static_cast<double>(trials.trials);
}

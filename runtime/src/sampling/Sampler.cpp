// Greedy choice, the filters, and the draw. Every loop over candidates runs in a fixed order, so every sum has one
// value.
//
//   weights[i] = exp((logit[i] - highest) / temperature)     f32; sums over them are f64
//   top-k, then top-p, then min-p                            each keeps a part of what the one before has kept
//   u from (seed, choice, position)                          the first candidate whose running sum exceeds u * mass
//
// Ties go to the lower id. Weights are not normalised, as only ratios count: the likeliest token weighs exactly 1,
// which min-p compares with. A NaN is no candidate; only a row of nothing else has no sample, which is -1. An infinite
// logit, or a temperature that is not above 0, is the greedy choice. For top-p only as much of the vocabulary is
// sorted as the prefix needs. exp is k2rt's polynomial with fma, in hardware or in the C library's exact one: the same
// bits everywhere.
#include "k2rt/Sampler.h"
#include "k2rt/polynomials.h"
#include <algorithm>
#include <cmath>

namespace k2c::runtime {

namespace {

/// weights[i] = exp((logits[i] - highest) / temperature), 0 for NaN. The
/// division is one rounding, so temperature 1 changes nothing.
inline __attribute__((always_inline)) void weighLoop(const float *logits, int64_t vocab, float highest,
                                                     float temperature, float *weights) {
  for (int64_t i = 0; i < vocab; ++i) {
    float x = (logits[i] - highest) / temperature;
    weights[i] = x == x ? k2rt_expf(x) : 0.0f;
  }
}

// The same loop twice: with the FMA instruction where the machine has it, else
// through libm's correctly rounded fma. The bits are the same.
__attribute__((target("fma"))) void weighFma(const float *logits, int64_t vocab, float highest, float temperature,
                                             float *weights) {
  weighLoop(logits, vocab, highest, temperature, weights);
}

void weigh(const float *logits, int64_t vocab, float highest, float temperature, float *weights) {
  if (__builtin_cpu_supports("fma"))
    weighFma(logits, vocab, highest, temperature, weights);
  else
    weighLoop(logits, vocab, highest, temperature, weights);
}

/// The candidates' order: falling logit, rising id. No NaN among them.
struct Likelier {
  const float *logits;
  bool operator()(int32_t a, int32_t b) const { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; }
};

/// Brings order[from, to) into its final place, given that order[0, from) is.
void sortRange(std::vector<int32_t> &order, int64_t from, int64_t to, int64_t count, Likelier likelier) {
  auto begin = order.begin();
  if (to < count)
    std::nth_element(begin + from, begin + to, begin + count, likelier);
  std::sort(begin + from, begin + to, likelier);
}

} // namespace

int32_t greedy(const float *logits, int64_t vocab) {
  int64_t best = 0;
  while (best < vocab && std::isnan(logits[best]))
    ++best;
  if (best == vocab)
    return -1;
  for (int64_t i = best + 1; i < vocab; ++i)
    if (logits[i] > logits[best])
      best = i;
  return int32_t(best);
}

Sampler::Sampler(int64_t vocab) : weights(size_t(vocab)), order(size_t(vocab)) {}

double Sampler::mass(int64_t count) const {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += double(weights[order[i]]);
  return sum;
}

int64_t Sampler::keepTopK(const float *logits, int64_t count, int32_t k) {
  if (k <= 0 || k >= count)
    return count;
  sortRange(order, 0, k, count, {logits});
  return k;
}

int64_t Sampler::keepTopP(const float *logits, int64_t count, float p) {
  if (!(p < 1.0f))
    return count;
  const double wanted = double(p) * mass(count);
  double reached = 0;
  int64_t kept = 0, sorted = 0;
  while (kept < count && (kept == 0 || reached < wanted)) {
    if (kept == sorted) {
      // The prefix is short as a rule: sort only as far as it reaches.
      const int64_t next = std::min(count, std::max<int64_t>(64, sorted * 4));
      sortRange(order, sorted, next, count, {logits});
      sorted = next;
    }
    reached += double(weights[order[kept++]]);
  }
  return kept;
}

int64_t Sampler::keepMinP(int64_t count, float p) {
  if (!(p > 0.0f))
    return count;
  // The most likely token weighs exactly 1 and stays whatever p is.
  const float least = std::min(p, 1.0f);
  auto end = std::remove_if(order.begin(), order.begin() + count, [&](int32_t id) { return weights[id] < least; });
  return end - order.begin();
}

int32_t Sampler::sample(const float *logits, const k2rt_ir_sampling &parameters) {
  const int64_t vocab = int64_t(weights.size());
  const int32_t top = greedy(logits, vocab);
  if (top < 0 || !(parameters.temperature > 0.0f) || std::isinf(logits[top]))
    return top;
  weigh(logits, vocab, logits[top], parameters.temperature, weights.data());
  int64_t count = 0;
  for (int64_t i = 0; i < vocab; ++i)
    if (!std::isnan(logits[i]))
      order[count++] = int32_t(i);
  count = keepTopK(logits, count, parameters.top_k);
  count = keepTopP(logits, count, parameters.top_p);
  count = keepMinP(count, parameters.min_p);

  const double u = uniform(parameters.seed, parameters.choice, parameters.position);
  const double target = u * mass(count);
  double sum = 0;
  int32_t last = top;
  for (int64_t i = 0; i < count; ++i) {
    const int32_t id = order[i];
    if (weights[id] == 0.0f)
      continue;
    sum += double(weights[id]);
    last = id;
    if (sum > target)
      break;
  }
  return last;
}

std::vector<LogProbability> logProbabilities(const float *logits, int64_t vocab, int32_t chosen, int64_t top) {
  std::vector<LogProbability> result;
  const int32_t best = greedy(logits, vocab);
  if (best < 0)
    return result;
  const float highest = logits[best];
  std::vector<float> weights(size_t(vocab), 0.0f);
  weigh(logits, vocab, highest, 1.0f, weights.data());
  double sum = 0;
  for (float weight : weights)
    sum += double(weight);
  const float logSum = k2rt_logf(float(sum));
  auto entry = [&](int32_t id) -> LogProbability {
    if (std::isinf(highest))
      return {id, logits[id] == highest ? 0.0f : -INFINITY};
    const float value = logits[id] - highest - logSum;
    return {id, value == value ? value : -INFINITY};
  };
  std::vector<int32_t> order;
  for (int64_t i = 0; i < vocab; ++i)
    if (!std::isnan(logits[i]))
      order.push_back(int32_t(i));
  const int64_t count = int64_t(order.size());
  const int64_t kept = std::clamp<int64_t>(top, 0, count);
  sortRange(order, 0, kept, count, {logits});
  if (chosen >= 0 && chosen < vocab)
    result.push_back(entry(chosen));
  for (int64_t i = 0; i < kept; ++i)
    result.push_back(entry(order[i]));
  return result;
}

} // namespace k2c::runtime

// Greedy choice, the filters, and the draw.
//
//   weights[i] = exp((logit[i] - highest) / temperature)     f32
//   mass(weight)                                             in whole 2^-40, rounded down: sums have no order
//   top-k, then top-p, then min-p                            each keeps a part of what the one before has kept
//   u from (seed, choice, position)                          the first candidate whose running sum exceeds u * sum
//
// Ties go to the lower id. Weights are not normalised, as only ratios count: the likeliest token weighs exactly 1,
// which min-p compares with. A NaN is no candidate; only a row of nothing else has no sample, which is -1. An infinite
// logit, or a temperature that is not above 0, is the greedy choice. exp is k2rt's polynomial with fma, in hardware or
// in the C library's exact one: the same bits everywhere.
//
// Few tokens are likely, so a filter sorts the part of the vocabulary that can pass it: tokens are counted by how far
// below the highest their logits are, and those behind the bin that fills it are left out.
#include "k2rt/Sampler.h"
#include "k2rt/polynomials.h"
#include <algorithm>
#include <array>
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

/// At most 2^40; the sum of a vocabulary of any size fits.
int64_t massOf(float weight) { return int64_t(double(weight) * 0x1p40); }

constexpr size_t binCount = 256;

/// Of larger logits no larger one: eighths below the highest, of which the last bin has all that are far below.
size_t binOf(float logit, float highest) {
  const float eighths = (highest - logit) * 8;
  return eighths < float(binCount - 1) ? size_t(eighths) : binCount - 1;
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

Sampler::Sampler(int64_t vocab) : weights(size_t(vocab)) { order.reserve(size_t(vocab)); }

int64_t Sampler::mass() const {
  int64_t sum = 0;
  for (const int32_t id : order)
    sum += massOf(weights[id]);
  return sum;
}

/// Of the candidates, in the order of their ids, those that may be among the likeliest with `wanted` of `amount`;
/// sorted.
template <class Amount> void Sampler::sortLikeliest(const float *logits, float highest, int64_t wanted, Amount amount) {
  std::array<int64_t, binCount> bins = {};
  for (const int32_t id : order)
    bins[binOf(logits[id], highest)] += amount(id);
  size_t last = 0;
  for (int64_t reached = bins[0]; reached < wanted && last + 1 < binCount;)
    reached += bins[++last];
  const auto isBeyond = [&](int32_t id) { return binOf(logits[id], highest) > last; };
  order.erase(std::remove_if(order.begin(), order.end(), isBeyond), order.end());
  std::sort(order.begin(), order.end(), Likelier{logits});
}

void Sampler::keepTopK(const float *logits, float highest, int32_t k) {
  if (k <= 0 || size_t(k) >= order.size())
    return;
  sortLikeliest(logits, highest, k, [](int32_t) { return 1; });
  order.resize(size_t(k));
}

void Sampler::keepTopP(const float *logits, float highest, float p) {
  if (!(p < 1.0f))
    return;
  const auto wanted = int64_t(std::ceil(double(p) * double(mass())));
  sortLikeliest(logits, highest, wanted, [&](int32_t id) { return massOf(weights[id]); });
  size_t kept = 0;
  for (int64_t reached = 0; kept < order.size() && (kept == 0 || reached < wanted); ++kept)
    reached += massOf(weights[order[kept]]);
  order.resize(kept);
}

void Sampler::keepMinP(float p) {
  if (!(p > 0.0f))
    return;
  // The most likely token weighs exactly 1 and stays whatever p is.
  const float least = std::min(p, 1.0f);
  const auto isUnlikely = [&](int32_t id) { return weights[id] < least; };
  order.erase(std::remove_if(order.begin(), order.end(), isUnlikely), order.end());
}

int32_t Sampler::sample(const float *logits, const k2rt_ir_sampling &parameters) {
  const int64_t vocab = int64_t(weights.size());
  const int32_t top = greedy(logits, vocab);
  if (top < 0 || !(parameters.temperature > 0.0f) || std::isinf(logits[top]))
    return top;
  weigh(logits, vocab, logits[top], parameters.temperature, weights.data());
  order.clear();
  for (int64_t i = 0; i < vocab; ++i)
    if (!std::isnan(logits[i]))
      order.push_back(int32_t(i));
  keepTopK(logits, logits[top], parameters.top_k);
  keepTopP(logits, logits[top], parameters.top_p);
  keepMinP(parameters.min_p);

  const double u = uniform(parameters.seed, parameters.choice, parameters.position);
  const auto target = int64_t(u * double(mass()));
  int64_t sum = 0;
  int32_t last = top;
  for (const int32_t id : order) {
    const int64_t own = massOf(weights[id]);
    if (own == 0)
      continue;
    sum += own;
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
  const int64_t kept = std::clamp<int64_t>(top, 0, int64_t(order.size()));
  std::partial_sort(order.begin(), order.begin() + kept, order.end(), Likelier{logits});
  if (chosen >= 0 && chosen < vocab)
    result.push_back(entry(chosen));
  for (int64_t i = 0; i < kept; ++i)
    result.push_back(entry(order[i]));
  return result;
}

} // namespace k2c::runtime

//===- Sampler.h - from logits to the next token --------------------------===//
//
// A sample is a function of (logits, parameters, seed, choice, position) and
// of nothing else: the random number is Philox4x32-10 keyed by the last three,
// exp is k2c's own (polynomials.h), sums are of integers (numerics N7).
// So a sequence draws the same tokens alone, in a batch, and on any machine.
//
//   logits / temperature -> top-k -> top-p of what is left -> min-p -> draw
//
// runtime/README.md, "Sampling", states each step. Candidates have the order of
// ids; top-k and top-p, where they are on, that of falling logits, equal ones by
// rising id.
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_SAMPLER_H
#define K2RT_SAMPLER_H

#include "k2rt/program.h"
#include <cstdint>
#include <vector>

namespace k2c::runtime {

/// The id of the largest logit, the lowest id on ties. NaN is never chosen; -1
/// when all are NaN.
int32_t greedy(const float *logits, int64_t vocab);

/// Draws tokens. Holds working memory only, so each worker has its own; after
/// the constructor nothing is allocated.
class Sampler {
public:
  explicit Sampler(int64_t vocab);

  /// The token drawn from logits[0, vocab); -1 when all logits are NaN.
  /// temperature <= 0 is greedy(), and so is an infinite largest logit. top_p
  /// <= 0 keeps one token; top_k <= 0, top_p >= 1 and min_p <= 0 mean off.
  int32_t sample(const float *logits, const k2rt_ir_sampling &parameters);

private:
  // Each leaves a part of the candidates.
  void keepTopK(const float *logits, float highest, int32_t k);
  void keepTopP(const float *logits, float highest, float p);
  void keepMinP(float p);
  template <class Amount> void sortLikeliest(const float *logits, float highest, int64_t wanted, Amount amount);
  int64_t mass() const;

  std::vector<float> weights; ///< by id
  std::vector<int32_t> order; ///< the candidates
};

/// The logarithm of a token's probability under softmax(logits), temperature 1.
struct LogProbability {
  int32_t id;
  float value;
};

/// The `top` most likely tokens by falling probability (ties by rising id).
/// `chosen` >= 0: its own entry comes first, before the `top`. NaN logits count
/// as -inf.
std::vector<LogProbability> logProbabilities(const float *logits, int64_t vocab, int32_t chosen, int64_t top);

/// Four random words of Philox4x32-10 (Salmon et al., SC 2011) for a counter
/// and a key.
struct PhiloxBlock {
  uint32_t word[4];
};
PhiloxBlock philox(uint64_t counterLow, uint64_t counterHigh, uint64_t key);

/// Uniform in [0, 1), 53 bits, of (seed, choice, position).
double uniform(uint64_t seed, int64_t choice, int64_t position);

} // namespace k2c::runtime

#endif // K2RT_SAMPLER_H

//===- AttentionTest.h - A GQA problem and an MLA problem with their caches ---===//
//
// Caches are filled by (sequence, token), so the same token has the same keys wherever its page lies and whatever else
// is in the step.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_UNIT_KERNELS_ATTENTIONTEST_H
#define K2C_UNIT_KERNELS_ATTENTIONTEST_H

#include "TestStep.h"

namespace k2c::test {

/// Element `i` of token `token` of the sequence with identity `sequence`, of array `kind`.
inline float tokenValue(int64_t kind, int64_t sequence, int64_t token, int64_t i) {
  return Random(uint64_t(kind * 1000003 + sequence * 10007 + token) * 4099 + uint64_t(i))();
}

/// Fills a plane of `width` elements a token with tokenValue(kind, ...) for every token up to `tokens`.
inline Array plane(const TestStep &step, const std::vector<int64_t> &sequences, int64_t tokens, int64_t kind,
                   int64_t width, DType type) {
  Array data(type, TestStep::pageCount * 64 * width);
  for (size_t s = 0; s < sequences.size(); ++s)
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t i = 0; i < width; ++i)
        data.set(step.slot(int64_t(s), t) * width + i, tokenValue(kind, sequences[s], t, i));
  return data;
}

/// Rows of an activation: tokenValue(kind, ...) of each row's (sequence, token).
inline Array activation(const TestStep &step, const std::vector<int64_t> &sequences, int64_t kind, int64_t width,
                        DType type = DType::F32) {
  Array data(type, step.rows() * width);
  for (int64_t r = 0; r < step.rows(); ++r)
    for (int64_t i = 0; i < width; ++i)
      data.set(r * width + i, tokenValue(kind, sequences[step.rowSeq[r]], step.token(r), i));
  return data;
}

/// One grouped-query problem: 4 query heads, 2 kv heads of 24 and 20 elements.
struct GqaProblem {
  static constexpr int64_t heads = 4, kvHeads = 2, keyDim = 24, valueDim = 20;
  GqaAttentionDesc desc;
  float capture[2 * heads] = {};

  explicit GqaProblem(DType cache = DType::F32, DType act = DType::F32) {
    desc.shape.heads = heads;
    desc.shape.scale = 1.5;
    desc.shape.cache = cache;
    desc.kvHeads = kvHeads;
    desc.keyDim = keyDim;
    desc.valueDim = valueDim;
    desc.q = rowsOf(heads * keyDim, act);
    desc.o = rowsOf(heads * valueDim, act);
  }

  /// o of a step over sequences with the given identities.
  Array run(const std::vector<Sequence> &sequences, const std::vector<int64_t> &identities, int64_t tokens) {
    TestStep step(sequences, desc.shape.group);
    Array k = plane(step, identities, tokens, 1, kvHeads * keyDim, desc.shape.cache);
    Array v = plane(step, identities, tokens, 2, kvHeads * valueDim, desc.shape.cache);
    Array q = activation(step, identities, 3, heads * keyDim, desc.q.type);
    Array o(desc.o.type, step.rows() * heads * valueDim);
    step.step.capture_max_logit = capture;
    Status status =
        desc.shape.maxLogit
            ? evaluateWith(desc, step.step, {q.data(), k.data(), v.data(), &step.step, ordinal(1), o.data()})
            : evaluateWith(desc, step.step, {q.data(), k.data(), v.data(), &step.step, o.data()});
    EXPECT_TRUE(status);
    return o;
  }

  /// The same in double precision for one row.
  static std::vector<double> reference(int64_t identity, int64_t position, int64_t head, double scale, DType cache,
                                       double *largest = nullptr) {
    int64_t kvHead = head / (heads / kvHeads);
    auto stored = [&](int64_t kind, int64_t t, int64_t i) {
      float x = tokenValue(kind, identity, t, i);
      return double(cache == DType::BF16 ? ofBf16(bf16Of(x)) : x);
    };
    std::vector<double> scores, out(valueDim);
    double max = -1e30, sum = 0;
    for (int64_t t = 0; t <= position; ++t) {
      double s = 0;
      for (int64_t i = 0; i < keyDim; ++i)
        s += double(tokenValue(3, identity, position, head * keyDim + i)) * stored(1, t, kvHead * keyDim + i);
      scores.push_back(s * scale);
      max = std::max(max, scores.back());
    }
    for (int64_t t = 0; t <= position; ++t) {
      double p = std::exp(scores[t] - max);
      sum += p;
      for (int64_t i = 0; i < valueDim; ++i)
        out[i] += p * stored(2, t, kvHead * valueDim + i);
    }
    for (double &o : out)
      o /= sum;
    if (largest)
      *largest = std::max(*largest, max);
    return out;
  }
};

} // namespace k2c::test

#endif // K2C_UNIT_KERNELS_ATTENTIONTEST_H

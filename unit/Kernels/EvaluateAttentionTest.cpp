//===- EvaluateAttentionTest.cpp - N3: values, order, company -----------------===//

#include "AttentionTest.h"
#include "k2rt/polynomials.h"

using namespace k2c;
using namespace k2c::test;

namespace {

constexpr int64_t rowWidth = GqaProblem::heads * GqaProblem::valueDim;

void expectRowsEqual(const Array &a, int64_t rowA, const Array &b, int64_t rowB) {
  for (int64_t i = 0; i < rowWidth; ++i)
    ASSERT_EQ(a[rowA * rowWidth + i], b[rowB * rowWidth + i]) << "row " << rowA << " element " << i;
}

TEST(Attention, AgreesWithDoublePrecision) {
  for (DType cache : {DType::F32, DType::BF16}) {
    GqaProblem problem(cache);
    Array o = problem.run({Sequence{0, 3}, Sequence{130, 2}, Sequence{63, 1}}, {10, 20, 30}, 140);
    TestStep step({Sequence{0, 3}, Sequence{130, 2}, Sequence{63, 1}});
    const int64_t identities[] = {10, 20, 30};
    for (int64_t r = 0; r < step.rows(); ++r)
      for (int64_t h = 0; h < GqaProblem::heads; ++h) {
        auto expected = GqaProblem::reference(identities[step.rowSeq[r]], step.positions[r], h, 1.5, cache);
        for (int64_t i = 0; i < GqaProblem::valueDim; ++i)
          EXPECT_NEAR(o[r * rowWidth + h * GqaProblem::valueDim + i], expected[i], 1e-5);
      }
  }
}

TEST(Attention, BitsDoNotDependOnChunksBatchOrPages) {
  GqaProblem problem;
  Array whole = problem.run({Sequence{0, 150}}, {5}, 150);
  Array tail = problem.run({Sequence{100, 50}}, {5}, 150);
  Array batch = problem.run({Sequence{7, 2}, Sequence{149, 1, 0, {8, 88, 40}}, Sequence{0, 1}}, {6, 5, 7}, 150);
  for (int64_t r = 0; r < 50; ++r)
    expectRowsEqual(tail, r, whole, 100 + r);
  expectRowsEqual(batch, 2, whole, 149);
}

TEST(Attention, ReadsTheLengthsAndPagesOfItsCacheGroup) {
  GqaProblem first, second;
  second.desc.shape.group = 1;
  const std::vector<Sequence> sequences = {Sequence{0, 3}, Sequence{130, 2}};
  EXPECT_TRUE(first.run(sequences, {10, 20}, 132) == second.run(sequences, {10, 20}, 132));
}

TEST(Attention, LaterKeysTakeNoPart) {
  GqaProblem problem;
  Array few = problem.run({Sequence{70, 1}}, {5}, 71), many = problem.run({Sequence{70, 1}}, {5}, 150);
  EXPECT_TRUE(few == many);
}

TEST(Attention, Bf16IsCloseToF32) {
  GqaProblem f32(DType::BF16, DType::F32), bf16(DType::BF16, DType::BF16);
  Array a = f32.run({Sequence{90, 4}}, {5}, 94), b = bf16.run({Sequence{90, 4}}, {5}, 94);
  for (int64_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], 0.03);
}

TEST(Attention, CapturesTheLargestLogitOfEachHead) {
  GqaProblem problem;
  problem.desc.shape.maxLogit = true;
  problem.capture[GqaProblem::heads + 1] = 1000; // larger than any score: stays
  problem.run({Sequence{0, 3}, Sequence{40, 1}}, {10, 20}, 41);
  for (int64_t h = 0; h < GqaProblem::heads; ++h) {
    double largest = -1e30;
    for (int64_t p : {0, 1, 2})
      GqaProblem::reference(10, p, h, 1.5, DType::F32, &largest);
    GqaProblem::reference(20, 40, h, 1.5, DType::F32, &largest);
    EXPECT_NEAR(problem.capture[GqaProblem::heads + h], h == 1 ? 1000 : std::max(largest, 0.0), 1e-5);
    EXPECT_EQ(problem.capture[h], 0); // another layer
  }
}

/// One query of head 0 with one-element keys and values, softmax restarted every `restart` keys.
float onlineSoftmax(const std::vector<float> &scores, const std::vector<float> &values, int64_t restart) {
  float M = 0, L = 0, O = 0;
  for (size_t start = 0; start < scores.size(); start += restart) {
    float m = -INFINITY, l = 0, o = 0;
    size_t end = std::min(scores.size(), start + restart);
    for (size_t b = start; b < end; b += 64) {
      float next = m;
      for (size_t t = b; t < std::min(b + 64, end); ++t)
        next = std::max(next, scores[t]);
      float alpha = k2rt_expf(m - next);
      m = next, l *= alpha, o *= alpha;
      for (size_t t = b; t < std::min(b + 64, end); ++t) {
        float p = k2rt_expf(scores[t] - m);
        l += p;
        o = std::fma(p, values[t], o);
      }
    }
    if (start == 0) {
      M = m, L = l, O = o;
      continue;
    }
    float next = std::max(M, m), a = k2rt_expf(M - next), b = k2rt_expf(m - next);
    M = next, L = std::fma(l, b, L * a), O = std::fma(o, b, O * a);
  }
  return O * (1 / L);
}

TEST(AttentionOrder, RestartsAtC) {
  constexpr int64_t keys = 1700; // two partials
  GqaAttentionDesc d;
  d.shape.heads = d.kvHeads = d.keyDim = d.valueDim = 1;
  d.q = d.o = rowsOf(1);
  TestStep step({Sequence{keys - 1, 1}});
  int visible = 0;
  for (int64_t identity = 0; identity < 32; ++identity) {
    Array k = plane(step, {identity}, keys, 1, 1, DType::F32), v = plane(step, {identity}, keys, 2, 1, DType::F32);
    float query = 3.25f * float(1 + identity % 8);
    Array q(DType::F32, std::vector<float>{query}), o(DType::F32, 1);
    ASSERT_TRUE(evaluateWith(d, step.step, {q.data(), k.data(), v.data(), &step.step, o.data()}));
    std::vector<float> scores, values;
    for (int64_t t = 0; t < keys; ++t) {
      scores.push_back(query * k[step.slot(0, t)]);
      values.push_back(v[step.slot(0, t)]);
    }
    EXPECT_EQ(o[0], onlineSoftmax(scores, values, 1024));
    visible += o[0] != onlineSoftmax(scores, values, 4096);
  }
  EXPECT_GT(visible, 0); // without the restart: other bits
}

/// Weights in bf16 and pairs of keys, the odd one first; a last key alone has a zero beside it.
TEST(AttentionOrder, WeighsPairsOfBf16) {
  constexpr int64_t keys = 37; // one block
  GqaAttentionDesc d;
  d.shape.heads = d.kvHeads = d.keyDim = d.valueDim = 1;
  d.shape.cache = DType::BF16;
  d.q = rowsOf(1, DType::BF16);
  d.o = rowsOf(1);
  TestStep step({Sequence{keys - 1, 1}});
  int rounded = 0, inPairs = 0;
  for (int64_t identity = 0; identity < 32; ++identity) {
    Array k = plane(step, {identity}, keys, 1, 1, DType::BF16), v = plane(step, {identity}, keys, 2, 1, DType::BF16);
    Array q(DType::BF16, std::vector<float>{3.25f}), o(DType::F32, 1);
    ASSERT_TRUE(evaluateWith(d, step.step, {q.data(), k.data(), v.data(), &step.step, o.data()}));
    std::vector<float> weights, values;
    float max = -INFINITY, L = 0, O = 0, ascending = 0, exact = 0;
    for (int64_t t = 0; t < keys; ++t)
      max = std::max(max, 3.25f * k[step.slot(0, t)]);
    for (int64_t t = 0; t < keys; ++t) {
      float p = k2rt_expf(3.25f * k[step.slot(0, t)] - max), value = v[step.slot(0, t)];
      weights.push_back(ofBf16(bf16Of(p)));
      values.push_back(value);
      ascending = std::fma(weights.back(), value, ascending);
      exact = std::fma(p, value, exact);
    }
    for (int64_t t = 0; t < keys; t += 2) {
      bool both = t + 1 < keys;
      L = (L + (both ? weights[t + 1] : 0)) + weights[t];
      O = std::fma(weights[t], values[t], both ? std::fma(weights[t + 1], values[t + 1], O) : O);
    }
    EXPECT_EQ(o[0], O * (1 / L));
    rounded += O != exact;
    inPairs += O != ascending;
  }
  EXPECT_GT(rounded, 0); // other weights, other orders: other bits
  EXPECT_GT(inPairs, 0);
}

} // namespace

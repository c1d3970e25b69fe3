//===- EvaluateLinearTest.cpp - Contractions, their order and their epilogue --===//

#include "Lists.h"
#include "TestStep.h"
#include "k2rt/polynomials.h"

using namespace k2c;
using namespace k2c::test;

namespace {

struct Case {
  int64_t rows, n, k;
  DType act, weight;
};

LinearDesc linearOf(const Case &c) {
  LinearDesc d;
  d.x = rowsOf(c.k, c.act);
  d.y = rowsOf(c.n, c.act);
  d.w = {c.weight, 1, c.n, c.k, 1};
  d.order = {c.k, leafCount(c.k)};
  return d;
}

class LinearShapes : public ::testing::TestWithParam<Case> {};

TEST_P(LinearShapes, AgreesWithDoublePrecision) {
  Case c = GetParam();
  LinearDesc d = linearOf(c);
  Random random(c.n * 31 + c.k);
  Array x(c.act, random.vector(c.rows * c.k)), y(c.act, c.rows * c.n);
  Array w = pack(d.w, [&](int64_t, int64_t, int64_t) { return random(); });
  TestStep step(TestStep::plain(c.rows));
  ASSERT_TRUE(evaluateWith(d, step.step, {x.data(), w.data(), y.data()}));
  for (int64_t r = 0; r < c.rows; ++r)
    for (int64_t n = 0; n < c.n; ++n) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < c.k; ++k) {
        double product = double(x[r * c.k + k]) * double(w[elementOf(d.w, 0, n, k)]);
        sum += product;
        size += std::abs(product);
      }
      // A leaf of at most 2304 roundings and a tree of three, of 2^-24 each; the mean is far below this bound.
      double bound = size * double(leafLength(c.k, d.order.leaves) + 3) * 0x1p-24;
      if (c.act == DType::BF16)
        bound += std::abs(sum) * 0x1p-8;
      EXPECT_NEAR(y[r * c.n + n], sum, bound) << "row " << r << " column " << n;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Odd, LinearShapes,
    ::testing::Values(Case{1, 1, 1, DType::F32, DType::F32}, Case{3, 33, 7, DType::F32, DType::BF16},
                      Case{2, 65, 129, DType::F32, DType::BF16}, Case{5, 31, 1100, DType::F32, DType::F32},
                      Case{1, 3, 4097, DType::F32, DType::BF16}, Case{2, 34, 257, DType::BF16, DType::BF16},
                      Case{2, 5, 2049, DType::BF16, DType::F32}, Case{1, 2, 18432, DType::F32, DType::BF16}));

/// One output of a linear with n = 1 over x and w of type f32.
float outputOf(const std::vector<float> &x, const std::vector<float> &w, DType type = DType::F32) {
  int64_t k = int64_t(x.size());
  LinearDesc d = linearOf({1, 1, k, type, type});
  d.y.type = DType::F32;
  Array in(type, x), packed = pack(d.w, [&](int64_t, int64_t, int64_t i) { return w[i]; }), y(DType::F32, 1);
  TestStep step(TestStep::plain(1));
  EXPECT_TRUE(evaluateWith(d, step.step, {in.data(), packed.data(), y.data()}));
  return y[0];
}

TEST(LinearOrder, LeavesAreChainsMergedAsATree) {
  constexpr int64_t k = 4097, length = 640;
  Random random(7);
  std::vector<float> x = random.vector(k), w = random.vector(k);
  ASSERT_EQ(leafLength(k, leafCount(k)), length);
  float leaf[8] = {}, one = 0;
  for (int64_t i = 0; i < k; ++i) {
    leaf[i / length] = std::fma(x[i], w[i], leaf[i / length]);
    one = std::fma(x[i], w[i], one);
  }
  float expected = ((leaf[0] + leaf[1]) + (leaf[2] + leaf[3])) + ((leaf[4] + leaf[5]) + (leaf[6] + leaf[7]));
  EXPECT_EQ(outputOf(x, w), expected);
  EXPECT_NE(one, expected); // the order is visible: a single chain has other bits
}

TEST(LinearOrder, Bf16TakesTheOddElementFirst) {
  std::vector<float> one{1, 1, 1, 1}, w{1, 0x1p24f, 1, -0x1p24f};
  EXPECT_EQ(outputOf(one, w, DType::F32), 0.0f);     // 1 + 2^24 = 2^24 (tie to even), + 1 = 2^24, - 2^24 = 0
  EXPECT_EQ(outputOf(one, w, DType::BF16), 1.0f);    // 2^24 + 1 = 2^24, - 2^24 = 0, + 1 = 1
  EXPECT_EQ(outputOf({3}, {5}, DType::BF16), 15.0f); // the element past k is 0
}

TEST(LinearOrder, SubnormalsAreZeros) {
  EXPECT_EQ(outputOf({0x1p-127f, 1}, {0x1p10f, 0}), 0.0f);  // a subnormal operand (DAZ)
  EXPECT_EQ(outputOf({0x1p-100f, 1}, {0x1p-40f, 0}), 0.0f); // a subnormal result (FTZ)
  EXPECT_EQ(outputOf({0x1p-100f, 1}, {0x1p-20f, 0}), 0x1p-120f);
}

TEST(LinearEpilogue, TakesSumsBiasWeightAndResidual) {
  constexpr int64_t k = 48, inner = 20, rows = 2;
  LinearDesc d = linearOf({rows, 2 * inner, k, DType::F32, DType::F32});
  d.y = rowsOf(inner, DType::BF16);
  std::vector<int32_t> permutation{0, rows, 1, 0, 1, 0}; // one expert; slot 0 is token 1
  d.w.parts = 2;
  d.x.space = d.y.space = RowSpace::Slot;
  d.epilogue = epilogueOf(DType::BF16, {LinearDesc::UpSum, LinearDesc::Bias, LinearDesc::UpBias, LinearDesc::SlotWeight,
                                        LinearDesc::Residual});
  d.biasType = DType::F32;
  d.residual = rowsOf(inner, DType::BF16, RowSpace::Slot);
  d.grouped = true;
  Random random(3);
  Array x(DType::F32, random.vector(rows * k)), bias(DType::F32, random.vector(2 * inner));
  Array weights(DType::F32, random.vector(rows)), residual(DType::BF16, random.vector(rows * inner));
  Array w = pack(d.w, [&](int64_t, int64_t, int64_t) { return random(); }), y(DType::BF16, rows * inner);
  ExpertTable experts(d.w, w.data());
  TestStep step(TestStep::plain(rows));
  ASSERT_TRUE(evaluateWith(
      d, step.step,
      {x.data(), experts.data(), bias.data(), weights.data(), residual.data(), permutation.data(), y.data()}));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t n = 0; n < inner; ++n) {
      float gate = 0, up = 0;
      for (int64_t i = 0; i < k; ++i) {
        gate = std::fma(x[r * k + i], w[elementOf(d.w, 0, n, i)], gate);
        up = std::fma(x[r * k + i], w[elementOf(d.w, 0, inner + n, i)], up);
      }
      gate = ofBf16(bf16Of((gate + bias[n]) * weights[1 - r]));
      up = ofBf16(bf16Of((up + bias[inner + n]) * weights[1 - r]));
      float value = k2rt_siluf(gate) * up;
      EXPECT_EQ(y[r * inner + n], ofBf16(bf16Of(ofBf16(bf16Of(value)) + residual[r * inner + n])));
    }
}

TEST(LinearEpilogue, FusionKeepsTheRoundings) {
  constexpr int64_t k = 70, inner = 40, rows = 3;
  for (DType type : {DType::F32, DType::BF16}) {
    LinearDesc fused = linearOf({rows, 2 * inner, k, type, DType::BF16});
    fused.w.parts = 2;
    fused.y = fused.residual = rowsOf(inner, type);
    fused.epilogue = epilogueOf(type, {LinearDesc::UpSum, LinearDesc::Residual});
    LinearDesc plain = linearOf({rows, 2 * inner, k, type, DType::BF16});
    RowwiseDesc act = gatedSilu(rowsOf(2 * inner, type), rowsOf(inner, type));
    RowwiseDesc add = addition(rowsOf(inner, type), rowsOf(inner, type), rowsOf(inner, type));
    std::vector<float> weight = Random(9).vector(2 * inner * k);
    auto at = [&](int64_t, int64_t n, int64_t i) { return weight[n * k + i]; };
    Array x(type, Random(4).vector(rows * k)), residual(type, Random(5).vector(rows * inner));
    Array interleaved = pack(fused.w, at), panels = pack(plain.w, at);
    Array h(type, rows * 2 * inner), apart(type, rows * inner), together(type, rows * inner);
    TestStep step(TestStep::plain(rows));
    ASSERT_TRUE(evaluateWith(fused, step.step, {x.data(), interleaved.data(), residual.data(), together.data()}));
    ASSERT_TRUE(evaluateWith(plain, step.step, {x.data(), panels.data(), h.data()}));
    ASSERT_TRUE(evaluateWith(act, step.step, {h.data(), h.at(inner), apart.data()}));
    ASSERT_TRUE(evaluateWith(add, step.step, {apart.data(), residual.data(), apart.data()}));
    EXPECT_TRUE(apart == together);
  }
}

TEST(LinearPrologue, NormalisesAsTheNormKernelDoes) {
  constexpr int64_t k = 131, n = 5, rows = 3;
  LinearDesc plain = linearOf({rows, n, k, DType::BF16, DType::BF16}), fused = plain;
  fused.normEps = 1e-5;
  RmsNormDesc norm{rowsOf(k, DType::BF16), rowsOf(k, DType::BF16), 1e-5, DType::BF16};
  Random random(5);
  Array x(DType::BF16, random.vector(rows * k)), scale(DType::BF16, random.vector(k)), h(DType::BF16, rows * k);
  Array w = pack(plain.w, [&](int64_t, int64_t, int64_t) { return random(); });
  Array apart(DType::BF16, rows * n), together(DType::BF16, rows * n);
  TestStep step(TestStep::plain(rows));
  ASSERT_TRUE(evaluateWith(norm, step.step, {x.data(), scale.data(), h.data()}));
  ASSERT_TRUE(evaluateWith(plain, step.step, {h.data(), w.data(), apart.data()}));
  ASSERT_TRUE(evaluateWith(fused, step.step, {x.data(), scale.data(), w.data(), together.data()}));
  EXPECT_TRUE(apart == together);
}

TEST(HeadLinear, IsOneLinearAHeadOnTheRowsOfItsForm) {
  constexpr int64_t heads = 3, k = 10, n = 37, rows = 4, headStride = 12, rowStride = 40;
  HeadLinearDesc d;
  d.x = {RowSpace::Token, heads * headStride, rowStride, DType::F32};
  d.y = rowsOf(heads * n);
  d.heads = heads;
  d.xHeadStride = headStride;
  d.w = {DType::BF16, heads, n, k, 1};
  d.order = {k, 1};
  d.rows = FormFilter::Absorbed;
  Random random(11);
  Array x(DType::F32, random.vector(rows * rowStride)), y(DType::F32, std::vector<float>(rows * heads * n, 42.0f));
  Array w = pack(d.w, [&](int64_t, int64_t, int64_t) { return random(); });
  TestStep step({Sequence{0, 2, K2RT_FORM_EXPANDED}, Sequence{0, 2, K2RT_FORM_ABSORBED}});
  ASSERT_TRUE(evaluateWith(d, step.step, {x.data(), w.data(), y.data()}));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t c = 0; c < n; ++c) {
        float sum = 0;
        for (int64_t i = 0; i < k; ++i)
          sum = std::fma(x[r * rowStride + h * headStride + i], w[elementOf(d.w, h, c, i)], sum);
        EXPECT_EQ(y[(r * heads + h) * n + c], r < 2 ? 42.0f : sum);
      }
}

} // namespace

//===- EvaluateRowsTest.cpp - Kernels that work row by row --------------------===//

#include "Lists.h"
#include "TestStep.h"
#include "k2rt/polynomials.h"

using namespace k2c;
using namespace k2c::test;

namespace {

TEST(Embed, ReadsIdsAndEarlierSamples) {
  EmbedDesc d{5, 3, DType::BF16, rowsOf(3)};
  Random random(1);
  Array table(DType::BF16, random.vector(15)), y(DType::F32, 9);
  TestStep step({Sequence{0, 1}, Sequence{0, 2}});
  std::vector<int32_t> ids{4, -2, 0}, last{-1, 3};
  step.step.token_ids = ids.data();
  step.step.earlier_samples = last.data();
  step.step.earlier_rows = int64_t(last.size());
  ASSERT_TRUE(evaluateWith(d, step.step, {table.data(), &step.step, y.data()}));
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(y[i], table[4 * 3 + i]);
    EXPECT_EQ(y[3 + i], table[3 * 3 + i]); // row 1: sample 1 of the step before
  }
}

TEST(Embed, RefusesIdsOutsideTheVocabulary) {
  EmbedDesc d{5, 3, DType::F32, rowsOf(3)};
  Array table(DType::F32, 15), y(DType::F32, 3);
  TestStep step(TestStep::plain(1));
  std::vector<int32_t> ids{5}, last{7};
  step.step.token_ids = ids.data();
  step.step.earlier_samples = last.data();
  step.step.earlier_rows = int64_t(last.size());
  Status status = evaluateWith(d, step.step, {table.data(), &step.step, y.data()});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "kernel: token id 5 in a vocabulary of 5");
  ids[0] = -1;
  EXPECT_FALSE(evaluateWith(d, step.step, {table.data(), &step.step, y.data()}));
  ids[0] = -2;
  status = evaluateWith(d, step.step, {table.data(), &step.step, y.data()});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "kernel: token row 0 names sample 1 of the step before, which has 1");
}

TEST(TokenIds, AreThoseThatEmbedLooksUp) {
  TestStep step({Sequence{0, 1}, Sequence{0, 2}});
  std::vector<int32_t> ids{4, -2, 0}, last{-1, 3}, y(3, -1);
  step.step.token_ids = ids.data();
  step.step.earlier_samples = last.data();
  step.step.earlier_rows = int64_t(last.size());
  ASSERT_TRUE(evaluateWith(TokenIdsDesc(), step.step, {&step.step, y.data()}));
  EXPECT_EQ(y, (std::vector<int32_t>{4, 3, 0}));
  ids[0] = -3;
  Status status = evaluateWith(TokenIdsDesc(), step.step, {&step.step, y.data()});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "kernel: token row 0 names sample 2 of the step before, which has 2");
}

TEST(Lookup, IsEmbedOfIdsThatAreRows) {
  LookupDesc d{5, DType::BF16, rowsOf(3)};
  Array table(DType::BF16, Random(1).vector(15)), y(DType::F32, 6);
  TestStep step(TestStep::plain(2));
  std::vector<int32_t> ids{4, 1};
  ASSERT_TRUE(evaluateWith(d, step.step, {ids.data(), table.data(), y.data()}));
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(y[i], table[4 * 3 + i]);
    EXPECT_EQ(y[3 + i], table[3 + i]);
  }
  ids[1] = 5;
  Status status = evaluateWith(d, step.step, {ids.data(), table.data(), y.data()});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "kernel: token id 5 in a vocabulary of 5");
}

TEST(RmsNorm, HasSixtyFourChainsMergedByHalving) {
  constexpr int64_t width = 333;
  RmsNormDesc d{rowsOf(width), rowsOf(width), 1e-6, DType::F32};
  Random random(2);
  Array x(DType::F32, random.vector(width)), weight(DType::F32, random.vector(width)), y(DType::F32, width);
  TestStep step(TestStep::plain(1));
  ASSERT_TRUE(evaluateWith(d, step.step, {x.data(), weight.data(), y.data()}));
  float chain[64] = {}, one = 0;
  for (int64_t i = 0; i < width; ++i) {
    chain[i % 64] = std::fma(x[i], x[i], chain[i % 64]);
    one = std::fma(x[i], x[i], one);
  }
  for (int half : {32, 16, 8, 4, 2, 1})
    for (int c = 0; c < half; ++c)
      chain[c] += chain[c + half];
  float factor = 1 / std::sqrt(chain[0] / float(width) + 1e-6f);
  for (int64_t i = 0; i < width; ++i)
    EXPECT_EQ(y[i], weight[i] * (x[i] * factor));
  EXPECT_NE(one, chain[0]);
}

TEST(Rotary, TurnsPairsAndCopiesTheRest) {
  constexpr int64_t heads = 2, headDim = 10, first = 2, count = 6, positions = 8;
  for (bool interleaved : {false, true}) {
    RotaryDesc d{
        rowsOf(heads * headDim), rowsOf(heads * headDim), heads, headDim, first, count, positions, interleaved};
    Random random(3);
    Array x(DType::F32, random.vector(2 * heads * headDim)), y = x, table(DType::F32, positions * count);
    for (int64_t p = 0; p < positions; ++p)
      for (int64_t j = 0; j < count / 2; ++j) {
        table.set(p * count + j, float(std::cos(double(p) * (double(j) + 0.5))));
        table.set(p * count + count / 2 + j, float(std::sin(double(p) * (double(j) + 0.5))));
      }
    TestStep step({Sequence{6, 2}});
    ASSERT_TRUE(evaluateWith(d, step.step, {y.data(), table.data(), &step.step, y.data()})); // in place
    for (int64_t r = 0; r < 2; ++r)
      for (int64_t h = 0; h < heads; ++h) {
        int64_t base = (r * heads + h) * headDim;
        for (int64_t i : {int64_t(0), int64_t(1), int64_t(8), int64_t(9)})
          EXPECT_EQ(y[base + i], x[base + i]);
        for (int64_t j = 0; j < count / 2; ++j) {
          int64_t a = base + first + (interleaved ? 2 * j : j), b = interleaved ? a + 1 : a + count / 2;
          double angle = double(6 + r) * (double(j) + 0.5);
          float c = table[(6 + r) * count + j], s = table[(6 + r) * count + count / 2 + j];
          EXPECT_EQ(y[a], std::fma(x[a], c, -(x[b] * s)));
          EXPECT_EQ(y[b], std::fma(x[b], c, x[a] * s));
          EXPECT_NEAR(y[a], x[a] * std::cos(angle) - x[b] * std::sin(angle), 1e-6);
          EXPECT_NEAR(y[b], x[b] * std::cos(angle) + x[a] * std::sin(angle), 1e-6);
        }
      }
  }
}

TEST(Rotary, RefusesPositionsOutsideItsTable) {
  RotaryDesc d{rowsOf(2), rowsOf(2), 1, 2, 0, 2, 8, false};
  Array x(DType::F32, 2), table(DType::F32, 16);
  TestStep step({Sequence{8, 1}});
  Status status = evaluateWith(d, step.step, {x.data(), table.data(), &step.step, x.data()});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "kernel: position 8 in a rotary table of 8; compile with a larger --max-context");
}

TEST(Append, WritesEachPlaneAtTheStepsSlots) {
  AppendDesc d;
  d.x = {{RowSpace::Token, 4, 6, DType::F32}, rowsOf(2)};
  d.planes = {DType::BF16, DType::F32};
  d.group = 1;
  TestStep step({Sequence{63, 2}, Sequence{0, 1}}, d.group);
  Random random(4);
  Array a(DType::F32, random.vector(3 * 6)), b(DType::F32, random.vector(3 * 2));
  Array planeA(DType::BF16, TestStep::pageCount * 64 * 4), planeB(DType::F32, TestStep::pageCount * 64 * 2);
  ASSERT_TRUE(evaluateWith(d, step.step, {a.data(), b.data(), planeA.data(), planeB.data(), &step.step}));
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_EQ(planeA[step.slots[r] * 4 + i], ofBf16(bf16Of(a[r * 6 + i])));
    for (int64_t i = 0; i < 2; ++i)
      EXPECT_EQ(planeB[step.slots[r] * 2 + i], b[r * 2 + i]);
  }
  EXPECT_NE(step.slots[0] / 64, step.slots[1] / 64); // the second token starts a page
}

TEST(Elementwise, AddAndGatedActRoundOnce) {
  constexpr int64_t width = 5;
  Random random(6);
  Array a(DType::F32, random.vector(2 * width)), b(DType::BF16, random.vector(2 * width)), y(DType::BF16, 2 * width);
  TestStep step(TestStep::plain(2));
  RowwiseDesc add = addition(rowsOf(width), rowsOf(width, DType::BF16), rowsOf(width, DType::BF16));
  ASSERT_TRUE(evaluateWith(add, step.step, {a.data(), b.data(), y.data()}));
  for (int64_t i = 0; i < 2 * width; ++i)
    EXPECT_EQ(y[i], ofBf16(bf16Of(a[i] + b[i])));
  TestStep one(TestStep::plain(1));
  RowwiseDesc act = gatedSilu(rowsOf(2 * width), rowsOf(width, DType::BF16));
  ASSERT_TRUE(evaluateWith(act, one.step, {a.data(), a.at(width), y.data()}));
  for (int64_t i = 0; i < width; ++i)
    EXPECT_EQ(y[i], ofBf16(bf16Of(k2rt_siluf(a[i]) * a[width + i])));
}

TEST(Elementwise, ClipKeepsNaN) {
  Array x(DType::F32, {-3, -0.5f, 0, 2.5f, std::nanf("")}), y(DType::F32, 5);
  TestStep step(TestStep::plain(1));
  ASSERT_TRUE(evaluateWith(clip(rowsOf(5), rowsOf(5), 1.5), step.step, {x.data(), y.data()}));
  EXPECT_EQ(y[0], -1.5f);
  EXPECT_EQ(y[1], -0.5f);
  EXPECT_EQ(y[3], 1.5f);
  EXPECT_TRUE(std::isnan(y[4]));
}

TEST(Elementwise, EachStepRoundsToItsType) {
  RowwiseDesc d{{rowsOf(1), rowsOf(1)}, {}, rowsOf(1)};
  ElementTerm product = d.list.append(ElementOp::Mul, DType::BF16, ElementTerm::input(0), ElementTerm::input(1));
  d.list.append(ElementOp::Add, DType::F32, product, ElementTerm::constant(-1));
  Array a(DType::F32, std::vector<float>{1.01f}), b(DType::F32, std::vector<float>{1.02f}), y(DType::F32, 1);
  TestStep step(TestStep::plain(1));
  ASSERT_TRUE(evaluateWith(d, step.step, {a.data(), b.data(), y.data()}));
  EXPECT_EQ(y[0], ofBf16(bf16Of(1.01f * 1.02f)) - 1);
}

TEST(Elementwise, GatedActTakesAllSlots) {
  constexpr int64_t inner = 3, top = 2, tokens = 2;
  RowwiseDesc d =
      gatedSilu(rowsOf(2 * inner, DType::F32, RowSpace::Slot), rowsOf(inner, DType::F32, RowSpace::Slot), top);
  Random random(9);
  Array x(DType::F32, random.vector(tokens * top * 2 * inner)), y(DType::F32, tokens * top * inner);
  TestStep step(TestStep::plain(tokens));
  ASSERT_TRUE(evaluateWith(d, step.step, {x.data(), x.at(inner), y.data()}));
  for (int64_t row = 0; row < tokens * top; ++row)
    for (int64_t i = 0; i < inner; ++i)
      EXPECT_EQ(y[row * inner + i], k2rt_siluf(x[row * 2 * inner + i]) * x[row * 2 * inner + inner + i]);
}

// How many slots hold a row is known to dispatched kernels alone.
TEST(RmsNorm, OverSlotsIsRefused) {
  Rows slots = rowsOf(4, DType::F32, RowSpace::Slot);
  Array x(DType::F32, 4), y(DType::F32, 4);
  TestStep step(TestStep::plain(1));
  Status status = evaluateWith(RmsNormDesc{slots, slots, 1e-6, DType::F32}, step.step, {x.data(), x.data(), y.data()});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "kernel: a norm over slots has no row count");
}

TEST(OutputRows, CopiesTheOutputRows) {
  Random random(7);
  Array x(DType::F32, random.vector(4 * 3)), y(DType::F32, 2 * 3);
  TestStep step(TestStep::plain(4));
  std::vector<int32_t> outputs{1, 3};
  step.step.outputs = outputs.data();
  step.step.output_rows = 2;
  OutputRowsDesc d{rowsOf(3), rowsOf(3, DType::F32, RowSpace::Output)};
  ASSERT_TRUE(evaluateWith(d, step.step, {x.data(), &step.step, y.data()}));
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(y[i], x[outputs[i / 3] * 3 + i % 3]);
  outputs[1] = 4;
  EXPECT_FALSE(evaluateWith(d, step.step, {x.data(), &step.step, y.data()}));
}

TEST(Capture, CopiesRowsOfItsLayerWhenAsked) {
  Random random(8);
  Array x(DType::BF16, random.vector(2 * 3));
  TestStep step(TestStep::plain(2));
  std::vector<float> hidden(3 * 2 * 3);
  ASSERT_TRUE(evaluateWith(CaptureDesc{rowsOf(3, DType::BF16)}, step.step, {x.data(), &step.step, ordinal(2)}));
  step.step.capture_hidden = hidden.data();
  ASSERT_TRUE(evaluateWith(CaptureDesc{rowsOf(3, DType::BF16)}, step.step, {x.data(), &step.step, ordinal(2)}));
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(hidden[2 * 6 + i], x[i]);
    EXPECT_EQ(hidden[i], 0.0f);
  }
}

} // namespace

//===- EvaluateSamplingTest.cpp - The greedy choice by blocks is that of the whole row ---------===//

#include "TestStep.h"
#include <limits>

using namespace k2c;
using namespace k2c::test;

namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();

/// What both kernels make of rows of equal length, with blocks of each length.
void expectSamples(const std::vector<std::vector<float>> &rows, const std::vector<int32_t> &samples) {
  const int64_t width = int64_t(rows[0].size());
  std::vector<float> logits;
  for (const std::vector<float> &row : rows)
    logits.insert(logits.end(), row.begin(), row.end());
  for (int64_t block = 1; block <= width + 1; ++block) {
    const BlockArgmaxDesc argmax{rowsOf(width, DType::F32, RowSpace::Output), block};
    const GreedySampleDesc greedy{argmax.logits, argmax.blocks()};
    std::vector<int32_t> best(rows.size() * size_t(argmax.blocks()), -77), found(rows.size(), -77);
    TestStep step(TestStep::plain(int64_t(rows.size())));
    step.step.output_rows = int64_t(rows.size());
    step.step.samples = found.data();
    ASSERT_TRUE(evaluateWith(argmax, step.step, {logits.data(), best.data()}));
    ASSERT_TRUE(evaluateWith(greedy, step.step, {best.data(), logits.data(), &step.step}));
    EXPECT_EQ(found, samples) << "blocks of " << block;
  }
}

TEST(GreedySample, IsTheLargestLogitAndTheLowestIdAmongEquals) {
  expectSamples({{1, 3, 2, 3, -1}, {-5, -2, -3, -2, -9}, {0, 0, 0, 0, 0}}, {1, 1, 0});
}

TEST(GreedySample, TakesZerosAndSubnormalsForOneNumber) {
  expectSamples({{-1, -0.0f, 0.0f, 1e-40f}, {-1, -1e-40f, 0.0f, -0.0f}}, {1, 1});
}

TEST(GreedySample, OfNaNAloneIsNone) {
  expectSamples({{nan, nan, nan, nan}, {nan, -infinity, nan, nan}, {1, nan, infinity, infinity}}, {-1, 1, 2});
}

} // namespace

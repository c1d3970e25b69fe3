//===- EmitSamplingTest.cpp - Emitted greedy choices have the bits of evaluate() ----------------===//
#include "EmitTest.h"
#include <cmath>
#include <limits>

namespace k2c::test {
namespace {

class EmitSampling : public EmitTest {};
K2C_EMIT_TARGETS(EmitSampling);

constexpr int64_t rows = 6;

/// Rows of logits with many ties, NaN and infinities: the last row is NaN alone, the one before has one number.
Array logitsOf(int64_t width, int64_t stride) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = Random(width).vector(rows * stride);
  for (float &value : values)
    value = std::round(value * 16) / 4;
  values[0] = values[size_t(width / 2)] = nan;
  values[size_t(stride + width / 3)] = values[size_t(stride + width - 1)] = infinity;
  values[size_t(2 * stride)] = -infinity;
  for (int64_t i = 0; i < stride; ++i) {
    values[size_t(3 * stride + i)] = i % 2 ? -0.0f : 0.0f;
    values[size_t(4 * stride + i)] = values[size_t(5 * stride + i)] = nan;
  }
  values[size_t(4 * stride + width - 1)] = -infinity;
  return Array(DType::F32, values);
}

TEST_P(EmitSampling, GreedySamplesOfBlocks) {
  TestStep step(TestStep::plain(rows));
  step.step.output_rows = rows;
  for (const auto &[width, block] :
       {std::pair{1, 4}, {31, 32}, {64, 32}, {100, 33}, {100, 3}, {513, 512}, {1300, 512}, {2100, 30}}) {
    const Rows of{RowSpace::Output, width, width + 3, DType::F32};
    const BlockArgmaxDesc argmax{of, block};
    const std::string name = std::to_string(width) + "_" + std::to_string(block);
    Array logits = logitsOf(width, width + 3), none(DType::I32, std::vector<float>(size_t(rows * argmax.blocks()), 7));
    Array best = none;
    expectSameBits({"argmax" + name, argmax}, step.step, {none},
                   [&](std::vector<Array> &r) { return std::vector<void *>{logits.data(), r[0].data()}; });
    ASSERT_TRUE(evaluateWith(argmax, step.step, {logits.data(), best.data()}));
    Array samples(DType::I32, std::vector<float>(size_t(rows), 7));
    expectSameBits({"greedy" + name, GreedySampleDesc{of, argmax.blocks()}}, step.step, {samples},
                   [&](std::vector<Array> &r) {
                     step.step.samples = r[0].data();
                     return std::vector<void *>{best.data(), logits.data(), &step.step};
                   });
  }
}

} // namespace
} // namespace k2c::test

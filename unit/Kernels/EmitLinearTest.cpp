//===- EmitLinearTest.cpp - Emitted linears have the bits of evaluate() --------------------------===//
#include "EmitTest.h"
#include "Lists.h"

namespace k2c::test {
namespace {

class EmitLinear : public EmitTest {};
K2C_EMIT_TARGETS(EmitLinear);
K2C_EMIT_ROWS(EmitLinear);

class EmitLinearPairs : public EmitTest {};
K2C_EMIT_PAIRS(EmitLinearPairs);
K2C_EMIT_ROWS(EmitLinearPairs);

struct Problem {
  LinearDesc desc;
  Array x, norm, w, bias, residual;
};

Array randomMatrix(const Matrix &matrix, Random &random) {
  return pack(matrix, [&](int64_t, int64_t, int64_t) { return random(); }, weightsOfTarget());
}

LinearDesc linear(DType x, DType w, int64_t n, int64_t k) {
  LinearDesc desc;
  desc.x = {RowSpace::Token, k, k + 3, x};
  desc.y = {RowSpace::Token, n, n + 1, x};
  desc.w = Matrix{w, 1, n, k};
  desc.order = {k, leafCount(k)};
  return desc;
}

/// Runs `desc` on the given row counts.
void check(const std::string &name, const LinearDesc &desc, std::vector<int64_t> rowCounts) {
  Random random;
  Array w = randomMatrix(desc.w, random), norm(desc.normWeight, random.vector(desc.x.width));
  Array bias(desc.biasType, random.vector(desc.w.n));
  for (int64_t rows : rowCounts) {
    TestStep step(TestStep::plain(rows));
    Array x(desc.x.type, random.vector(rows * desc.x.stride)),
        residual(desc.residual.type, random.vector(rows * std::max<int64_t>(desc.residual.stride, 1)));
    Array y(desc.y.type, std::vector<float>(rows * desc.y.stride, -77.0f));
    expectSameBits({name + "." + std::to_string(rows), desc}, step.step, {y}, [&](std::vector<Array> &r) {
      std::vector<void *> args = {x.data()};
      if (desc.normEps > 0)
        args.push_back(norm.data());
      args.push_back(w.data());
      if (desc.takes(LinearDesc::Bias))
        args.push_back(bias.data());
      if (desc.takes(LinearDesc::Residual))
        args.push_back(residual.data());
      args.push_back(r[0].data());
      return args;
    });
  }
}

TEST_P(EmitLinear, EveryRowCountOfATile) {
  check("f32", linear(DType::F32, DType::F32, 33, 130), {1, 2, 3, 5, 8, 13, 14, 15, 33});
}

TEST_P(EmitLinearPairs, FewRowsTakePanelsInPairs) {
  check("pairs_of_panels", linear(DType::BF16, DType::BF16, 3 * 32 + 5, 256), {1, 2, 3, 4, 5});
  check("odd_panels", linear(DType::F32, DType::BF16, 2 * 32 + 1, 9), {1, 4});
}

TEST_P(EmitLinearPairs, TilesShareTheRows) {
  check("shared", linear(DType::BF16, DType::BF16, 32, 64), {16, 29, 43, 57});
}

TEST_P(EmitLinear, OddContractionOfBf16Weights) { check("odd", linear(DType::F32, DType::BF16, 40, 7), {1, 3, 15}); }

TEST_P(EmitLinear, LeavesOfEqualLengthRunTogether) {
  check("leaves", linear(DType::F32, DType::BF16, 64, 1024), {1, 2, 14, 33});
}

TEST_P(EmitLinearPairs, EmptyAndShortLeaves) {
  check("ragged", linear(DType::F32, DType::BF16, 32, 4101), {1, 3});
  check("ragged", linear(DType::F32, DType::F32, 32, 4100), {1, 15});
  check("eight", linear(DType::BF16, DType::BF16, 32, 4096), {1, 2, 3, 9, 15});
}

TEST_P(EmitLinearPairs, PairsOfBf16TakeTheOddElementFirst) {
  check("pairs", linear(DType::BF16, DType::BF16, 48, 1024), {1, 15});
  check("pairs", linear(DType::BF16, DType::BF16, 48, 131), {2});
}

// On a GPU the warps of a CTA share rows, leaves and panels, each as far as there are any.
TEST_P(EmitLinear, FewRowsAreSharedByLeavesAndPanels) {
  check("eight_leaves", linear(DType::F32, DType::F32, 3 * 32 + 5, 4096), {1, 16, 17, 33, 49, 65});
  check("four_leaves", linear(DType::F32, DType::BF16, 32, 2176), {1, 4, 17});
  check("two_leaves", linear(DType::F32, DType::F32, 5 * 32, 1152), {1, 2, 17, 40});
  check("a_leaf", linear(DType::F32, DType::BF16, 7 * 32, 512), {1, 2, 17, 40});
}

TEST_P(EmitLinear, NormBiasAndResidual) {
  LinearDesc desc = linear(DType::F32, DType::BF16, 70, 192);
  desc.normEps = 1e-6;
  desc.epilogue = epilogueOf(DType::F32, {LinearDesc::Bias, LinearDesc::Residual});
  desc.residual = {RowSpace::Token, 70, 72, DType::F32};
  check("norm", desc, {1, 33, 500});
}

TEST_P(EmitLinear, GatedSiluOnInterleavedPanels) {
  LinearDesc desc = linear(DType::F32, DType::BF16, 2 * 41, 96);
  desc.w.parts = 2;
  desc.y = rowsOf(41);
  desc.epilogue = epilogueOf(DType::F32, {LinearDesc::UpSum, LinearDesc::Bias, LinearDesc::UpBias});
  check("gated", desc, {1, 15});
}

TEST_P(EmitLinearPairs, GatedSiluKeepsTheRoundingOfBf16) {
  LinearDesc desc = linear(DType::BF16, DType::BF16, 2 * 48, 96);
  desc.w.parts = 2;
  desc.y = rowsOf(48, DType::BF16);
  desc.epilogue = epilogueOf(DType::BF16, {LinearDesc::UpSum});
  check("gated_bf16", desc, {1, 15});
}

} // namespace
} // namespace k2c::test

//===- EmitBlockScaledTest.cpp - e4m3 weights in scaled blocks: emitted, evaluated, dequantised ----------===//
//
// Three ways to the same bits: the emitted kernel, evaluate() on the same bytes, and evaluate() on f32 panels of the
// weights that a literal reading of the format and one product give.
//
//===----------------------------------------------------------------------===//
#include "EmitTest.h"
#include "Lists.h"

namespace k2c::test {
namespace {

class EmitBlockScaled : public EmitTest {};
K2C_EMIT_TARGETS(EmitBlockScaled);
K2C_EMIT_ROWS(EmitBlockScaled);

/// The format as it is written down: sign, exponent with bias 7, mantissa; exponent 0 has no hidden one.
double valueOf(uint8_t code) {
  double fraction = (code & 7) / 8.0;
  int exponent = code >> 3 & 15;
  double magnitude = exponent == 0 ? fraction * std::pow(2.0, -6) : (1 + fraction) * std::pow(2.0, exponent - 7);
  return code & 0x80 ? -magnitude : magnitude;
}

/// Random codes and scales, as the target reads them, and f32 panels that mean the same.
struct BlockScaled {
  MatrixLayout scaled;
  PanelLayout plain;
  std::vector<char> bytes;
  Array wide;

  explicit BlockScaled(const Matrix &matrix, uint64_t seed = 1)
      : scaled(layoutOf(matrix, weightsOfTarget())),
        plain{{DType::F32, matrix.count, matrix.n, matrix.k, matrix.parts}}, wide(DType::F32, plain.bytes() / 4) {
    bytes.resize(std::visit([](const auto &layout) { return layout.bytes(); }, scaled));
    Random random(seed);
    std::vector<float> scales(bytes.size(), 0.0f); // by byte offset; 0: not drawn yet
    for (int64_t m = 0; m < matrix.count; ++m)
      for (int64_t n = 0; n < matrix.n; ++n)
        for (int64_t k = 0; k < matrix.k; ++k) {
          float &scale = scales[scaleOffset(m, n, k)];
          if (scale == 0)
            scale = std::ldexp(1.5f + random() / 4, int(random.below(40)) - 30);
          set(m, n, k, uint8_t(random.below(127) | random.below(2) << 7), scale);
        }
  }

  int64_t scaleOffset(int64_t m, int64_t n, int64_t k) const {
    return std::visit([&](const auto &layout) { return layout.scaleOffset(m, n, k); }, scaled);
  }
  void set(int64_t m, int64_t n, int64_t k, uint8_t code, float scale) {
    bytes[std::visit([&](const auto &layout) { return layout.offset(m, n, k); }, scaled)] = char(code);
    std::memcpy(&bytes[scaleOffset(m, n, k)], &scale, sizeof scale);
    wide.set(plain.offset(m, n, k) / 4, float(valueOf(code)) * scale);
  }
};

Matrix blocks(int64_t n, int64_t k, int64_t blockColumns, int64_t blockRows, int64_t parts = 1, int64_t count = 1) {
  return {DType::F8E4M3, count, n, k, parts, blockColumns, blockRows};
}

LinearDesc linear(const Matrix &w, DType type = DType::F32) {
  LinearDesc desc;
  int64_t columns = w.partColumns();
  desc.x = {RowSpace::Token, w.k, w.k + 3, type};
  desc.y = {RowSpace::Token, columns, columns + 1, type};
  desc.w = w;
  desc.order = {w.k, leafCount(w.k)};
  if (w.parts == 2)
    desc.epilogue = epilogueOf(type, {LinearDesc::UpSum});
  return desc;
}

/// Emitted = evaluated = evaluated with f32 weights.
void check(const std::string &name, const LinearDesc &desc, const std::vector<int64_t> &rowCounts) {
  BlockScaled weights(desc.w);
  LinearDesc plain = desc;
  plain.w = weights.plain.matrix;
  for (int64_t rows : rowCounts) {
    TestStep step(TestStep::plain(rows));
    Array x(desc.x.type, Random(3).vector(rows * desc.x.stride)), y(desc.y.type, rows * desc.y.stride), same = y;
    expectSameBits({name + "." + std::to_string(rows), desc}, step.step, {y}, [&](std::vector<Array> &r) {
      return std::vector<void *>{x.data(), weights.bytes.data(), r[0].data()};
    });
    EXPECT_TRUE(evaluateWith(desc, step.step, {x.data(), weights.bytes.data(), y.data()}, weightsOfTarget()));
    EXPECT_TRUE(evaluateWith(plain, step.step, {x.data(), weights.wide.data(), same.data()}));
    EXPECT_TRUE(y == same) << name << ": block-scaled against f32 weights";
  }
}

TEST_P(EmitBlockScaled, EveryCodeIsExactUnderDaz) {
  // Row r of x selects element r of k: y[r][0] is the weight with code r.
  LinearDesc desc = linear(blocks(1, 256, 128, 128));
  TestStep step(TestStep::plain(256));
  Array x(DType::F32, 256 * desc.x.stride), y(DType::F32, 256 * desc.y.stride);
  BlockScaled weights(desc.w);
  for (int64_t code = 0; code < 256; ++code) {
    x.set(code * desc.x.stride + code, 1.0f);
    weights.set(0, 0, code, (code & 0x7f) == 0x7f ? 0 : uint8_t(code), code < 128 ? 1.0f : 0.375f);
  }
  auto check = [&](const std::string &reading) {
    for (int64_t code = 0; code < 256; ++code)
      if ((code & 0x7f) != 0x7f) {
        EXPECT_EQ(double(y[code * desc.y.stride]), valueOf(uint8_t(code)) * (code < 128 ? 1.0 : 0.375))
            << reading << ", code " << code;
      }
  };
  std::vector<void *> args = {x.data(), weights.bytes.data(), y.data()};
  EXPECT_TRUE(evaluate({"codes", desc}, args.data(), step.step, weightsOfTarget()));
  check("evaluate");
  Expected<CompiledKernel> kernel = compileForTarget({"codes", desc});
  ASSERT_TRUE(kernel) << kernel.error().text();
  y = Array(DType::F32, y.size());
  args.back() = y.data();
  EXPECT_EQ(launch(*kernel, step.step, args, 1).status, 0);
  check(kernel->target);
}

TEST_P(EmitBlockScaled, EveryRowCountOfATile) {
  check("fp8", linear(blocks(70, 300, 128, 128)), {1, 2, 3, 8, 13, 14, 27});
}

TEST_P(EmitBlockScaled, LeavesRunTogether) { check("leaves", linear(blocks(64, 1024, 128, 128)), {1, 2, 14}); }

TEST_P(EmitBlockScaled, ShortLastLeafAndOddLength) { check("ragged", linear(blocks(32, 4101, 128, 128)), {1, 3}); }

TEST_P(EmitBlockScaled, BlocksSmallerThanAVector) {
  check("narrow", linear(blocks(40, 150, 8, 16)), {1, 15});
  check("single", linear(blocks(33, 20, 1, 1)), {1, 3});
}

TEST_P(EmitBlockScaled, ActivationsOfBf16MultiplyF32Weights) {
  check("bf16", linear(blocks(48, 200, 128, 128), DType::BF16), {1, 15});
}

TEST_P(EmitBlockScaled, GateAndUpHaveScalesOfTheirOwn) {
  check("gated", linear(blocks(2 * 41, 260, 128, 128, 2)), {1, 15});
  check("gated8", linear(blocks(2 * 41, 96, 8, 128, 2)), {2});
}

TEST_P(EmitBlockScaled, GroupedLinearOfExperts) {
  constexpr int64_t experts = 5, topK = 2, tokens = 11, k = 200, n = 37;
  TestStep step(TestStep::plain(tokens));
  std::vector<int32_t> chosen(tokens * topK), permutation(experts + 1 + 2 * tokens * topK);
  for (int64_t i = 0; i < tokens * topK; ++i)
    chosen[i] = int32_t((i * 3 + i / topK) % 4); // expert 4 has no token
  EXPECT_TRUE(evaluateWith(PermutationDesc{experts, topK}, step.step, {chosen.data(), permutation.data()}));
  LinearDesc desc = linear(blocks(n, k, 128, 128, 1, experts));
  desc.x = rowsOf(k, DType::F32, RowSpace::Slot);
  desc.y = rowsOf(n, DType::F32, RowSpace::Slot);
  desc.grouped = true;
  desc.slotsPerToken = topK;
  BlockScaled weights(desc.w);
  ExpertTable table(layoutOf(desc.w, weightsOfTarget()), weights.bytes.data());
  Array x(DType::F32, Random(3).vector(tokens * topK * k)), y(DType::F32, tokens * topK * n);
  expectSameBits({"experts", desc}, step.step, {y}, [&](std::vector<Array> &r) {
    return std::vector<void *>{x.data(), table.data(), permutation.data(), r[0].data()};
  });
}

TEST_P(EmitBlockScaled, HeadsOfLatentAttention) {
  TestStep step(std::vector<Sequence>{{0, 19, K2RT_FORM_EXPANDED}, {70, 2, K2RT_FORM_ABSORBED}});
  constexpr int64_t heads = 3, nope = 48, rope = 6, value = 40, latent = 144;
  // Heads of 88 rows in blocks of 128: 8 rows share a scale at least.
  HeadLinearDesc absorb{
      rowsOf(heads * nope), rowsOf(heads * latent), heads, nope, blocks(latent, nope, 128, 8, 1, heads), {nope, 1}};
  BlockScaled transposed(absorb.w);
  Array x(DType::F32, Random(3).vector(step.rows() * heads * nope)), y(DType::F32, step.rows() * heads * latent);
  expectSameBits({"absorb", absorb}, step.step, {y}, [&](std::vector<Array> &r) {
    return std::vector<void *>{x.data(), transposed.bytes.data(), r[0].data()};
  });

  ExpandedAttentionDesc d;
  d.shape.heads = heads;
  d.shape.scale = 0.3;
  d.latent = latent;
  d.nope = nope;
  d.rope = rope;
  d.value = value;
  d.q = rowsOf(heads * (nope + rope));
  d.o = rowsOf(heads * value);
  d.uk = blocks(nope, latent, 8, 128, 1, heads);
  d.uv = blocks(value, latent, 8, 128, 1, heads);
  BlockScaled uk(d.uk, 5), uv(d.uv, 6);
  Array q(DType::F32, Random(7).vector(step.rows() * d.q.stride)), o(DType::F32, step.rows() * d.o.stride);
  Array latents(DType::F32, Random(8).vector(TestStep::pageCount * 64 * latent));
  Array ropes(DType::F32, Random(9).vector(TestStep::pageCount * 64 * rope));
  expectSameBits({"expanded", d}, step.step, {o}, [&](std::vector<Array> &r) {
    return std::vector<void *>{q.data(),        latents.data(), ropes.data(), uk.bytes.data(),
                               uv.bytes.data(), &step.step,     r[0].data()};
  });
}

} // namespace
} // namespace k2c::test

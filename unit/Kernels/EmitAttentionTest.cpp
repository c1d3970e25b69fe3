//===- EmitAttentionTest.cpp - Emitted attentions have the bits of evaluate() --------------------===//
//
// Contexts beyond 1024 keys restart the softmax; sequences, forms and chunks are mixed in one step. Slots that no key
// was written to hold NaN, so a product with what must not be seen shows.
//
//===----------------------------------------------------------------------===//
#include "AttentionTest.h"
#include "EmitTest.h"
#include <limits>

namespace k2c::test {
namespace {

class EmitAttention : public EmitTest {};
K2C_EMIT_TARGETS(EmitAttention);

class EmitAttentionPairs : public EmitTest {};
K2C_EMIT_PAIRS(EmitAttentionPairs);

/// Whole heads, parts of them, and more workers than items.
const std::vector<int64_t> teams = {1, 2, 3, 7, 64};

/// A plane with keys of every sequence, NaN elsewhere.
Array cachePlane(const TestStep &step, int64_t width, DType type, uint64_t seed) {
  Random random(seed);
  Array data(type, std::vector<float>(TestStep::pageCount * 64 * width, std::numeric_limits<float>::quiet_NaN()));
  for (int64_t s = 0; s < step.step.seq_rows; ++s)
    for (int64_t t = 0; t <= step.token(step.seqBegin[s + 1] - 1); ++t)
      for (int64_t i = 0; i < width; ++i)
        data.set(step.slot(s, t) * width + i, random());
  return data;
}

Array outputs(const TestStep &step, int64_t width, DType type = DType::F32) {
  return Array(type, std::vector<float>(step.rows() * width, -77.0f));
}

void checkGqa(const GqaAttentionDesc &d, const std::vector<Sequence> &sequences, int64_t splitTokens = 0) {
  TestStep step(sequences, d.shape.group);
  Array q(d.q.type, Random(3).vector(step.rows() * d.q.stride));
  Array k = cachePlane(step, d.kvHeads * d.keyDim, d.shape.cache, 1);
  Array v = cachePlane(step, d.kvHeads * d.valueDim, d.shape.cache, 2);
  Array capture(DType::F32, std::vector<float>(2 * d.shape.heads, -100.0f));
  expectSameBits(
      {"gqa", d}, step.step, {outputs(step, d.o.stride, d.o.type), capture},
      [&](std::vector<Array> &r) {
        step.step.capture_max_logit = r[1].data();
        std::vector<void *> args = {q.data(), k.data(), v.data(), &step.step};
        if (d.shape.maxLogit)
          args.push_back(ordinal(1));
        args.push_back(r[0].data());
        return args;
      },
      teams, splitTokens);
}

GqaAttentionDesc gqa(int64_t heads, int64_t kvHeads, int64_t keyDim, int64_t valueDim, DType type = DType::F32) {
  GqaAttentionDesc d;
  d.shape.heads = heads;
  d.shape.scale = 0.7;
  d.shape.cache = type;
  d.kvHeads = kvHeads;
  d.keyDim = keyDim;
  d.valueDim = valueDim;
  d.q = rowsOf(heads * keyDim, type);
  d.o = rowsOf(heads * valueDim, type);
  return d;
}

TEST_P(EmitAttention, GqaChunksAndDecodesTogether) {
  GqaAttentionDesc d = gqa(6, 2, 24, 20);
  d.shape.maxLogit = true;
  checkGqa(d, {{0, 70}, {63, 1}, {100, 3}, {0, 1}});
}

TEST_P(EmitAttention, GqaRestartsEveryThousandKeys) {
  checkGqa(gqa(2, 1, 8, 8), {{1020, 9}, {1500, 2}});
  checkGqa(gqa(2, 1, 8, 8), {{2047, 1}});
}

/// Rows of a tile that see neither, one or both keys of a pair.
TEST_P(EmitAttentionPairs, GqaPairsOfBf16) {
  checkGqa(gqa(2, 2, 9, 8, DType::BF16), {{5, 30}});
  checkGqa(gqa(3, 1, 9, 8, DType::BF16), {{0, 1}, {62, 5}, {63, 1}, {64, 1}, {65, 2}});
  checkGqa(gqa(2, 1, 8, 33, DType::BF16), {{1020, 9}, {2047, 2}});
}

/// Whole groups of value columns and a rest, keys that are no whole vectors, more rows than a tile has.
TEST_P(EmitAttentionPairs, GqaColumnsInGroupsAndRests) {
  checkGqa(gqa(7, 1, 40, 100, DType::BF16), {{130, 2}, {60, 7}});
  checkGqa(gqa(8, 2, 33, 64), {{0, 5}, {64, 1}});
}

TEST_P(EmitAttention, GqaQueriesAndCacheOfDifferentTypes) {
  GqaAttentionDesc d = gqa(3, 3, 17, 18, DType::BF16);
  d.q.type = DType::F32;
  checkGqa(d, {{62, 4}});
  d = gqa(4, 1, 15, 8);
  d.q.type = d.o.type = DType::BF16;
  checkGqa(d, {{3, 1}, {0, 9}});
}

// Two partials and fewer are one piece; 3, 4 and 5 are split at 2,047, 3,071 and 4,095 tokens before; from 16,384
// positions on partials are longer.
const std::vector<Sequence> longSequences = {{0, 1},    {63, 1},   {64, 1},   {1024, 1}, {2046, 3},
                                             {3071, 1}, {4095, 2}, {4096, 1}, {16383, 2}};

TEST_P(EmitAttentionPairs, GqaSplitsLongSequences) {
  GqaAttentionDesc d = gqa(6, 2, 8, 20);
  d.shape.maxLogit = true;
  checkGqa(d, longSequences, 13);
  checkGqa(d, longSequences, 12); // one token too many
  checkGqa(gqa(3, 1, 9, 8, DType::BF16), {{16500, 1}}, 1);
}

TEST_P(EmitAttention, KeysOfTwoChainsAreRefusedByName) {
  Expected<CompiledKernel> kernel = compileForTarget({"wide", gqa(1, 1, 1024, 8)});
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().text(), "wide: keys of 1024 elements; emitted scores are one chain, of at most 1023");
}

TEST_P(EmitAttention, PairsThatStraddleAKeysPartsAreRefusedByName) {
  AbsorbedAttentionDesc d;
  d.shape.heads = 1;
  d.shape.cache = DType::BF16;
  d.latent = 17;
  d.rope = d.qRopeHeadStride = 8;
  d.qLatent = d.o = rowsOf(17, DType::BF16);
  d.qRope = rowsOf(8, DType::BF16);
  Expected<CompiledKernel> kernel = compileForTarget({"odd", d});
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().text(),
            "odd: bf16 keys whose first part has 17 elements; emitted pairs need an even number");
}

/// Sequences of both forms, one of them beyond a restart.
const std::vector<Sequence> forms = {
    {70, 1, K2RT_FORM_ABSORBED}, {0, 5, K2RT_FORM_EXPANDED}, {1100, 3, K2RT_FORM_ABSORBED}};

void checkAbsorbed(int64_t heads, DType type, const std::vector<Sequence> &sequences, int64_t splitTokens = 0,
                   int64_t width = 36, int64_t group = 0) {
  AbsorbedAttentionDesc d;
  d.shape.group = group;
  d.shape.maxLogit = true;
  d.shape.cache = type;
  d.shape.heads = heads;
  d.shape.scale = 0.3;
  d.latent = width;
  d.rope = 8;
  d.qLatent = rowsOf(heads * width, type);
  d.qRopeHeadStride = 12;
  d.qRope = {RowSpace::Token, heads * 12, heads * 12 + 4, type};
  d.o = rowsOf(heads * width, type);
  TestStep step(sequences, group);
  Array qLatent(type, Random(3).vector(step.rows() * d.qLatent.stride));
  Array qRope(type, Random(4).vector(step.rows() * d.qRope.stride));
  Array latent = cachePlane(step, width, type, 1), rope = cachePlane(step, 8, type, 2);
  Array capture(DType::F32, std::vector<float>(2 * heads, -100.0f));
  expectSameBits(
      {"absorbed", d}, step.step, {outputs(step, heads * width, type), capture},
      [&](std::vector<Array> &r) {
        step.step.capture_max_logit = r[1].data();
        return std::vector<void *>{qLatent.data(), qRope.data(), latent.data(), rope.data(),
                                   &step.step,     ordinal(1),   r[0].data()};
      },
      teams, splitTokens);
}

TEST_P(EmitAttention, AbsorbedTakesItsRows) {
  for (int64_t heads : {4, 20})
    checkAbsorbed(heads, DType::F32, forms);
}

TEST_P(EmitAttentionPairs, AbsorbedPairsOfBf16) { checkAbsorbed(20, DType::BF16, forms); }

/// Values that are turned in more than one part, the last one no whole vector.
TEST_P(EmitAttentionPairs, AbsorbedPairsOfWideLatents) {
  for (int64_t width : {136, 264})
    checkAbsorbed(5, DType::BF16, {{130, 2, K2RT_FORM_ABSORBED}, {63, 1, K2RT_FORM_ABSORBED}}, 0, width);
}

TEST_P(EmitAttentionPairs, AbsorbedSplitsLongSequences) {
  std::vector<Sequence> sequences = longSequences;
  for (Sequence &sequence : sequences)
    sequence.form = K2RT_FORM_ABSORBED;
  sequences[0].form = sequences[5].form = K2RT_FORM_EXPANDED;
  checkAbsorbed(20, DType::F32, sequences, 13);
  checkAbsorbed(20, DType::F32, sequences, 12); // one token too many
  checkAbsorbed(3, DType::BF16, {{4099, 1, K2RT_FORM_ABSORBED}}, 1);
  checkAbsorbed(3, DType::BF16, {{4099, 1, K2RT_FORM_ABSORBED}}, 1, 264);
}

void checkExpanded(DType type, DType cache, int64_t group = 0) {
  ExpandedAttentionDesc d;
  d.shape.group = group;
  d.shape.maxLogit = true;
  d.shape.cache = cache;
  int64_t heads = 3;
  d.shape.heads = heads;
  d.shape.scale = 0.3;
  d.latent = 40;
  d.nope = 20;
  d.rope = 6;
  d.value = 35;
  d.q = rowsOf(heads * 26, type);
  d.o = rowsOf(heads * 35, type);
  d.uk = {DType::BF16, heads, 20, 40};
  d.uv = {DType::BF16, heads, 35, 40, 1};
  TestStep step(
      std::vector<Sequence>{
          {0, 33, K2RT_FORM_EXPANDED}, {9, 1, K2RT_FORM_ABSORBED}, {60, 70, K2RT_FORM_EXPANDED}, {1023, 2}},
      group);
  Random random(5);
  Array q(type, random.vector(step.rows() * d.q.stride));
  Array uk = pack(d.uk, [&](int64_t, int64_t, int64_t) { return random(); }, weightsOfTarget());
  Array uv = pack(d.uv, [&](int64_t, int64_t, int64_t) { return random(); }, weightsOfTarget());
  Array latent = cachePlane(step, 40, cache, 1), rope = cachePlane(step, 6, cache, 2);
  Array capture(DType::F32, std::vector<float>(2 * heads, -100.0f));
  expectSameBits(
      {"expanded", d}, step.step, {outputs(step, heads * 35, type), capture},
      [&](std::vector<Array> &r) {
        step.step.capture_max_logit = r[1].data();
        return std::vector<void *>{q.data(),  latent.data(), rope.data(), uk.data(),
                                   uv.data(), &step.step,    ordinal(1),  r[0].data()};
      },
      teams);
}

TEST_P(EmitAttention, ExpandedExpandsABlockAtATime) { checkExpanded(DType::F32, DType::F32); }

TEST_P(EmitAttentionPairs, ExpandedQueriesAreWiderThanTheCache) { checkExpanded(DType::F32, DType::BF16); }

TEST_P(EmitAttentionPairs, ExpandedPairsOfBf16) { checkExpanded(DType::BF16, DType::BF16); }

/// Lengths, block tables and positions of other groups are others.
TEST_P(EmitAttention, EachReadsItsOwnCacheGroup) {
  GqaAttentionDesc d = gqa(2, 1, 8, 8);
  d.shape.group = 1;
  checkGqa(d, {{0, 70}, {63, 1}, {100, 3}});
  checkGqa(d, {{63, 1}, {2046, 3}, {3071, 1}}, 5);
  checkAbsorbed(4, DType::F32, forms, 0, 36, 2);
  checkExpanded(DType::F32, DType::F32, 1);
}

} // namespace
} // namespace k2c::test

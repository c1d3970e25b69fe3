//===- EmitRowsTest.cpp - Emitted row kernels have the bits of evaluate() -----------------------===//
#include "EmitTest.h"
#include "Lists.h"

namespace k2c::test {
namespace {

class EmitRows : public EmitTest {};
K2C_EMIT_TARGETS(EmitRows);

constexpr float untouched = -77.0f;

Array filled(DType type, int64_t n, float value = untouched) { return Array(type, std::vector<float>(n, value)); }

TEST_P(EmitRows, AddRoundsOnceAndKeepsItsTail) {
  TestStep step(TestStep::plain(5));
  Random random;
  for (DType type : {DType::F32, DType::BF16}) {
    Array a(type, random.vector(5 * 77)), b(DType::F32, random.vector(5 * 80));
    RowwiseDesc desc =
        addition(rowsOf(77, type), {RowSpace::Token, 77, 80, DType::F32}, {RowSpace::Token, 77, 79, type});
    expectSameBits({"add", desc}, step.step, {filled(type, 5 * 79)},
                   [&](std::vector<Array> &r) { return std::vector<void *>{a.data(), b.data(), r[0].data()}; });
  }
}

TEST_P(EmitRows, ClipKeepsNaN) {
  TestStep step(TestStep::plain(3));
  for (DType type : {DType::F32, DType::BF16}) {
    Array x(type, Random().vector(3 * 41));
    x.set(5, std::numeric_limits<float>::quiet_NaN());
    x.set(6, -std::numeric_limits<float>::infinity());
    expectSameBits({"clip", clip(rowsOf(41, type), rowsOf(41, type), 0.3)}, step.step, {filled(type, 3 * 41)},
                   [&](std::vector<Array> &r) { return std::vector<void *>{x.data(), r[0].data()}; });
  }
}

TEST_P(EmitRows, RmsNormHasItsSixtyFourChains) {
  TestStep step(TestStep::plain(3));
  Random random;
  for (int64_t width : {7, 33, 64, 130, 1024}) {
    Array x(DType::F32, random.vector(3 * width)), weight(DType::BF16, random.vector(width));
    RmsNormDesc desc{rowsOf(width), rowsOf(width), 1e-5, DType::BF16};
    expectSameBits({"norm" + std::to_string(width), desc}, step.step, {filled(DType::F32, 3 * width)},
                   [&](std::vector<Array> &r) { return std::vector<void *>{x.data(), weight.data(), r[0].data()}; });
  }
}

TEST_P(EmitRows, RmsNormOfEachHead) {
  TestStep step(TestStep::plain(3));
  Random random;
  for (int64_t width : {7, 64, 130}) {
    constexpr int64_t heads = 3;
    Array x(DType::F32, random.vector(3 * heads * width)), weight(DType::BF16, random.vector(width));
    RmsNormDesc desc{rowsOf(heads * width), rowsOf(heads * width), 1e-5, DType::BF16, heads};
    expectSameBits({"head_norm" + std::to_string(width), desc}, step.step, {filled(DType::F32, 3 * heads * width)},
                   [&](std::vector<Array> &r) { return std::vector<void *>{x.data(), weight.data(), r[0].data()}; });
  }
}

TEST_P(EmitRows, EmbedReadsIdsAndEarlierSamples) {
  TestStep step(std::vector<Sequence>{{0, 3}, {4, 1}});
  std::vector<int32_t> ids = {5, 0, 10, -2}, last = {3, 9};
  step.step.token_ids = ids.data();
  step.step.earlier_samples = last.data();
  step.step.earlier_rows = int64_t(last.size());
  Array table(DType::BF16, Random().vector(11 * 37));
  EmbedDesc desc{11, 37, DType::BF16, rowsOf(37)};
  expectSameBits({"embed", desc}, step.step, {filled(DType::F32, 4 * 37)},
                 [&](std::vector<Array> &r) { return std::vector<void *>{table.data(), &step.step, r[0].data()}; });
}

TEST_P(EmitRows, EmbedRefusesAnIdOutsideTheTable) {
  TestStep step(TestStep::plain(2));
  std::vector<int32_t> ids = {1, 11};
  step.step.token_ids = ids.data();
  Array table(DType::F32, Random().vector(11 * 4)), y = filled(DType::F32, 8);
  Expected<CompiledKernel> kernel = compileForTarget({"embed", EmbedDesc{11, 4, DType::F32, rowsOf(4)}});
  ASSERT_TRUE(kernel) << kernel.error().text();
  EXPECT_EQ(launch(*kernel, step.step, {table.data(), &step.step, y.data()}, 1).status, 1);
  EXPECT_EQ(y[4], untouched);
}

TEST_P(EmitRows, LookupIsOfIdsThatTokenIdsFinds) {
  TestStep step(std::vector<Sequence>{{0, 3}, {4, 1}});
  std::vector<int32_t> ids = {5, 0, 10, -2}, last = {3, 9}, found = {5, 0, 10, 9};
  step.step.token_ids = ids.data();
  step.step.earlier_samples = last.data();
  step.step.earlier_rows = int64_t(last.size());
  expectSameBits({"token_ids", TokenIdsDesc()}, step.step, {filled(DType::I32, 4)},
                 [&](std::vector<Array> &r) { return std::vector<void *>{&step.step, r[0].data()}; });
  Array table(DType::BF16, Random().vector(11 * 37));
  expectSameBits({"lookup", LookupDesc{11, DType::BF16, rowsOf(37)}}, step.step, {filled(DType::F32, 4 * 37)},
                 [&](std::vector<Array> &r) { return std::vector<void *>{found.data(), table.data(), r[0].data()}; });
}

TEST_P(EmitRows, RowsAreSharedAndComeBack) {
  constexpr int64_t members = 3, quota = 4, width = 19;
  TestStep step(TestStep::plain(3));
  step.step.output_rows = 2;
  step.step.entering_rows = 1;
  std::vector<int64_t> came = {2, 0, 3, 0, quota, 2 * quota}, returned = {2, 2, 2, 0, 2, 4};
  for (RowSpace space : {RowSpace::Token, RowSpace::Output, RowSpace::Entering})
    expectSameBits({"share_plan", SharePlanDesc{space, members}}, step.step,
                   {filled(DType::I64, 2 * members), filled(DType::I64, 2 * members)},
                   [&](std::vector<Array> &r) { return std::vector<void *>{r[0].data(), r[1].data()}; });
  expectSameBits({"share_return", ShareReturnDesc{members}}, step.step, {filled(DType::I64, 2 * members)},
                 [&](std::vector<Array> &r) { return std::vector<void *>{came.data(), r[0].data()}; });
  TestStep arrived(TestStep::plain(5));
  for (DType type : {DType::F32, DType::BF16}) {
    Array apart(type, Random().vector(members * quota * width)), parts(type, Random().vector(6 * width));
    expectSameBits({"close_gaps", CloseGapsDesc{rowsOf(width, type), members}}, arrived.step, {filled(type, 5 * width)},
                   [&](std::vector<Array> &r) { return std::vector<void *>{apart.data(), came.data(), r[0].data()}; });
    JoinColumnsDesc join{rowsOf(width, type), rowsOf(members * width, type, RowSpace::Output), members};
    expectSameBits({"join_columns", join}, step.step, {filled(type, 2 * members * width)}, [&](std::vector<Array> &r) {
      return std::vector<void *>{parts.data(), returned.data(), r[0].data()};
    });
  }
  std::vector<int32_t> ids(members * quota);
  for (int32_t i = 0; i < members * quota; ++i)
    ids[size_t(i)] = i - 3; // as f32: NaNs, subnormals
  expectSameBits({"close_gaps", CloseGapsDesc{rowsOf(1), members}}, arrived.step, {filled(DType::F32, 5)},
                 [&](std::vector<Array> &r) { return std::vector<void *>{ids.data(), came.data(), r[0].data()}; });
}

// Of four rows two choices each, some none: their parts come back, and make the output of each choice.
TEST_P(EmitRows, PartsOfOutputsComeBackAndAreAdded) {
  constexpr int64_t members = 4, top = 2, width = 19, choices = 5;
  TestStep step(TestStep::plain(4));
  std::vector<int32_t> slots = {3, -1, 0, 2, -1, -1, 1, 3};
  expectSameBits(
      {"part_plan", PartPlanDesc{top, members}}, step.step,
      {filled(DType::I32, 4 * 3 * top), filled(DType::I64, 2 * members), filled(DType::I64, 2 * members)},
      [&](std::vector<Array> &r) { return std::vector<void *>{slots.data(), r[0].data(), r[1].data(), r[2].data()}; });
  std::vector<int32_t> routes = {0,  -1, 3,  -1, 0,  -1, 1, 1, 0, 2, 1, 2, //
                                 -1, -1, -1, -1, -1, -1, 3, 3, 1, 3, 3, 4};
  std::vector<int64_t> returned = {choices, choices, choices, choices, 0, choices, 2 * choices, 3 * choices};
  Random random;
  Array parts(DType::F32, random.vector(members * choices * width)), weights(DType::F32, random.vector(4 * top));
  for (DType type : {DType::F32, DType::BF16})
    expectSameBits({"add_parts", AddPartsDesc{rowsOf(width), rowsOf(width, type), top, members}}, step.step,
                   {filled(type, choices * width)}, [&](std::vector<Array> &r) {
                     return std::vector<void *>{parts.data(), returned.data(), routes.data(), weights.data(),
                                                r[0].data()};
                   });
}

TEST_P(EmitRows, RotaryRotatesPairsOfBothKinds) {
  TestStep step(std::vector<Sequence>{{3, 2}, {0, 1}});
  Random random;
  // Halves of 22 and of 70 pairs, so that the widest vectors are filled, too.
  for (int64_t turned : {44, 140})
    for (DType type : {DType::F32, DType::BF16})
      for (bool interleaved : {false, true}) {
        const int64_t head = turned + 16, row = 3 * head;
        RotaryDesc desc{rowsOf(row, type), rowsOf(row, type), 3, head, 5, turned, 8, interleaved};
        Array x(type, random.vector(3 * row)), table(DType::F32, random.vector(8 * turned));
        expectSameBits({"rotary", desc}, step.step, {filled(type, 3 * row)}, [&](std::vector<Array> &r) {
          return std::vector<void *>{x.data(), table.data(), &step.step, r[0].data()};
        });
      }
}

TEST_P(EmitRows, RotaryRefusesAPositionOutsideTheTable) {
  const RotaryDesc desc{rowsOf(4), rowsOf(4), 1, 4, 0, 4, 8, false};
  Expected<CompiledKernel> kernel = compileForTarget({"rotary", desc});
  ASSERT_TRUE(kernel) << kernel.error().text();
  for (int32_t position : {0, 7, 8, -1}) {
    const bool isInside = position >= 0 && position < 8;
    TestStep step(TestStep::plain(1));
    step.positions = {position};
    step.step.positions = step.positions.data();
    Array x(DType::F32, Random().vector(4)), table(DType::F32, Random().vector(9 * 4)), y = filled(DType::F32, 4);
    EXPECT_EQ(launch(*kernel, step.step, {x.data(), table.data(), &step.step, y.data()}, 1).status, isInside ? 0 : 1)
        << position;
    EXPECT_EQ(y[0] == untouched, !isInside) << position;
  }
}

TEST_P(EmitRows, AppendWritesTheStepsSlots) {
  TestStep step(std::vector<Sequence>{{62, 5}, {0, 2}}, 1);
  Random random;
  Array a(DType::F32, random.vector(7 * 20)), b(DType::F32, random.vector(7 * 33));
  AppendDesc desc{{{RowSpace::Token, 17, 20, DType::F32}, rowsOf(33)}, {DType::F32, DType::BF16}, 1};
  int64_t slots = TestStep::pageCount * 64;
  expectSameBits({"append", desc}, step.step, {filled(DType::F32, slots * 17), filled(DType::BF16, slots * 33)},
                 [&](std::vector<Array> &r) {
                   return std::vector<void *>{a.data(), b.data(), r[0].data(), r[1].data(), &step.step};
                 });
}

TEST_P(EmitRows, GatedActUsesTheFixedExp) {
  TestStep step(TestStep::plain(4));
  Random random;
  std::vector<float> values = random.vector(4 * 90);
  for (float &v : values)
    v *= 100;
  Array x(DType::F32, values);
  expectSameBits({"gated", gatedSilu(rowsOf(90), rowsOf(45))}, step.step, {filled(DType::F32, 4 * 45)},
                 [&](std::vector<Array> &r) { return std::vector<void *>{x.data(), x.at(45), r[0].data()}; });
}

TEST_P(EmitRows, EachStepRoundsToItsType) {
  TestStep step(TestStep::plain(3));
  Random random;
  Array a(DType::BF16, random.vector(3 * 41)), b(DType::F32, random.vector(3 * 41));
  RowwiseDesc desc{{rowsOf(41, DType::BF16), rowsOf(41)}, {}, rowsOf(41)};
  ElementTerm product = desc.list.append(ElementOp::Mul, DType::BF16, ElementTerm::input(0), ElementTerm::input(1));
  ElementTerm rounded = desc.list.append(ElementOp::Round, DType::BF16, ElementTerm::input(1));
  desc.list.append(ElementOp::Add, DType::F32, product, rounded);
  expectSameBits({"steps", desc}, step.step, {filled(DType::F32, 3 * 41)},
                 [&](std::vector<Array> &r) { return std::vector<void *>{a.data(), b.data(), r[0].data()}; });
}

TEST_P(EmitRows, OutputRowsAndCaptureCopy) {
  TestStep step(TestStep::plain(6));
  std::vector<int32_t> outputs = {1, 5};
  step.step.outputs = outputs.data();
  step.step.output_rows = 2;
  Array x(DType::F32, Random().vector(6 * 19));
  OutputRowsDesc wanted{rowsOf(19), rowsOf(19, DType::F32, RowSpace::Output)};
  expectSameBits({"output", wanted}, step.step, {filled(DType::F32, 2 * 19)},
                 [&](std::vector<Array> &r) { return std::vector<void *>{x.data(), &step.step, r[0].data()}; });
  expectSameBits({"capture", CaptureDesc{rowsOf(19)}}, step.step, {filled(DType::F32, 2 * 6 * 19)},
                 [&](std::vector<Array> &r) {
                   step.step.capture_hidden = r[0].data();
                   return std::vector<void *>{x.data(), &step.step, ordinal(1)};
                 });
}

} // namespace
} // namespace k2c::test

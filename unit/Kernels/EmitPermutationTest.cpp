//===- EmitPermutationTest.cpp - Emitted permutation, permute, unpermute, grouped linears -----------------===//
#include "EmitTest.h"
#include "Lists.h"
#include <numeric>

namespace k2c::test {
namespace {

class EmitPermutation : public EmitTest {};
K2C_EMIT_TARGETS(EmitPermutation);

/// Routes of `tokens` tokens over `experts` experts, distinct within a token; every seventh is absent.
std::vector<int32_t> routes(int64_t tokens, int64_t topK, int64_t experts) {
  Random random(7);
  std::vector<int32_t> list;
  for (int64_t t = 0; t < tokens; ++t) {
    std::vector<int32_t> all(experts);
    std::iota(all.begin(), all.end(), 0);
    for (int64_t k = 0; k < topK; ++k) {
      std::swap(all[k], all[k + random.below(experts - k)]);
      list.push_back(t % 5 == 4 || list.size() % 7 == 6 ? -1 : all[k]);
    }
  }
  return list;
}

struct Routed {
  static constexpr int64_t topK = 4;
  int64_t tokens, experts;
  TestStep step;
  std::vector<int32_t> chosen, permutation;

  Routed(int64_t tokens, int64_t experts)
      : tokens(tokens), experts(experts), step(TestStep::plain(tokens)), chosen(routes(tokens, topK, experts)),
        permutation(experts + 1 + 2 * tokens * topK, -9) {
    EXPECT_TRUE(evaluateWith(PermutationDesc{experts, topK}, step.step, {chosen.data(), permutation.data()}));
  }
};

TEST_P(EmitPermutation, SortsRoutesStably) {
  Routed routed(9, 24);
  Expected<CompiledKernel> kernel = compileForTarget({"permutation", PermutationDesc{24, Routed::topK}});
  ASSERT_TRUE(kernel) << kernel.error().text();
  std::vector<int32_t> permutation(routed.permutation.size(), -9);
  EXPECT_EQ(launch(*kernel, routed.step.step, {routed.chosen.data(), permutation.data()}, 2).status, 0);
  EXPECT_EQ(permutation, routed.permutation);
}

/// Of these routes, whatever number of workers sorts them.
void checkSorted(const std::vector<int32_t> &chosen, int64_t experts) {
  constexpr int64_t topK = 4;
  const PermutationDesc desc{experts, topK};
  TestStep step(TestStep::plain(int64_t(chosen.size()) / topK));
  const std::vector<int32_t> empty(experts + 1 + 2 * chosen.size(), -9);
  std::vector<int32_t> routes = chosen, wanted = empty;
  ASSERT_TRUE(evaluateWith(desc, step.step, {routes.data(), wanted.data()}));
  Expected<CompiledKernel> kernel = compileForTarget({"permutation", desc});
  ASSERT_TRUE(kernel) << kernel.error().text();
  for (int64_t workers : {1, 3}) {
    std::vector<int32_t> permutation = empty;
    EXPECT_EQ(launch(*kernel, step.step, {routes.data(), permutation.data()}, workers).status, 0);
    EXPECT_EQ(permutation, wanted) << chosen.size() << " routes, " << workers << " workers";
  }
}

TEST_P(EmitPermutation, SortsAnyNumberOfRoutes) {
  for (int64_t tokens : {0, 1, 17, 600})
    checkSorted(routes(tokens, 4, 24), 24);
}

TEST_P(EmitPermutation, SortsRoutesThatOneExpertTakes) {
  checkSorted(std::vector<int32_t>(600 * 4, 5), 24);
  checkSorted(std::vector<int32_t>(40 * 4, -1), 24);
}

TEST_P(EmitPermutation, SortsRoutesOfMoreExpertsThanSharedMemoryHolds) { checkSorted(routes(90, 4, 2048), 2048); }

TEST_P(EmitPermutation, RefusesAnExpertOutOfRange) {
  Routed routed(2, 24);
  Expected<CompiledKernel> kernel = compileForTarget({"permutation", PermutationDesc{24, Routed::topK}});
  ASSERT_TRUE(kernel) << kernel.error().text();
  routed.chosen[3] = 24;
  EXPECT_EQ(launch(*kernel, routed.step.step, {routed.chosen.data(), routed.permutation.data()}, 1).status, 1);
}

TEST_P(EmitPermutation, GatherCopiesEachTokenToItsSlots) {
  Routed routed(7, 12);
  Array x(DType::F32, Random().vector(7 * 21)), y(DType::F32, std::vector<float>(28 * 21, -77.0f));
  PermuteDesc desc{rowsOf(21), rowsOf(21, DType::F32, RowSpace::Slot), 12, Routed::topK};
  expectSameBits({"permute", desc}, routed.step.step, {y}, [&](std::vector<Array> &r) {
    return std::vector<void *>{x.data(), routed.permutation.data(), r[0].data()};
  });
}

TEST_P(EmitPermutation, CombineKeepsTheTreeOfExperts) {
  for (DType type : {DType::F32, DType::BF16}) {
    Routed routed(33, 24);
    Array y(type, std::vector<float>(33 * 50, -77.0f));
    UnpermuteDesc desc{rowsOf(50, type, RowSpace::Slot), rowsOf(50, type), 24, Routed::topK, combineLeaves(24)};
    std::vector<float> values = Random().vector(33 * Routed::topK * 50);
    Array slots(type, 0);
    expectSameBits({"unpermute", desc}, routed.step.step, {y}, [&](std::vector<Array> &r) {
      slots = Array(type, values);
      return std::vector<void *>{slots.data(), routed.permutation.data(), routed.chosen.data(), r[0].data()};
    });
  }
}

/// A grouped linear; slots beyond the permutation's end stay untouched.
void checkGrouped(const std::string &name, int64_t tokens, bool gatedSilu, bool weighted, int64_t experts = 12,
                  int64_t k = 70) {
  int64_t n = gatedSilu ? 2 * 20 : 37, columns = gatedSilu ? 20 : 37;
  Routed routed(tokens, experts);
  Random random;
  LinearDesc desc;
  desc.x = rowsOf(k, DType::F32, RowSpace::Slot);
  desc.y = rowsOf(columns, DType::F32, RowSpace::Slot);
  desc.w = Matrix{DType::BF16, experts, n, k, gatedSilu ? 2 : 1};
  desc.order = {k, leafCount(k)};
  if (gatedSilu)
    desc.epilogue = epilogueOf(DType::F32, {LinearDesc::UpSum});
  if (weighted)
    desc.epilogue = epilogueOf(DType::F32, {LinearDesc::SlotWeight});
  desc.grouped = true;
  desc.slotsPerToken = Routed::topK;
  Array x(DType::F32, random.vector(tokens * Routed::topK * k));
  Array w = pack(desc.w, [&](int64_t, int64_t, int64_t) { return random(); }, weightsOfTarget());
  ExpertTable table(layoutOf(desc.w, weightsOfTarget()), w.data());
  Array slotWeights(DType::F32, random.vector(tokens * Routed::topK));
  Array y(DType::F32, std::vector<float>(tokens * Routed::topK * columns, -77.0f));
  expectSameBits({name, desc}, routed.step.step, {y}, [&](std::vector<Array> &r) {
    std::vector<void *> args = {x.data(), table.data()};
    if (weighted)
      args.push_back(slotWeights.data());
    args.push_back(routed.permutation.data());
    args.push_back(r[0].data());
    return args;
  });
}

TEST_P(EmitPermutation, GroupedLinearGatesOnPanels) {
  for (int64_t tokens : {1, 40})
    checkGrouped("gate_up", tokens, true, false);
}

TEST_P(EmitPermutation, GroupedLinearWeighsTheAccumulator) { checkGrouped("down", 40, false, true); }

TEST_P(EmitPermutation, GroupedLinearStagesRowsThatCollideInTheCache) {
  checkGrouped("blocks", 260, false, true, /*experts=*/Routed::topK + 1, /*k=*/1024);
}

// On a GPU experts without slots are skipped 32 at a time, and CTAs take turns over the panels of those that have some.
TEST_P(EmitPermutation, GroupedLinearOfManyExperts) {
  for (int64_t tokens : {1, 3})
    checkGrouped("many", tokens, false, true, /*experts=*/100, /*k=*/64);
  checkGrouped("leaves", 2, true, false, /*experts=*/33, /*k=*/4096);
}

// Whoever runs the step finds the expert by its place in the table; the other experts' rows are computed.
TEST_P(EmitPermutation, GroupedLinearNamesAnAbsentExpert) {
  constexpr int64_t k = 40, n = 37, tokens = 3, experts = 12;
  Routed routed(tokens, experts);
  LinearDesc desc;
  desc.x = rowsOf(k, DType::F32, RowSpace::Slot);
  desc.y = rowsOf(n, DType::F32, RowSpace::Slot);
  desc.w = {DType::BF16, experts, n, k};
  desc.order = {k, leafCount(k)};
  desc.grouped = true;
  desc.slotsPerToken = Routed::topK;
  Array x(DType::F32, Random().vector(tokens * Routed::topK * k)), y(DType::F32, tokens * Routed::topK * n);
  Array w = pack(desc.w, [](int64_t, int64_t, int64_t) { return 1.0f; }, weightsOfTarget());
  ExpertTable table(layoutOf(desc.w, weightsOfTarget()), w.data());
  const int32_t wanted = routed.chosen[5];
  table.remove(wanted);
  Expected<CompiledKernel> kernel = compileForTarget({"absent", desc});
  ASSERT_TRUE(kernel) << kernel.error().text();
  const LaunchResult result =
      launch(*kernel, routed.step.step, {x.data(), table.data(), routed.permutation.data(), y.data()}, 2);
  EXPECT_EQ(result.status, K2RT_STATUS_ABSENT_EXPERT);
  EXPECT_EQ(result.absent, static_cast<void **>(table.data()) + wanted);
  for (int64_t expert = 0; expert < experts; ++expert)
    for (int64_t slot = routed.permutation[expert]; slot < routed.permutation[expert + 1]; ++slot)
      EXPECT_EQ(y[slot * n] != 0, expert != wanted) << slot;
}

TEST_P(EmitPermutation, HeadLinearTakesRowsOfItsForm) {
  TestStep step(std::vector<Sequence>{{0, 3, K2RT_FORM_EXPANDED},
                                      {0, 2, K2RT_FORM_ABSORBED},
                                      {0, 17, K2RT_FORM_EXPANDED},
                                      {5, 16, K2RT_FORM_ABSORBED}});
  Random random;
  int64_t rows = step.rows(), heads = 3, k = 40, n = 44;
  for (FormFilter filter : {FormFilter::All, FormFilter::Expanded, FormFilter::Absorbed}) {
    HeadLinearDesc desc{
        rowsOf(heads * 50), rowsOf(heads * n), heads, 50, {DType::BF16, heads, n, k, 1}, {k, 1}, filter};
    Array x(DType::F32, random.vector(rows * heads * 50)), y(DType::F32, std::vector<float>(rows * heads * n, -77.0f));
    Array w = pack(desc.w, [&](int64_t, int64_t, int64_t) { return random(); }, weightsOfTarget());
    expectSameBits({"head", desc}, step.step, {y},
                   [&](std::vector<Array> &r) { return std::vector<void *>{x.data(), w.data(), r[0].data()}; });
  }
}

} // namespace
} // namespace k2c::test

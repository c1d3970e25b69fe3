//===- EvaluatePermutationTest.cpp - Permutation, grouped linears, N5's tree ---------===//

#include "Lists.h"
#include "TestStep.h"
#include <algorithm>
#include <map>

using namespace k2c;
using namespace k2c::test;

namespace {

struct Moe {
  static constexpr int64_t experts = 12, topK = 4, rows = 9, width = 10;
  std::vector<int32_t> chosen;
  std::vector<int32_t> permutation = std::vector<int32_t>(experts + 1 + 2 * rows * topK, -7);
  TestStep step{TestStep::plain(rows)};

  Moe() {
    Random random(8);
    for (int64_t r = 0; r < rows; ++r) {
      std::vector<int32_t> all(experts);
      for (int64_t e = 0; e < experts; ++e)
        all[e] = int32_t(e);
      for (int64_t k = 0; k < topK; ++k)
        std::swap(all[k], all[k + random.below(experts - k)]);
      chosen.insert(chosen.end(), all.begin(), all.begin() + topK);
    }
    chosen[5] = -1; // a route that was dropped
    std::fill(chosen.begin() + 8, chosen.begin() + 12, -1);
    EXPECT_TRUE(evaluateWith(PermutationDesc{experts, topK}, step.step, {chosen.data(), permutation.data()}));
  }
  const int32_t *offsets() const { return permutation.data(); }
  const int32_t *routeOfSlot() const { return permutation.data() + experts + 1; }
  const int32_t *slotOfRoute() const { return routeOfSlot() + rows * topK; }
};

TEST(Permutation, IsAStableSortByExpert) {
  Moe moe;
  EXPECT_EQ(moe.offsets()[Moe::experts], Moe::rows * Moe::topK - 5);
  for (int64_t e = 0; e < Moe::experts; ++e)
    for (int64_t s = moe.offsets()[e]; s < moe.offsets()[e + 1]; ++s) {
      EXPECT_EQ(moe.chosen[moe.routeOfSlot()[s]], e);
      EXPECT_EQ(moe.slotOfRoute()[moe.routeOfSlot()[s]], s);
      EXPECT_TRUE(s == moe.offsets()[e] || moe.routeOfSlot()[s - 1] < moe.routeOfSlot()[s]);
    }
  EXPECT_EQ(moe.slotOfRoute()[5], -1);
}

TEST(Permutation, RefusesAnExpertThatDoesNotExist) {
  Moe moe;
  moe.chosen[3] = Moe::experts;
  Status status = evaluateWith(PermutationDesc{Moe::experts, Moe::topK}, moe.step.step,
                               {moe.chosen.data(), moe.permutation.data()});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "kernel: expert 12 of 12");
}

TEST(GroupedLinear, ComputesEachSlotWithItsExpertAndWeight) {
  Moe moe;
  constexpr int64_t n = 35, k = Moe::width;
  Random random(4);
  Array x(DType::F32, random.vector(Moe::rows * k)), slots(DType::F32, Moe::rows * Moe::topK * k);
  PermuteDesc permute{rowsOf(k), rowsOf(k, DType::F32, RowSpace::Slot), Moe::experts, Moe::topK};
  ASSERT_TRUE(evaluateWith(permute, moe.step.step, {x.data(), moe.permutation.data(), slots.data()}));
  LinearDesc d;
  d.x = permute.y;
  d.y = rowsOf(n, DType::F32, RowSpace::Slot);
  d.w = {DType::BF16, Moe::experts, n, k, 1};
  d.order = {k, 1};
  d.epilogue = epilogueOf(DType::F32, {LinearDesc::Bias, LinearDesc::SlotWeight});
  d.biasType = DType::F32;
  d.grouped = true;
  d.slotsPerToken = Moe::topK;
  Array w = pack(d.w, [&](int64_t, int64_t, int64_t) { return random(); });
  Array bias(DType::F32, random.vector(Moe::experts * n));
  Array weights(DType::F32, random.vector(Moe::rows * Moe::topK)), y(DType::F32, Moe::rows * Moe::topK * n);
  ExpertTable experts(d.w, w.data());
  const std::initializer_list<void *> args = {slots.data(),   experts.data(),         bias.data(),
                                              weights.data(), moe.permutation.data(), y.data()};
  ASSERT_TRUE(evaluateWith(d, moe.step.step, args));
  for (int64_t route = 0; route < Moe::rows * Moe::topK; ++route)
    for (int64_t c = 0; c < n && moe.slotOfRoute()[route] >= 0; ++c) {
      float sum = 0;
      for (int64_t i = 0; i < k; ++i)
        sum = std::fma(x[route / Moe::topK * k + i], w[elementOf(d.w, moe.chosen[route], c, i)], sum);
      float expected = (sum + bias[moe.chosen[route] * n + c]) * weights[route];
      EXPECT_EQ(y[moe.slotOfRoute()[route] * n + c], expected);
    }
}

TEST(GroupedLinear, RefusesSlotsOfAnAbsentExpert) {
  Moe moe;
  LinearDesc d;
  d.x = d.y = rowsOf(Moe::width, DType::F32, RowSpace::Slot);
  d.w = {DType::BF16, Moe::experts, Moe::width, Moe::width, 1};
  d.order = {Moe::width, 1};
  d.grouped = true;
  d.slotsPerToken = Moe::topK;
  Array slots(DType::F32, Moe::rows * Moe::topK * Moe::width), w(DType::BF16, d.w.count * d.w.n * d.w.k), y = slots;
  ExpertTable experts(d.w, w.data());
  for (int64_t e = 0; e < Moe::experts; ++e)
    experts.remove(e);
  Status status = evaluateWith(d, moe.step.step, {slots.data(), experts.data(), moe.permutation.data(), y.data()});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "kernel: expert 0 has slots, its weights are absent");
}

/// Node sums merged along N5's tree, for any owner of each leaf: a node sums the maximal subtrees it owns, then the
/// remaining merges happen at the receiver. Written against N5's text, apart from the library.
struct Placement {
  std::vector<int> owner; ///< of each leaf
  const std::map<int64_t, float> &outputs;
  int64_t leafWidth;
  int shipped = 0; ///< rows sent: one a maximal subtree that has experts

  bool ownedByOne(int64_t first, int64_t count) const {
    return std::all_of(owner.begin() + first, owner.begin() + first + count, [&](int o) { return o == owner[first]; });
  }
  std::pair<bool, float> sum(int64_t first, int64_t count, DType type, bool inside) {
    bool whole = ownedByOne(first, count);
    std::pair<bool, float> result{false, 0};
    auto add = [&](float value) {
      result.second = result.first ? result.second + value : value;
      if (result.first && type == DType::BF16)
        result.second = ofBf16(bf16Of(result.second));
      result.first = true;
    };
    if (count == 1) {
      for (int64_t e = first * leafWidth; e < (first + 1) * leafWidth; ++e)
        if (outputs.count(e))
          add(outputs.at(e));
    } else {
      for (int64_t half : {first, first + count / 2}) {
        std::pair<bool, float> part = sum(half, count / 2, type, inside || whole);
        if (part.first)
          add(part.second);
      }
    }
    shipped += whole && !inside && result.first;
    return result;
  }
};

float combined(const std::map<int64_t, float> &outputs, int64_t experts, DType type) {
  int64_t topK = int64_t(outputs.size());
  std::vector<int32_t> chosen, permutation(experts + 1 + 2 * topK);
  for (auto it = outputs.rbegin(); it != outputs.rend(); ++it) // an order that is not the tree's
    chosen.push_back(int32_t(it->first));
  TestStep step(TestStep::plain(1));
  EXPECT_TRUE(evaluateWith(PermutationDesc{experts, topK}, step.step, {chosen.data(), permutation.data()}));
  Array x(type, topK), y(type, 1);
  for (int64_t route = 0; route < topK; ++route)
    x.set(permutation[experts + 1 + topK + route], outputs.at(chosen[route]));
  UnpermuteDesc d{rowsOf(1, type, RowSpace::Slot), rowsOf(1, type), experts, topK, combineLeaves(experts)};
  EXPECT_TRUE(evaluateWith(d, step.step, {x.data(), permutation.data(), chosen.data(), y.data()}));
  return y[0];
}

TEST(Unpermute, AnyPartitionOfExpertsGivesTheSameBits) {
  Random random(21);
  for (int64_t experts : {12, 40, 384})
    for (DType type : {DType::F32, DType::BF16})
      for (int trial = 0; trial < 20; ++trial) {
        std::map<int64_t, float> outputs;
        while (outputs.size() < 8)
          outputs[random.below(experts)] = ofBf16(bf16Of(random()));
        float expected = combined(outputs, experts, type);
        int64_t leaves = combineLeaves(experts);
        for (int nodes : {1, 2, 3, 8}) {
          Placement scattered{{}, outputs, experts / leaves}, aligned{{}, outputs, experts / leaves};
          for (int64_t leaf = 0; leaf < leaves; ++leaf) {
            scattered.owner.push_back(int(random.below(nodes)));
            aligned.owner.push_back(int(leaf * nodes / leaves));
          }
          EXPECT_EQ(scattered.sum(0, leaves, type, false).second, expected);
          EXPECT_EQ(aligned.sum(0, leaves, type, false).second, expected);
          if (nodes != 3 && leaves % nodes == 0) {
            EXPECT_LE(aligned.shipped, nodes); // one row a node
          }
        }
      }
}

TEST(Unpermute, TheTreeIsNotASequentialSum) {
  // Leaves of three: {0, 1, 2} and {3, 4, 5}. (2^24 + 1) + (1 + 1) = 2^24 + 2; in sequence each 1 is lost.
  std::map<int64_t, float> outputs{{0, 0x1p24f}, {1, 1}, {3, 1}, {5, 1}};
  EXPECT_EQ(combined(outputs, 12, DType::F32), 0x1p24f + 2);
}

TEST(Unpermute, RoundsEachAddToTheActivationType) {
  std::map<int64_t, float> outputs{{0, 256}, {1, 1}, {2, 1}}; // bf16: 256 + 1 = 256 (tie to even), twice
  EXPECT_EQ(combined(outputs, 12, DType::BF16), 256);
  EXPECT_EQ(combined(outputs, 12, DType::F32), 258);
}

TEST(Unpermute, ATokenWithoutExpertsIsZero) {
  Moe moe;
  Random random(5);
  Array x(DType::F32, random.vector(Moe::rows * Moe::topK * Moe::width)), y(DType::F32, Moe::rows * Moe::width);
  UnpermuteDesc d{rowsOf(Moe::width, DType::F32, RowSpace::Slot), rowsOf(Moe::width), Moe::experts, Moe::topK,
                  combineLeaves(Moe::experts)};
  ASSERT_TRUE(evaluateWith(d, moe.step.step, {x.data(), moe.permutation.data(), moe.chosen.data(), y.data()}));
  for (int64_t i = 0; i < Moe::width; ++i) {
    EXPECT_EQ(y[2 * Moe::width + i], 0.0f);
    EXPECT_NE(y[3 * Moe::width + i], 0.0f);
  }
}

} // namespace

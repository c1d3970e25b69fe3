//===- EmitRoutingTest.cpp - The emitted router has the bits of evaluate() -------------------------===//
#include "EmitTest.h"
#include <limits>

namespace k2c::test {
namespace {

class EmitRouting : public EmitTest {};
K2C_EMIT_TARGETS(EmitRouting);

RoutingDesc routing(int64_t experts, int64_t topK, int64_t groups, int64_t topkGroups, Scoring scoring, bool bias) {
  RoutingDesc d;
  d.logits = rowsOf(experts);
  d.experts = experts;
  d.topK = topK;
  d.groups = groups;
  d.topkGroups = topkGroups;
  d.scoring = scoring;
  d.bias = bias;
  d.scale = 2.5;
  return d;
}

/// Logits with ties, NaN and infinities.
Array logitsOf(int64_t rows, int64_t experts) {
  std::vector<float> values = Random(9).vector(rows * experts);
  for (float &v : values)
    v = std::round(v * 16) / 4;
  values[3] = values[experts + 1] = std::numeric_limits<float>::quiet_NaN();
  values[2 * experts] = std::numeric_limits<float>::infinity();
  values[2 * experts + 5] = -std::numeric_limits<float>::infinity();
  return Array(DType::F32, values);
}

/// Every expert in some slot, in others any expert or none: some twice on a node, some on several.
std::vector<int32_t> heldBy(const RoutingDesc &d) {
  Random random(6);
  std::vector<int32_t> held(d.bound.nodes * d.bound.slots, -1);
  for (int64_t slot = 0; slot < int64_t(held.size()); ++slot)
    held[slot] = int32_t(slot < d.experts ? slot : random.below(3) == 0 ? -1 : random.below(d.experts));
  for (size_t slot = 0; slot < held.size(); ++slot)
    std::swap(held[slot], held[random.below(int64_t(held.size()))]);
  return held;
}

/// Runs 6 rows; results are ids (compared as bits), weights and the captures of both.
void check(const RoutingDesc &d, k2rt_ir_step forced = {}) {
  TestStep step(TestStep::plain(6));
  step.step.forced_experts = forced.forced_experts;
  step.step.forced_weights = forced.forced_weights;
  Array logits = logitsOf(6, d.experts), bias(DType::F32, Random(2).vector(d.experts));
  std::vector<int32_t> held = d.bound.isBound() ? heldBy(d) : std::vector<int32_t>();
  Array out(DType::F32, std::vector<float>(6 * d.topK, -77.0f)),
      captured(DType::F32, std::vector<float>(12 * d.topK, -7.0f));
  expectSameBits({"routing", d}, step.step, {out, out, captured, captured}, [&](std::vector<Array> &r) {
    step.step.capture_experts = r[2].data();
    step.step.capture_weights = r[3].data();
    std::vector<void *> args = {logits.data()};
    if (d.bias)
      args.push_back(bias.data());
    args.insert(args.end(), {&step.step, ordinal(1)});
    if (d.bound.isBound())
      args.push_back(held.data());
    args.insert(args.end(), {r[0].data(), r[1].data()});
    return args;
  });
}

TEST_P(EmitRouting, SigmoidWithBiasAndGroups) { check(routing(24, 4, 6, 3, Scoring::Sigmoid, true)); }

TEST_P(EmitRouting, SigmoidWithoutGroups) { check(routing(37, 8, 1, 1, Scoring::Sigmoid, true)); }

TEST_P(EmitRouting, GroupsCountTheirBestOrTwo) {
  RoutingDesc d = routing(40, 3, 5, 2, Scoring::Softmax, false);
  for (d.groupBest = 1; d.groupBest <= 2; ++d.groupBest)
    check(d);
}

TEST_P(EmitRouting, SoftmaxUnnormalised) {
  RoutingDesc d = routing(16, 2, 1, 1, Scoring::Softmax, false);
  d.normalize = false;
  check(d);
}

TEST_P(EmitRouting, ForcedRoutesKeepTheArithmetic) {
  RoutingDesc d = routing(24, 3, 6, 3, Scoring::Sigmoid, true);
  float none = std::numeric_limits<float>::quiet_NaN();
  std::vector<int32_t> experts(2 * 6 * 3, -1);
  std::vector<float> weights(2 * 6 * 3, none);
  for (int64_t row : {0, 2, 3}) {
    experts[18 + row * 3] = int32_t(row * 5 + 1);
    experts[18 + row * 3 + 1] = row == 2 ? K2RT_ROUTE_NONE : 23;
    experts[18 + row * 3 + 2] = int32_t(row);
    weights[18 + row * 3] = row == 3 ? 0.25f : none;
  }
  std::fill_n(&experts[18 + 4 * 3], 3, K2RT_ROUTE_NONE); // row 4 has no expert at all
  k2rt_ir_step forced = {};
  forced.forced_experts = experts.data();
  check(d, forced);
  forced.forced_weights = weights.data();
  check(d, forced);
}

TEST_P(EmitRouting, BoundToTheBestNodes) {
  RoutingDesc d = routing(37, 5, 1, 1, Scoring::Sigmoid, true);
  for (int64_t most : {1, 2, 3}) {
    d.bound = {4, 13, most, 0};
    check(d);
  }
}

TEST_P(EmitRouting, BoundToNodesWithinGroups) {
  RoutingDesc d = routing(24, 3, 6, 3, Scoring::Softmax, false);
  d.bound = {3, 8, 2, 0};
  check(d);
  d.bound = {6, 5, 1, 0.03125};
  check(d);
}

TEST_P(EmitRouting, ChoicesAwayFromHomeFall) {
  RoutingDesc d = routing(40, 6, 1, 1, Scoring::Sigmoid, true);
  d.bound = {5, 9, 0, 0.25};
  check(d);
  d.bound = {5, 9, 3, 1};
  check(d);
}

TEST_P(EmitRouting, ForcedRoutesKnowNoBound) {
  RoutingDesc d = routing(24, 2, 1, 1, Scoring::Sigmoid, true);
  d.bound = {4, 6, 1, 0.5};
  std::vector<int32_t> experts(2 * 6 * 2);
  for (int32_t i = 0; i < 24; ++i)
    experts[i] = i * 7 % 24;
  k2rt_ir_step forced = {};
  forced.forced_experts = experts.data();
  check(d, forced);
}

TEST_P(EmitRouting, RefusesAForcedExpertOutOfRange) {
  RoutingDesc d = routing(24, 2, 1, 1, Scoring::Sigmoid, false);
  TestStep step(TestStep::plain(1));
  std::vector<int32_t> experts = {1, 24}, out(2);
  step.step.forced_experts = experts.data();
  Array logits(DType::F32, Random().vector(24)), weights(DType::F32, 2);
  Expected<CompiledKernel> kernel = compileForTarget({"routing", d});
  ASSERT_TRUE(kernel) << kernel.error().text();
  EXPECT_EQ(launch(*kernel, step.step, {logits.data(), &step.step, ordinal(0), out.data(), weights.data()}, 1).status,
            1);
}

} // namespace
} // namespace k2c::test

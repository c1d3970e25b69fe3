//===- EvaluateRoutingTest.cpp - Choosing experts: fixtures -------------------===//

#include "TestStep.h"
#include "k2rt/polynomials.h"
#include <cmath>
#include <limits>
#include <numeric>

using namespace k2c;
using namespace k2c::test;

namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct Routes {
  std::vector<int32_t> experts;
  std::vector<float> weights;
};

/// Runs a selection over rows of logits; `prepare` may set forced routes or captures.
Routes route(
    RoutingDesc d, const std::vector<float> &logits, std::vector<float> bias = {},
    const std::function<void(k2rt_ir_step &)> &prepare = [](k2rt_ir_step &) {}, int64_t layer = 0) {
  d.bias = !bias.empty();
  d.logits = rowsOf(d.experts);
  int64_t rows = int64_t(logits.size()) / d.experts;
  TestStep step(TestStep::plain(rows));
  prepare(step.step);
  std::vector<float> x = logits;
  Routes routes{std::vector<int32_t>(rows * d.topK), std::vector<float>(rows * d.topK)};
  void *e = routes.experts.data(), *w = routes.weights.data();
  Status status = d.bias ? evaluateWith(d, step.step, {x.data(), bias.data(), &step.step, ordinal(layer), e, w})
                         : evaluateWith(d, step.step, {x.data(), &step.step, ordinal(layer), e, w});
  EXPECT_TRUE(status);
  return routes;
}

RoutingDesc sigmoid(int64_t experts, int64_t topK) {
  RoutingDesc d;
  d.experts = experts;
  d.topK = topK;
  return d;
}

using Experts = std::vector<int32_t>;

TEST(Routing, WeightsAreNormalisedUnbiasedScoresByFallingWeight) {
  RoutingDesc d = sigmoid(4, 2);
  d.scale = 2.5;
  Routes r = route(d, {0, 2, -1, 1}, {5, 0, 0, 0.5f}); // choices 5.5, 0.88, 0.27, 1.23
  EXPECT_EQ(r.experts, (Experts{3, 0}));               // 0 is chosen by its bias, 3 weighs more
  float s0 = k2rt_sigmoidf(0), s3 = k2rt_sigmoidf(1), divisor = (s0 + s3) + 1e-20f;
  EXPECT_EQ(r.weights, (std::vector<float>{s3 / divisor * 2.5f, s0 / divisor * 2.5f}));
}

TEST(Routing, WithoutNormalisationTheScoreIsTheWeight) {
  RoutingDesc d = sigmoid(3, 1);
  d.normalize = false;
  d.scale = 2;
  EXPECT_EQ(route(d, {-1, 0, -3}).weights[0], 1.0f);
}

TEST(Routing, NegativeBiasesAndAllNegativeChoicesStillChooseDistinctExperts) {
  Routes r = route(sigmoid(5, 3), {-20, -21, -22, -23, -24}, {-3, -2, -1, -4, -5});
  EXPECT_EQ(r.experts, (Experts{0, 1, 2})); // chosen as 2, 1, 0; ordered by weight
  EXPECT_NEAR(r.weights[0] + r.weights[1] + r.weights[2], 1, 1e-6);
}

TEST(Routing, TinyScoresSurviveALargeBias) {
  // sigmoid(-18.42) = 1e-8: lost in 12 + 1e-8, whole in the weight.
  Routes r = route(sigmoid(4, 2), {-18.420681f, -17.7f, 3, 4}, {12, 12, 0, 0});
  EXPECT_EQ(r.experts, (Experts{1, 0}));
  double a = 1 / (1 + std::exp(18.420681)), b = 1 / (1 + std::exp(17.7));
  EXPECT_NEAR(r.weights[0], b / (a + b), 1e-6);
  EXPECT_NEAR(r.weights[1], a / (a + b), 1e-6);
}

TEST(Routing, TiesGoToTheLowerIndex) {
  EXPECT_EQ(route(sigmoid(6, 3), {1, 2, 2, 2, 2, 0}).experts, (Experts{1, 2, 3}));
}

TEST(Routing, NaNComesLast) {
  RoutingDesc d = sigmoid(4, 3);
  d.normalize = false; // a NaN in the sum would make every weight NaN
  EXPECT_EQ(route(d, {nan, -5, nan, -6}).experts, (Experts{1, 3, 0}));
  EXPECT_EQ(route(sigmoid(4, 2), {nan, -5, nan, -6}).experts, (Experts{1, 3}));
  EXPECT_EQ(route(sigmoid(3, 2), {nan, nan, nan}).experts, (Experts{0, 1}));
}

TEST(Routing, GroupsCountTheirTwoBestChoices) {
  RoutingDesc d = sigmoid(8, 2);
  d.groups = 4;
  d.topkGroups = 2;
  d.normalize = false;
  // Group 0 has the best expert but a poor second; groups 1 and 3 win with two good ones.
  EXPECT_EQ(route(d, {4, -9, 1, 1, -9, -9, 2, 0}).experts, (Experts{6, 2}));
  d.topkGroups = 4;
  EXPECT_EQ(route(d, {4, -9, 1, 1, -9, -9, 2, 0}).experts, (Experts{0, 6}));
}

TEST(Routing, TiedGroupsGoToTheLowerIndexAndMaskedGroupsStayOut) {
  RoutingDesc d = sigmoid(6, 2);
  d.groups = 3;
  d.topkGroups = 1;
  EXPECT_EQ(route(d, {-30, -30, 1, 1, 1, 1}).experts, (Experts{2, 3}));
  // All experts of the allowed group are worse than masked ones: still only allowed ones.
  EXPECT_EQ(route(d, {0, 0, 5, -9, -9, -9}, {-8, -8, 0, -1, -9, -9}).experts, (Experts{2, 3}));
}

TEST(Routing, SoftmaxIsOverAllExperts) {
  RoutingDesc d = sigmoid(4, 2);
  d.scoring = Scoring::Softmax;
  d.normalize = false;
  Routes r = route(d, {1, 3, 2, 0});
  EXPECT_EQ(r.experts, (Experts{1, 2}));
  double sum = std::exp(-2.0) + 1 + std::exp(-1.0) + std::exp(-3.0);
  EXPECT_NEAR(r.weights[0], 1 / sum, 1e-6);
  EXPECT_NEAR(r.weights[1], std::exp(-1.0) / sum, 1e-6);
}

TEST(Routing, GroupsCanCountTheirBestChoiceAlone) {
  RoutingDesc d = sigmoid(6, 2);
  d.scoring = Scoring::Softmax;
  d.groupBest = 1;
  d.groups = 3;
  d.topkGroups = 1;
  EXPECT_EQ(route(d, {2.6f, 2.6f, 3, -9, 1, 1}).experts, (Experts{2, 3})); // two good ones count no more than one
}

TEST(Routing, TheNormaliserIsKeptAwayFromZero) {
  Routes r = route(sigmoid(3, 1), {-46.051702f, -60, -60}); // sigmoid = 1e-20
  EXPECT_NEAR(r.weights[0], 0.5f, 1e-5);
}

TEST(Routing, ForcingTheChosenExpertsChangesNoBit) {
  RoutingDesc d = sigmoid(16, 4);
  d.scale = 2.827;
  Random random(2);
  std::vector<float> logits = random.vector(3 * 16), bias = random.vector(16);
  Routes free = route(d, logits, bias);
  std::vector<int32_t> forced(2 * 3 * 4, -1); // layer 1 of two
  for (int i = 0; i < 12; ++i)
    forced[12 + i] = free.experts[i / 4 * 4 + (3 - i % 4)]; // any order
  Routes again = route(d, logits, bias, [&](k2rt_ir_step &s) { s.forced_experts = forced.data(); }, 1);
  EXPECT_EQ(again.experts, free.experts);
  EXPECT_EQ(again.weights, free.weights);
  Routes other = route(d, logits, bias, [&](k2rt_ir_step &s) { s.forced_experts = forced.data(); }, 0);
  EXPECT_EQ(other.experts, free.experts); // -1: not forced
}

TEST(Routing, ForcedWeightsAreUsedAsTheyAre) {
  std::vector<int32_t> experts{3, 1, -1};
  std::vector<float> weights{nan, 0.75f, nan};
  RoutingDesc d = sigmoid(4, 3);
  d.scale = 2;
  std::vector<int32_t> capturedExperts(3);
  std::vector<float> capturedWeights(3);
  Routes r = route(d, {1, 0, 9, 1}, {}, [&](k2rt_ir_step &s) {
    s.forced_experts = experts.data();
    s.forced_weights = weights.data();
    s.capture_experts = capturedExperts.data();
    s.capture_weights = capturedWeights.data();
  });
  float s1 = k2rt_sigmoidf(0), s3 = k2rt_sigmoidf(1);
  EXPECT_EQ(r.experts, (Experts{3, 1, -1}));
  EXPECT_EQ(r.weights, (std::vector<float>{s3 / ((s3 + s1) + 1e-20f) * 2, 0.75f, 0}));
  EXPECT_EQ(capturedExperts, r.experts);
  EXPECT_EQ(capturedWeights, r.weights);
}

TEST(Routing, RefusesAForcedExpertThatDoesNotExist) {
  RoutingDesc d = sigmoid(4, 1);
  d.logits = rowsOf(4);
  TestStep step(TestStep::plain(1));
  std::vector<int32_t> forced{4}, experts(1);
  std::vector<float> logits(4), weights(1);
  step.step.forced_experts = forced.data();
  Status status = evaluateWith(d, step.step, {logits.data(), &step.step, ordinal(0), experts.data(), weights.data()});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(), "kernel: forced expert 4 of 4");
}

/// Experts that are chosen by `choices` alone, ascending, where slots hold `held`: all weigh the same.
Experts chosen(RoutingDesc d, std::vector<int32_t> held, std::vector<float> choices) {
  d.bias = true;
  d.logits = rowsOf(d.experts);
  TestStep step(TestStep::plain(1));
  std::vector<float> logits(d.experts, -200.0f), weights(d.topK); // sigmoid: 0
  Experts experts(d.topK);
  EXPECT_TRUE(evaluateWith(
      d, step.step,
      {logits.data(), choices.data(), &step.step, ordinal(0), held.data(), experts.data(), weights.data()}));
  return experts;
}

RoutingDesc bound(int64_t experts, int64_t topK, int64_t nodes, int64_t slots, int64_t most, double penalty = 0) {
  RoutingDesc d = sigmoid(experts, topK);
  d.bound = {nodes, slots, most, penalty};
  return d;
}

const std::vector<int32_t> inOrder = {0, 1, 2, 3, 4, 5};

TEST(RouteLimit, NodesCountAsManyChoicesAsFallToEach) {
  const std::vector<float> choices = {5, 0, 3, 3, 4, 1};
  EXPECT_EQ(chosen(bound(6, 2, 3, 2, 1), inOrder, choices), (Experts{2, 3}));    // 5 + 0, 3 + 3, 4 + 1
  EXPECT_EQ(chosen(bound(6, 2, 3, 2, 2), inOrder, choices), (Experts{0, 4}));    // 5, 3, 4
  EXPECT_EQ(chosen(bound(6, 3, 3, 2, 2), inOrder, choices), (Experts{0, 2, 3})); // ceil(3 / 2) = 2: 5, 6, 5
}

TEST(RouteLimit, TiesGoToTheLowerNodeAndNaNComesLast) {
  EXPECT_EQ(chosen(bound(6, 2, 3, 2, 1), inOrder, {1, 2, 2, 1, 3, 0}), (Experts{0, 1}));
  EXPECT_EQ(chosen(bound(6, 2, 3, 2, 1), inOrder, {nan, 9, -5, -5, -6, -6}), (Experts{2, 3}));
  EXPECT_EQ(chosen(bound(6, 2, 3, 2, 1), inOrder, {nan, 1, 1, nan, nan, 2}), (Experts{0, 1}));
}

TEST(RouteLimit, ANodeHasWhatItsSlotsHold) {
  EXPECT_EQ(chosen(bound(4, 2, 2, 3, 1), {3, -1, 0, 2, 1, -1}, {1, 3, 3, 4}), (Experts{1, 2}));
  // Of fewer experts than count, all: 9 is more than 4 + 4.
  EXPECT_EQ(chosen(bound(5, 3, 3, 3, 2), {0, -1, -1, 1, 2, -1, 3, 4, -1}, {9, 4, 4, 5, 5}), (Experts{0, 3, 4}));
}

TEST(RouteLimit, AnExpertCountsOnceOnANodeAndOnEachThatHasIt) {
  EXPECT_EQ(chosen(bound(3, 2, 2, 3, 1), {0, 0, -1, 1, 2, -1}, {3, 2, 2}), (Experts{1, 2})); // 3 < 2 + 2
  EXPECT_EQ(chosen(bound(3, 2, 2, 2, 1), {0, 1, 1, 2}, {1, 4, 2}), (Experts{1, 2}));
  EXPECT_EQ(chosen(bound(3, 2, 2, 2, 1), {0, 1, 1, 2}, {2, 4, 1}), (Experts{0, 1}));
}

TEST(RouteLimit, GroupsStayFirst) {
  RoutingDesc d = bound(6, 2, 3, 2, 1);
  d.groups = 3;
  d.topkGroups = 2;
  // Groups {2, 3} and {4, 5} stay; of the nodes {0, 4}, {1, 5}, {2, 3} the last has two of their experts.
  EXPECT_EQ(chosen(d, {0, 4, 1, 5, 2, 3}, {9, -9, 3, 3, 4, 4}), (Experts{2, 3}));
  // Group {0, 1} stays alone, and only one node has some of it.
  d.topkGroups = 1;
  EXPECT_EQ(chosen(d, {2, 4, 1, 0, 5, 3}, {-1, -1, -2, -2, -2, -2}), (Experts{0, 1}));
}

TEST(LocalityPenalty, LowersWhatHomeHasNot) {
  const std::vector<float> choices = {1.0f, 0.5f, 0.875f, 0.625f};
  EXPECT_EQ(chosen(bound(4, 2, 2, 2, 0, 0.25), {0, 1, 2, 3}, choices), (Experts{0, 2}));
  EXPECT_EQ(chosen(bound(4, 2, 2, 2, 0, 0.5), {0, 1, 2, 3}, choices), (Experts{0, 1}));
  EXPECT_EQ(chosen(bound(4, 2, 2, 2, 0, 0.5), {0, 3, 2, 1}, choices), (Experts{0, 3})); // home has 0 and 3
  // Home is the first of two best; an expert on both nodes is at home.
  EXPECT_EQ(chosen(bound(4, 2, 2, 3, 0, 0.5), {0, 1, -1, 2, 3, 1}, {1, 0.75f, 1, 0.75f}), (Experts{0, 1}));
}

TEST(LocalityPenalty, ChoosesAndDoesNotWeigh) {
  RoutingDesc d = bound(4, 2, 2, 2, 0, 0.5);
  d.normalize = false;
  d.logits = rowsOf(4);
  TestStep step(TestStep::plain(1));
  std::vector<int32_t> held = {0, 1, 2, 3}, experts(2);
  std::vector<float> logits = {1, -1, 3, -4}, weights(2); // home is {2, 3}
  EXPECT_TRUE(
      evaluateWith(d, step.step, {logits.data(), &step.step, ordinal(0), held.data(), experts.data(), weights.data()}));
  EXPECT_EQ(experts, (Experts{2, 0}));
  EXPECT_EQ(weights, (std::vector<float>{k2rt_sigmoidf(3), k2rt_sigmoidf(1)}));
}

TEST(LocalityPenalty, ComesBeforeTheLimit) {
  // Node 1 is home by its best choice. Without a penalty node 0 would have the better two, 1.75 against 1.5.
  const std::vector<float> choices = {0.875f, 0.875f, 1.0f, 0.5f, 0, 0};
  EXPECT_EQ(chosen(bound(6, 2, 3, 2, 1), inOrder, choices), (Experts{0, 1}));
  EXPECT_EQ(chosen(bound(6, 2, 3, 2, 1, 0.25), inOrder, choices), (Experts{2, 3}));
}

TEST(RouteLimit, ForcedRoutesGoAnywhereAndWeighAsChosen) {
  RoutingDesc free = sigmoid(16, 4), limited = bound(16, 4, 4, 4, 1, 0.125);
  limited.logits = rowsOf(16);
  Random random(4);
  std::vector<float> logits = random.vector(8 * 16), weights(8 * 4), again(8 * 4);
  std::vector<int32_t> held(16), experts(8 * 4), other(8 * 4);
  std::iota(held.begin(), held.end(), 0);
  TestStep step(TestStep::plain(8));
  auto run = [&](std::vector<int32_t> &to, std::vector<float> &weigh) {
    EXPECT_TRUE(evaluateWith(limited, step.step,
                             {logits.data(), &step.step, ordinal(0), held.data(), to.data(), weigh.data()}));
  };
  run(experts, weights);
  Routes forced = route(free, logits, {}, [&](k2rt_ir_step &s) { s.forced_experts = experts.data(); });
  EXPECT_EQ(forced.experts, experts);
  EXPECT_EQ(forced.weights, weights);
  std::vector<int32_t> spread(8 * 4);
  for (int i = 0; i < 32; ++i)
    spread[i] = (i % 4 * 4 + i) % 16;
  step.step.forced_experts = spread.data();
  run(other, again);
  Routes same = route(free, logits, {}, [&](k2rt_ir_step &s) { s.forced_experts = spread.data(); });
  EXPECT_EQ(other, same.experts);
  EXPECT_EQ(again, same.weights);
}

} // namespace

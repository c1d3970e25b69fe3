//===- EvaluateExchangeTest.cpp - Experts on several ranks, the scalar reading --------------------------===//
#include "ExchangeWorld.h"

namespace k2c::test {
namespace {

void evaluateKernel(const KernelDesc &desc, const k2rt_ir_step &step, const std::vector<void *> &args) {
  Status done = evaluate(desc, args.data(), step, WeightLayout::Panels);
  EXPECT_TRUE(done) << done.error().text();
}

TEST(EvaluateExchange, HasTheBitsOfOneRank) {
  for (const ExchangeShape &shape : exchangeShapes()) {
    ExchangeWorld world(shape);
    EXPECT_TRUE(world.exchange(evaluateKernel) == world.unpermute(evaluateKernel))
        << shape.experts << " experts on " << shape.ranks << " ranks" << (shape.isShuffled ? ", shuffled" : "");
  }
}

TEST(EvaluateExchange, ATokenGoesToARankOnce) {
  ExchangeWorld world({8, 4, 2, 4, 4, {40, 0}});
  world.exchange(evaluateKernel);
  EXPECT_LE(world.travelled, 40);
}

TEST(EvaluateExchange, AlignedExpertsSendOneSumBack) {
  ExchangeWorld aligned({8, 4, 2, 4, 4, {40, 7}});
  aligned.exchange(evaluateKernel);
  EXPECT_EQ(aligned.returned, aligned.travelled);
  ExchangeWorld shuffled({8, 4, 2, 4, 4, {40, 7}, /*isShuffled=*/true});
  shuffled.exchange(evaluateKernel);
  EXPECT_GT(shuffled.returned, shuffled.travelled);
}

TEST(EvaluateExchange, ATokenCrossesToANodeOnceAndOneSumComesBack) {
  const ExchangeShape oneHop{16, 8, 4, 4, 4, {30, 0, 7, 2}};
  ExchangeShape twoHops = oneHop;
  twoHops.nodes = 2;
  ExchangeWorld direct(oneHop), railed(twoHops);
  EXPECT_TRUE(direct.exchange(evaluateKernel) == railed.exchange(evaluateKernel));
  EXPECT_LE(railed.crossed, 30 + 7 + 2);
  EXPECT_EQ(railed.crossedBack, railed.crossed);
  EXPECT_GT(direct.travelled, railed.crossed);
}

/// Copies of everything on each node leave nothing to cross, and whole subtrees stay together.
TEST(EvaluateExchange, CopiesOnTheOwnNodeAreTaken) {
  ExchangeShape shape{16, 4, 8, 8, 4, {9, 0, 7, 2, 5, 5, 1, 8}};
  shape.nodes = 4;
  shape.hasCopies = true;
  ExchangeWorld world(shape);
  world.exchange(evaluateKernel);
  EXPECT_GT(world.travelled, 0);
  EXPECT_EQ(world.crossed, 0);
  EXPECT_EQ(world.returned, world.travelled);
}

TEST(EvaluateExchange, RefusesAnExpertOutOfRange) {
  TestStep step(TestStep::plain(1));
  std::vector<int32_t> experts = {0, 4}, places(9), slots(2);
  std::vector<void *> args = {experts.data(), places.data(), slots.data()};
  Status done = evaluate({"locate", LocateDesc{4, 2, 4, 4}}, args.data(), step.step, WeightLayout::Panels);
  EXPECT_EQ(done.error().text(), "locate: expert 4 of 4");
}

} // namespace
} // namespace k2c::test

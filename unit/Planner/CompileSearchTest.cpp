//===- CompileSearchTest.cpp - The layouts of a program, the best first -------===//
#include "ClusterQuestion.h"
#include "k2c/Planner/CompileLayout.h"
#include <set>

using namespace k2c;
using namespace k2c::test;

namespace {

/// Four ranks on two nodes with memory for all, and this rate between the nodes.
Topology islands(double bytesPerSecond) {
  Topology machines = topology("cpu4x2");
  machines.device.memory.value = Bytes(64'000'000'000);
  machines.tiers[1].count = 2;
  machines.tiers[1].bandwidth.value = Bandwidth(bytesPerSecond);
  return machines;
}

CompileSearch found(const ModelSpec &spec, const Topology &machines, const Limits &limits) {
  Expected<CompileSearch> result = searchCompiled(spec, machines, limits, {});
  EXPECT_TRUE(result) << (result ? "" : result.error().text());
  return result ? *result : CompileSearch();
}

CompileSearch found(const ModelSpec &spec, const Topology &machines) {
  return found(spec, machines, defaultLimits(spec));
}

std::string textOf(const ClusterPlan &plan) { return compiledText(plan.layout); }

/// What a search of `machines` predicts for a layout.
double tokensOf(const CompileSearch &search, const std::string &layout) {
  for (const ClusterPlan &plan : search.holding)
    if (textOf(plan) == layout)
      return *plan.figure("output_tokens_per_s");
  return 0;
}

TEST(CompileSearchTest, EachNetworkHasTheProgramThatIsFasterOnIt) {
  const ModelSpec spec = published("olmoe-1b-7b");
  const CompileSearch even = found(spec, islands(20e9)), slow = found(spec, islands(1e6));
  const std::string ofEven = textOf(even.holding.front()), ofSlow = textOf(slow.holding.front());
  EXPECT_EQ(even.holding.front().layout.devicesOfStage(), 4) << ofEven;
  EXPECT_EQ(slow.holding.front().layout.devicesOfStage(), 2) << ofSlow;
  EXPECT_GT(tokensOf(even, ofEven), tokensOf(even, ofSlow));
  EXPECT_GT(tokensOf(slow, ofSlow), tokensOf(slow, ofEven));
}

TEST(CompileSearchTest, AllThatHoldsCompilesAndTheBestIsFirst) {
  const ModelSpec spec = published("olmoe-1b-7b");
  const CompileSearch search = found(spec, islands(1e9));
  EXPECT_EQ(int64_t(search.holding.size()), search.compiling);
  EXPECT_LT(search.compiling, search.candidates);
  double before = std::numeric_limits<double>::infinity();
  for (const ClusterPlan &plan : search.holding) {
    EXPECT_EQ(plan.whyNotCompilable, "");
    EXPECT_LE(*plan.figure("output_tokens_per_s"), before);
    before = *plan.figure("output_tokens_per_s");
  }
}

// An expert of OLMoE has two leaves.
TEST(CompileSearchTest, ExpertsInPartsAreLookedAtWhereTheyCompile) {
  Topology machines = islands(1e9);
  machines.tiers[0].count = 4;
  std::set<int64_t> parts;
  for (const ClusterPlan &plan : found(published("olmoe-1b-7b"), machines).holding)
    parts.insert(plan.layout.etp);
  EXPECT_EQ(parts, (std::set<int64_t>{1, 2}));
}

TEST(CompileSearchTest, StepsAndSequencesAreThoseOfTheLimits) {
  Limits limits;
  limits.stepTokens = 96, limits.maxSequences = 3, limits.maxContext = 100;
  for (const ClusterPlan &plan : found(published("olmoe-1b-7b"), islands(1e9), limits).holding) {
    EXPECT_EQ(plan.layout.stepTokens, 96);
    EXPECT_EQ(*plan.figure("batch"), double(3 * plan.layout.dp * plan.layout.replicas));
  }
  limits.maxContext = 1 << 20;
  EXPECT_TRUE(has(searchCompiled(published("olmoe-1b-7b"), islands(1e9), limits, {}).takeError().text(),
                  "--max-context: is 1048576, must be 1 to 4096"));
}

TEST(CompileSearchTest, WhatDoesNotHoldIsLeftOut) {
  Topology small = islands(20e9);
  small.device.memory.value = Bytes(1'000'000'000);
  const CompileSearch search = found(published("olmoe-1b-7b"), small);
  EXPECT_TRUE(search.holding.empty());
  EXPECT_GT(search.compiling, 0);
  EXPECT_GT(search.smallest.devices(), 1);
}

TEST(CompileSearchTest, ABoundBindsTokensOfAllThatIsLookedAt) {
  const ModelSpec spec = published("olmoe-1b-7b");
  const Topology four = topology("cpu4x2");
  const auto within = [&](const Topology &machines, const RouteBound &bound) {
    return searchCompiled(spec, machines, defaultLimits(spec), {}, bound);
  };
  for (const RouteBound &bound : {RouteBound{2, 0}, RouteBound{0, 0.5}}) {
    const Expected<CompileSearch> search = within(four, bound);
    ASSERT_TRUE(search);
    EXPECT_GT(search->compiling, 0);
    EXPECT_LT(search->compiling, found(spec, four).compiling);
    EXPECT_GT(nodesOfStage(search->smallest, 4), std::max<int64_t>(bound.limit, 1));
    for (const ClusterPlan &plan : search->holding)
      EXPECT_GT(nodesOfStage(plan.layout, 4), std::max<int64_t>(bound.limit, 1)) << textOf(plan);
  }
  EXPECT_EQ(within(islands(1e9), {2, 0}).takeError().text(),
            "--route-limit: is 2, topology 'cpu4x2' has 2 nodes, and there are others to keep away from on 3 or more; "
            "leave it out, or use at most 1");
}

// The space of search() has 1, 2, 4 and 8 stages.
TEST(CompileSearchTest, DefaultLayoutsAreLookedAtToo) {
  Topology three = islands(1e9);
  three.tiers.erase(three.tiers.begin());
  three.tiers[0].count = 3;
  const CompileSearch search = found(published("smollm3-3b"), three);
  std::set<std::string> texts;
  for (const ClusterPlan &plan : search.holding)
    texts.insert(textOf(plan));
  EXPECT_EQ(texts, (std::set<std::string>{"pp=3", "replicas=3"}));
}

} // namespace

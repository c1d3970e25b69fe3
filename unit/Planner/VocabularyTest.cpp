//===- VocabularyTest.cpp - Plans whose ranks divide embedding and head -------===//
#include "ClusterQuestion.h"
#include "k2c/Planner/Planner.h"
#include "k2c/Planner/RefusedPlan.h"
#include "k2c/Planner/StepCost.h"
#include <map>

using namespace k2c;
using namespace k2c::test;

namespace {

/// Of a rank of a program of eight, of which `vocab` divide the vocabulary.
Plan plannedOfEight(const ModelSpec &spec, int64_t vocab) {
  Topology machines = topology("cpu4x2");
  machines.device.memory.value = gibibytes(1 << 14);
  PlanOptions options;
  options.layout = compileLayout(spec, machines);
  options.layout.vocab = vocab;
  Expected<Plan> plan = planHost(spec, machines, defaultLimits(spec), options);
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().text());
  return plan ? *plan : Plan();
}

/// Of a rank, of a part of its memory.
double bytesOf(const RankMemory &memory, const std::string &name) {
  for (const MemoryPart &part : memory.parts)
    if (part.name == name)
      return double(part.bytes.value);
  return 0;
}

StepPart exchangeOf(const ClusterPlan &plan, const std::string &phase) {
  for (const StepPart &part : plan.steps)
    if (part.phase == phase && part.name == "vocabulary parallel")
      return part;
  return {};
}

/// Kimi K2 on 64 devices that decode 16 sequences each.
struct Kimi : Question {
  Kimi() : Question("kimi-k2", "256-h800") { workload.serve.batch = 64 * 16; }
};

} // namespace

TEST(Vocabulary, ARankHasColumnsOfTheEmbeddingAndRowsOfTheHead) {
  const ModelSpec spec = published("kimi-k2");
  const Plan whole = plannedOfEight(spec, 1), divided = plannedOfEight(spec, 8);
  std::map<std::string, int64_t> wholeBytes = familyBytes(whole), bytes = familyBytes(divided);
  constexpr int64_t table = int64_t(163840) * 7168 * 2;
  EXPECT_EQ(wholeBytes["embed"], table);
  EXPECT_EQ(wholeBytes["head"], table);
  EXPECT_EQ(bytes["embed"], table / 8);
  EXPECT_EQ(bytes["head"], table / 8);
  EXPECT_EQ(whole.memory.weights - divided.memory.weights, Bytes(2 * table - 2 * table / 8));
  EXPECT_EQ(whole.memory.logits, divided.memory.logits) << "a rank gets all logits of its rows";
  EXPECT_TRUE(has(divided.remarks[1].text, "each of 8 has a part of embedding and head"));
  EXPECT_FALSE(has(whole.remarks[1].text, "embedding and head"));
}

TEST(Vocabulary, ScalesOfAHeadsPartBeginAnew) {
  ModelSpec spec = published("kimi-k2");
  spec.vocab = 800;
  for (WeightFamily &family : spec.weights)
    if (family.id == "embed" || family.id == "head")
      family.shape[0] = spec.vocab;
    else if (family.id == "o")
      spec.weights.back().blocks = family.blocks;
  ASSERT_EQ(spec.weights.back().id, "head");
  ASSERT_TRUE(spec.weights.back().blocks);
  // 25 panels of 7168 rows, with a scale for each 128 of them; 4 panels with a scale for each 4 columns, as parts of
  // 100 rows do not end where blocks of 128 do.
  EXPECT_EQ(familyBytes(plannedOfEight(spec, 1))["head"], 25 * (7168 * 32 + 256) + 1792);
  EXPECT_EQ(familyBytes(plannedOfEight(spec, 8))["head"], 4 * (7168 * 32 + 8 * 56 * 4) + 1024);
}

/// An eighth of the rows of the head for the output rows of eight ranks, and likewise of the embedding.
TEST(Vocabulary, IsReadInParts) {
  const ModelSpec spec = published("kimi-k2");
  const auto work = [&](int64_t vocab, const char *name) {
    std::map<std::string, Work> all;
    for (const Work &each : stepWork(spec, plannedOfEight(spec, vocab), {2, 3, 0}))
      all[each.name] = each;
    return all[name];
  };
  EXPECT_EQ(work(8, "logits").bytes.value * 8, work(1, "logits").bytes.value);
  EXPECT_DOUBLE_EQ(work(8, "logits").flops.value, work(1, "logits").flops.value);
  EXPECT_EQ(work(8, "embedding").bytes, work(1, "embedding").bytes);
}

TEST(Vocabulary, RanksHavePartsOfBothTables) {
  Kimi q;
  const RankMemory whole = q.plan("ep=64").memory[0], divided = q.plan("ep=64,vocab=64").memory[0];
  EXPECT_NEAR(bytesOf(divided, "embedding"), bytesOf(whole, "embedding") / 64, 1);
  EXPECT_NEAR(bytesOf(divided, "head"), bytesOf(whole, "head") / 64, 1);
  EXPECT_EQ(bytesOf(divided, "attention"), bytesOf(whole, "attention"));
  EXPECT_NEAR(bytesOf(divided, "logits"), bytesOf(whole, "logits") + 2 * 16 * 64 * 7168.0 * 2, 1)
      << "rows of all as they came, and without gaps";
}

TEST(Vocabulary, RowsAndLogitsCross) {
  Kimi q;
  EXPECT_EQ(exchangeOf(q.plan("ep=64"), "decode").linkBytes, 0);
  const StepPart part = exchangeOf(q.plan("ep=64,vocab=64"), "decode");
  EXPECT_NEAR(part.linkBytes, 63.0 * 16 * (4 + 7168 / 64 * 2 + 7168 * 2 + 163840 / 64 * 4), 1);
  EXPECT_GT(part.seconds.value, 0);
}

TEST(Vocabulary, TheFirstAndTheLastStageExchange) {
  Kimi q;
  const StepPart part = exchangeOf(q.plan("ep=32,pp=2,dp=32,vocab=32"), "decode");
  EXPECT_NEAR(part.linkBytes, 31.0 * 16 * (4 + 7168 / 32 * 2 + 7168 * 2 + 163840 / 32 * 4), 1);
}

TEST(Vocabulary, StaysDividedInTheNearestLayoutThatHolds) {
  Kimi q;
  const ParallelLayout asked = layout("ep=8,vocab=8");
  Expected<ClusterPlan> plan = evaluate(q.request, asked);
  ASSERT_FALSE(plan) << "a rank has no memory for an eighth of the experts";
  const RefusedPlan refusal = explainRefused(q.request, asked, LayoutOrigin::Given, plan.takeError());
  ASSERT_TRUE(refusal.remedy);
  const ParallelLayout &nearest = refusal.remedy->plan.layout;
  EXPECT_GT(nearest.devicesOfStage(), 1);
  EXPECT_EQ(nearest.vocab, nearest.devicesOfStage());
}

TEST(Vocabulary, NoLogitIsComputedTwice) {
  Kimi q;
  const auto flops = [](const ClusterPlan &plan) {
    for (const StepPart &part : plan.steps)
      if (part.phase == "decode" && part.name == "embedding, head")
        return part.flops.value;
    return 0.0;
  };
  EXPECT_DOUBLE_EQ(flops(q.plan("ep=64,vocab=64")), flops(q.plan("ep=64")));
}

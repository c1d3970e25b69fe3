//===- TrainContextTest.cpp - Sequences of a training step that ranks share ---===//
#include "ClusterQuestion.h"

using namespace k2c;
using namespace k2c::test;

namespace {

/// Sequences of 32,768 tokens, 256 of them.
struct Long : Question {
  explicit Long(const std::string &model = "kimi-k2") : Question(model, "2048-h800", PlanPhase::Train) {
    request.mustFit = false;
    workload.train.sequence = 32768;
    workload.train.batchTokens = 256 * 32768;
  }
};

const StepPart &find(const ClusterPlan &plan, const std::string &phase, const std::string &name) {
  for (const StepPart &step : plan.steps)
    if (step.phase == phase && step.name == name)
      return step;
  ADD_FAILURE() << phase << ": " << name;
  return plan.steps.front();
}

double bytesOf(const RankMemory &memory, const std::string &part) {
  for (const MemoryPart &each : memory.parts)
    if (each.name == part)
      return double(each.bytes.value);
  return 0;
}

/// Four stages of Kimi K2 in which the slowest rank has this many layers.
const char *const stages = ",pp=4,layers=16x3+13,recompute=k2,zero=os";

TEST(TrainContextTest, ADeviceKeepsItsShareOfASequenceAndARingOfKeys) {
  Long q;
  const ClusterPlan whole = q.plan(std::string("ep=32,dp=32") + stages),
                    shared = q.plan(std::string("ep=32,dp=32,cp=4") + stages);
  EXPECT_NEAR(bytesOf(shared.memory[1], "activations"), bytesOf(whole.memory[1], "activations") / 4, 16);
  EXPECT_NEAR(bytesOf(shared.memory[3], "logits"), bytesOf(whole.memory[3], "logits") / 4, 16);
  // 64 heads with keys of 192 and values of 128, bf16: what is in use and what arrives, and their gradients.
  EXPECT_NEAR(bytesOf(shared.memory[1], "keys in the ring"), 4.0 * 32768 / 4 * 64 * (192 + 128) * 2, 1);
  EXPECT_EQ(bytesOf(whole.memory[1], "keys in the ring"), 0);
}

TEST(TrainContextTest, RanksReceiveTheKeysOfTheOthers) {
  Long q;
  const ClusterPlan plan = q.plan(std::string("ep=32,dp=32,cp=4") + stages);
  const double bytes = 8.0 * 16 * 32768 * 3 / 4 * 64 * (192 + 128) * 2; // micro-batches, layers
  EXPECT_NEAR(find(plan, "forward", "context parallel").linkBytes, bytes, 1e-9 * bytes);
  EXPECT_NEAR(find(plan, "backward", "context parallel").linkBytes, 2 * bytes, 1e-9 * bytes);
  EXPECT_EQ(find(plan, "forward", "context parallel").tier, q.machines.tiers[0].name);
  // Beyond a node the ring is as fast as its slowest link.
  EXPECT_EQ(find(q.plan(std::string("ep=32,dp=8,cp=16") + stages), "forward", "context parallel").tier,
            q.machines.tiers[1].name);
  // All layers again: their keys too.
  const ClusterPlan again = q.plan("ep=32,dp=32,cp=4,pp=4,layers=16x3+13,recompute=full,zero=os");
  EXPECT_NEAR(find(again, "backward", "context parallel").linkBytes, 3 * bytes, 1e-9 * bytes);
}

TEST(TrainContextTest, WindowsNeedFewKeysOfOthers) {
  Long q("gpt-oss-120b"); // half of the layers see 128 tokens
  const ClusterPlan plan = q.plan("ep=32,dp=32,cp=4,zero=os");
  const double each = 2.0 * 8 * 64 * 2, all = 32768.0 * 3 / 4, layers = double(q.spec.layerCount());
  const double bytes = double(plan.layout.microbatches) * layers * (all / 2 + 2 * 128.0 / 2) * each;
  EXPECT_NEAR(find(plan, "forward", "context parallel").linkBytes, bytes, 1e-9 * bytes);
}

TEST(TrainContextTest, AttentionHidesTheRing) {
  Long q;
  const std::string text = std::string("ep=32,dp=32,cp=4") + stages;
  for (double bandwidth : {1e9, 1e12}) {
    q.machines.tiers[0].bandwidth.value = Bandwidth(bandwidth);
    const ClusterPlan plan = q.plan(text);
    double sum = 0, exposed = 0;
    for (const StepPart &step : plan.steps) {
      sum += step.exposed().value;
      exposed += step.name == "context parallel" ? step.exposed().value : 0;
    }
    EXPECT_NEAR(sum, *plan.figure("step_s"), 1e-9 * sum);
    EXPECT_EQ(exposed > 0, bandwidth < 1e10);
    EXPECT_GT(find(plan, "forward", "context parallel").hidden.value, 0);
    EXPECT_LT(find(plan, "forward", "context parallel").hidden.value, part(plan, "forward", "attention"));
  }
}

TEST(TrainContextTest, WorkIsAsMuchHoweverSequencesAreShared) {
  Long q;
  EXPECT_NEAR(*q.plan(std::string("ep=32,dp=32,cp=4") + stages).figure("model_flop"),
              *q.plan(std::string("ep=32,dp=128") + stages).figure("model_flop"), 1e10);
}

TEST(TrainContextTest, SequencesDivide) {
  Long q;
  EXPECT_EQ(q.refusal("ep=32,dp=32,cp=3"),
            "cp: 3 does not divide the tokens of a sequence, 32768; choose a divisor of 32768");
  Question encoder("switch-c-2048", "2048-h800", PlanPhase::Train);
  EXPECT_EQ(encoder.refusal("ep=32,dp=16,cp=2"),
            "cp: sequences of encoder-decoder models are not divided; leave it out");
}

TEST(TrainContextTest, SearchSharesLongSequences) {
  Question q("deepseek-v2-lite", "h100x8", PlanPhase::Train);
  for (int64_t sequence : {4096, 131072}) {
    q.workload.train.sequence = sequence;
    q.workload.train.batchTokens = 64 * 131072;
    Expected<PlanSearch> result = search(q.request);
    ASSERT_TRUE(result) << result.error().text();
    EXPECT_EQ(result->best.layout.cp > 1, sequence > 100000) << format(result->best.layout, PlanPhase::Train);
    // None that could win is left out.
    for (int64_t cp : {1, 2, 4, 8}) {
      ParallelLayout other = result->best.layout;
      other.dp = other.dp * other.cp / cp;
      other.cp = cp;
      other.microbatches = 0;
      if (Expected<ClusterPlan> plan = evaluate(q.request, other)) {
        EXPECT_LE(*plan->figure("tokens_per_s"), *result->best.figure("tokens_per_s") * (1 + 1e-9)) << cp;
      }
    }
  }
}

} // namespace

//===- EvaluateTrainTest.cpp - One training layout, predicted -----------------===//
#include "ClusterQuestion.h"
#include <algorithm>

using namespace k2c;
using namespace k2c::test;

namespace {

const StepPart *find(const ClusterPlan &plan, const std::string &phase, const std::string &name) {
  for (const StepPart &step : plan.steps)
    if (step.phase == phase && step.name == name)
      return &step;
  ADD_FAILURE() << phase << ": " << name;
  return &plan.steps.front();
}

int64_t bytesOf(const RankMemory &memory, const std::string &part) {
  for (const MemoryPart &each : memory.parts)
    if (each.name == part)
      return each.bytes.value;
  return 0;
}

TEST(EvaluateTrainTest, TrainingTimeIsThePipelinesAndSharesSumToIt) {
  Question q("deepseek-v3", "2048-h800", PlanPhase::Train);
  ClusterPlan plan = q.plan("ep=64,dp=128,pp=16,recompute=full,zero=os");
  double sum = 0;
  for (const StepPart &step : plan.steps)
    sum += step.exposed().value;
  // The slowest stage computes, sends and idles; others idle more.
  EXPECT_NEAR(sum, *plan.figure("step_s"), 0.02 * sum);
  EXPECT_GT(*plan.figure("mfu"), 0.05);
  EXPECT_LT(*plan.figure("mfu"), 1);
}

TEST(EvaluateTrainTest, AllTokensTakeAsManySteps) {
  Question q("deepseek-v3", "2048-h800", PlanPhase::Train);
  const std::string layout = "ep=64,dp=128,pp=16,recompute=full,zero=os";
  EXPECT_FALSE(q.plan(layout).figure("total_days"));
  q.workload.train.totalTokens = 100 * double(q.workload.train.batchTokens);
  ClusterPlan plan = q.plan(layout);
  EXPECT_NEAR(*plan.figure("total_days") * 86400, 100 * *plan.figure("step_s"), 1e-6);
  EXPECT_DOUBLE_EQ(*plan.figure("total_device_hours"), *plan.figure("total_days") * 24 * 2048);
  EXPECT_FALSE(plan.figure("total_dollars"));
  q.workload.dollarsPerDeviceHour = 2;
  EXPECT_DOUBLE_EQ(*q.plan(layout).figure("total_dollars"), 2 * *plan.figure("total_device_hours"));
}

/// Paper 002's case, four MoE layers of DeepSeek V3 with DP 32, TP 2, EP 8, in the exact conventions: 80.02, 39.66,
/// 19.48 and 9.39 GiB of states.
TEST(EvaluateTrainTest, StatesAreThoseOfPaperTwoInItsExactConventions) {
  Question q("deepseek-v3", "2048-h800", PlanPhase::Train);
  q.request.mustFit = false;
  const double expected[] = {80.02, 39.66, 19.48, 9.39};
  size_t at = 0;
  for (const char *zero : {"none", "os", "os+g", "os+g+params"}) {
    ClusterPlan plan = q.plan(std::string("tp=2,sp=1,ep=8,dp=32,pp=16,zero=") + zero);
    double states = 0;
    for (const MemoryPart &part : plan.memory[4].parts)
      if (part.name == "parameters" || part.name == "gradients" || part.name == "optimizer")
        states += double(part.bytes.value);
    EXPECT_NEAR(states / double(1 << 30), expected[at++], 0.005) << zero;
  }
}

/// What products in FP8 read is kept in FP8, with a scale for 128 values: the results of both norms and of the
/// activation. Attention's gradient reads its result in bf16.
TEST(EvaluateTrainTest, ProductsInFp8KeepTheirInputsInFp8) {
  Question q("llama-3.3-70b", "h100x8", PlanPhase::Train);
  q.request.mustFit = false;
  auto activations = [&](DType compute) {
    q.request.compute = compute;
    return double(bytesOf(q.plan("tp=8,sp=1,microbatches=1").memory[0], "activations"));
  };
  const double less = 80 * 4096.0 * (8192 + 8192 + 28672) / 8 * (2 - (1 + 4.0 / 128));
  EXPECT_NEAR(activations(DType::BF16) - activations(DType::F8E4M3), less, 1e-6 * less);
}

TEST(EvaluateTrainTest, BubblesShrinkWithMicrobatchesAndChunks) {
  Question q("deepseek-v3", "256-h800", PlanPhase::Train);
  q.request.mustFit = false;
  auto bubble = [&](const std::string &more) { return *q.plan("ep=16,dp=16,pp=16" + more).figure("bubble"); };
  EXPECT_LT(bubble(",microbatches=64"), bubble(",microbatches=32"));
  EXPECT_LT(bubble(",microbatches=64,schedule=zb-h1"), bubble(",microbatches=64"));
  EXPECT_LT(bubble(",microbatches=64,schedule=interleaved,chunks=2"), bubble(",microbatches=64"));
}

TEST(EvaluateTrainTest, RecomputationTradesMemoryForTime) {
  Question q("kimi-k2", "2048-h800", PlanPhase::Train);
  q.request.mustFit = false;
  double time = 0;
  int64_t bytes = INT64_MAX;
  for (const char *set : {"none", "k2", "full"}) {
    ClusterPlan plan = q.plan(std::string("ep=16,dp=128,pp=16,zero=os,recompute=") + set);
    EXPECT_LT(plan.fullest().total().value, bytes) << set;
    EXPECT_GT(*plan.figure("step_s"), time) << set;
    bytes = plan.fullest().total().value, time = *plan.figure("step_s");
  }
  // The same values in FP8, which is no time; V3's set computes down projections once.
  auto of = [&](const char *set) { return q.plan(std::string("ep=16,dp=128,pp=16,zero=os,recompute=") + set); };
  const ClusterPlan k2 = of("k2"), narrow = of("k2_fp8"), v3 = of("v3");
  EXPECT_LT(narrow.fullest().total(), k2.fullest().total());
  EXPECT_DOUBLE_EQ(*narrow.figure("step_s"), *k2.figure("step_s"));
  EXPECT_LT(v3.fullest().total(), narrow.fullest().total());
  EXPECT_LT(*v3.figure("step_s"), *narrow.figure("step_s"));
}

/// Any modules, in any order: all three keep what Kimi K2's set keeps and do not compute down projections again; each
/// more frees more, and the time is that of the up projections, as the rest is no product.
TEST(EvaluateTrainTest, ModulesAreComputedAgainOneByOne) {
  Question q("kimi-k2", "2048-h800", PlanPhase::Train);
  q.request.mustFit = false;
  auto of = [&](const char *set) { return q.plan(std::string("ep=16,dp=128,pp=16,zero=os,recompute=") + set); };
  const ClusterPlan all = of("activations+norms+mla_up_proj"), k2 = of("k2");
  EXPECT_EQ(all.fullest().total().value, k2.fullest().total().value);
  EXPECT_LT(*all.figure("step_s"), *k2.figure("step_s"));
  EXPECT_NE(format(all.layout, PlanPhase::Train).find("recompute=norms+mla_up_proj+activations"), std::string::npos);
  const ClusterPlan none = of("none"), norms = of("norms"), two = of("norms+activations"), up = of("mla_up_proj");
  EXPECT_LT(norms.fullest().total(), none.fullest().total());
  EXPECT_LT(two.fullest().total(), norms.fullest().total());
  EXPECT_LT(all.fullest().total(), two.fullest().total());
  EXPECT_DOUBLE_EQ(*two.figure("step_s"), *none.figure("step_s"));
  EXPECT_DOUBLE_EQ(*all.figure("step_s"), *up.figure("step_s"));
}

TEST(EvaluateTrainTest, ShardedStatesTradeMemoryForTraffic) {
  Question q("kimi-k2", "2048-h800", PlanPhase::Train);
  q.request.mustFit = false;
  double traffic = 0;
  int64_t bytes = INT64_MAX;
  for (const char *zero : {"none", "os", "os+g", "os+g+params"}) {
    ClusterPlan plan = q.plan(std::string("ep=16,dp=128,pp=16,recompute=full,zero=") + zero);
    EXPECT_LT(plan.fullest().total().value, bytes) << zero;
    if (std::string(zero) != "none" && std::string(zero) != "os") {
      EXPECT_GT(linkBytes(plan), traffic) << zero;
    }
    bytes = plan.fullest().total().value, traffic = linkBytes(plan);
  }
}

/// What the passes hide of the exchanges, and the rest, is all of a step but the pipeline and the optimizer.
TEST(EvaluateTrainTest, ExchangesRunBesideThePasses) {
  Question q("kimi-k2", "2048-h800", PlanPhase::Train);
  q.request.mustFit = false;
  ClusterPlan plan = q.plan("ep=16,dp=128,pp=16,recompute=full,zero=os");
  const StepPart &gradients = *find(plan, "exchange", "gradients");
  double forward = 0;
  for (const StepPart &step : plan.steps)
    forward += step.phase == "forward" && step.flops.value > 0 ? step.seconds.value : 0;
  EXPECT_GT(gradients.hidden.value, 0);
  EXPECT_LT(gradients.hidden.value, gradients.seconds.value);
  EXPECT_NEAR(*plan.figure("step_s"),
              *plan.figure("pipeline_s") + gradients.exposed().value +
                  find(plan, "exchange", "parameters")->exposed().value + part(plan, "optimizer", "update"),
              1e-9);
  // Once a step: no more hides than one micro-batch computes.
  EXPECT_LE(find(plan, "exchange", "parameters")->hidden.value, forward / double(plan.layout.microbatches) + 1e-12);
}

TEST(EvaluateTrainTest, ShardedGradientsAreSummedWithEveryMicrobatch) {
  Question q("kimi-k2", "2048-h800", PlanPhase::Train);
  q.request.mustFit = false;
  ClusterPlan once = q.plan("ep=16,dp=128,pp=16,recompute=full,zero=os"),
              each = q.plan("ep=16,dp=128,pp=16,recompute=full,zero=os+g");
  const double m = double(each.layout.microbatches);
  EXPECT_NEAR(find(each, "exchange", "gradients")->linkBytes, m * find(once, "exchange", "gradients")->linkBytes,
              1e-6 * find(each, "exchange", "gradients")->linkBytes);
  EXPECT_DOUBLE_EQ(find(each, "exchange", "parameters")->linkBytes, find(once, "exchange", "parameters")->linkBytes);
  auto says = [](const ClusterPlan &plan) {
    return std::count_if(plan.notes.begin(), plan.notes.end(),
                         [](const std::string &note) { return note.find("with each of 128 micro-batches") < 40; });
  };
  EXPECT_EQ(says(each), 1);
  EXPECT_EQ(says(once), 0);
}

TEST(EvaluateTrainTest, PassesMoveWeightsTensorsAndSums) {
  Question q("deepseek-v3", "2048-h800", PlanPhase::Train);
  q.request.mustFit = false;
  ClusterPlan plan = q.plan("ep=64,dp=128,pp=16,zero=os");
  for (const StepPart &step : plan.steps)
    EXPECT_TRUE(step.flops.value <= 0 || step.memoryBytes > 0) << step.name;
  // The sums of a stage's gradients, float32, are read and written with every micro-batch: of the last one's experts.
  const double experts = 3 * (256.0 / 64 + 1) * 3 * 7168 * 2048 + 3 * 256 * 7168;
  EXPECT_GT(find(plan, "backward", "experts: weights")->memoryBytes, double(plan.layout.microbatches) * 8 * experts);
  EXPECT_EQ(find(plan, "forward", "experts")->bound, Bound::Compute);
  // Few tokens for as many weights.
  q.workload.train.sequence = 64;
  EXPECT_EQ(find(q.plan("ep=64,dp=128,pp=16,zero=os,microbatches=16"), "forward", "experts")->bound, Bound::Memory);
}

/// DeepSeek V3's layer, by hand, four of them in each of the 12 micro-batches that 1F1B keeps on the fifth of 16 ranks.
/// With sp 2 half of the inputs of two norms and of their results; whole, the latents of queries (1536) and keys (512)
/// before and after their norms, the rotated key and router scores in f32; with tp 2 half of the queries and keys (128
/// heads of 192), values and results (of 128) and one f32 for each head, and of the shared expert's gate, up and
/// product; of 8 experts the row and its gate, up and product.
TEST(EvaluateTrainTest, LayersKeepWhatTheGradientsOfTheirOpsRead) {
  Question q("deepseek-v3", "2048-h800", PlanPhase::Train);
  q.request.mustFit = false;
  ClusterPlan plan = q.plan("tp=2,sp=1,ep=8,dp=32,pp=16,zero=os");
  const double heads = 2 * 128 * (192 + 192 + 128 + 128) + 4 * 128, shared = 2 * 3 * 2048;
  const double token = 2 * 4 * 7168 / 2 + 2 * (2 * 1536 + 2 * 512 + 64) + 4 * 256 + (heads + shared) / 2;
  const double rows = 8 / 2.0 * 2 * (7168 + 3 * 2048), kept = 12.0 * 4 * 4096 * (token + rows);
  EXPECT_NEAR(double(bytesOf(plan.memory[4], "activations")), kept, 1e-6 * kept);
  EXPECT_EQ(bytesOf(plan.memory[4], "buffers"), 1000000000);
  double before = 0;
  for (const MemoryPart &part : plan.memory[4].parts)
    if (part.name != "fragmentation" && part.name != "parameters" && part.name != "gradients" &&
        part.name != "optimizer")
      before += double(part.bytes.value);
  EXPECT_NEAR(double(bytesOf(plan.memory[4], "fragmentation")), 0.05 * before, 100);
}

/// A rank that all tokens choose keeps rows of the whole expert group, in every layer and micro-batch that is alive.
TEST(EvaluateTrainTest, MemoryOfUnevenRoutingIsStatedAndCounted) {
  Question q("deepseek-v3", "2048-h800", PlanPhase::Train);
  q.request.mustFit = false;
  q.workload.alignment = 300;
  const std::string layout = "ep=8,dp=64,pp=16,schedule=dualpipe,overlap=1,zero=os";
  ClusterPlan even = q.plan(layout);
  EXPECT_EQ(bytesOf(even.memory[4], "activations of uneven routing"), 0);
  EXPECT_GT(bytesOf(even.memory[4], "alignment padding"), 0);
  EXPECT_GT(bytesOf(even.memory[4], "second communication buffer"), 0);
  q.workload.peakRouting = Routing::Worst;
  ClusterPlan worst = q.plan(layout);
  // All 8 choices of the tokens of 8 ranks, in place of those of one: 7 times the mean more.
  const double row = 2 * (7168 + 3 * 2048), rows = 7 * 4096 * 8, layers = 4, alive = 17;
  EXPECT_NEAR(double(bytesOf(worst.memory[4], "activations of uneven routing")), rows * row * layers * alive,
              1e-6 * rows * row * layers * alive);
  EXPECT_NEAR(*even.figure("worst_routing_bytes"), double(worst.fullest().total().value), 100);
  q.workload.peakRouting.reset();
  q.workload.expertLoad.assign(256, 1.0);
  q.workload.expertLoad[3] = 9;
  ClusterPlan measured = q.plan(layout);
  EXPECT_GT(bytesOf(measured.memory[4], "activations of uneven routing"), 0);
  EXPECT_LT(measured.fullest().total().value, worst.fullest().total().value);
}

TEST(EvaluateTrainTest, TimelineHasEveryTaskOfEveryRank) {
  Question q("deepseek-v3", "256-h800", PlanPhase::Train);
  q.request.mustFit = false;
  q.request.withTimeline = true;
  ClusterPlan plan = q.plan("ep=16,dp=64,pp=4,microbatches=8");
  EXPECT_EQ(plan.timeline.size(), 4u * 8 * 2);
  for (const PipelineSpan &span : plan.timeline)
    EXPECT_LT(span.begin.value, span.end.value);
}

} // namespace

//===- EvaluateTest.cpp - One serving layout, predicted -------------------===//
#include "ClusterQuestion.h"
#include "k2c/Formulas/Serve.h"
#include "k2c/Planner/Count.h"
#include <cmath>

using namespace k2c;
using namespace k2c::test;

namespace {

//===----------------------------------------------------------------------===//
// Conservation
//===----------------------------------------------------------------------===//

/// Parameters of all ranks of a replica.
int64_t ofAllRanks(const ClusterPlan &plan) {
  int64_t sum = 0;
  for (const RankMemory &ranks : plan.memory)
    sum += ranks.parameters * ranks.count;
  return sum;
}

TEST(EvaluateTest, RanksHoldTheModelOnceAndWhatIsReplicatedAgain) {
  for (const char *model : {"kimi-k2", "deepseek-v3", "qwen3-235b-a22b", "olmoe-1b-7b", "mixtral-8x22b"}) {
    Question q(model, "256-h800");
    const int64_t total = totalParameters(q.spec).value(), experts = int64_t(q.spec.moe->experts);
    const int64_t routed = expertParameters(q.spec).value() * experts * int64_t(q.spec.moeLayers().size());
    for (int64_t ep : {8, 16}) {
      if (experts % ep)
        continue;
      const int64_t slots = (experts + ep - 1) / ep * ep;
      // Experts lie on one rank each, the rest on every data-parallel rank.
      EXPECT_EQ(ofAllRanks(q.plan("ep=" + std::to_string(ep) + ",pp=4")),
                routed / experts * slots + (total - routed) * ep)
          << model << " ep " << ep;
    }
  }
}

TEST(EvaluateTest, TensorParallelRanksHoldAttentionOnce) {
  Question q("llama-3.1-405b", "256-h800");
  q.request.weights = WeightFormat::Bf16;
  int64_t norms = 0;
  for (int64_t layer = 0; layer < q.spec.layerCount(); ++layer)
    norms += layerParameters(q.spec, layer).norms.value();
  norms += q.spec.hidden;
  const int64_t total = totalParameters(q.spec).value();
  // Norms are whole on all eight; the head's norm is divided with the head.
  EXPECT_EQ(ofAllRanks(q.plan("tp=8,pp=4")), total + 7 * (norms - q.spec.hidden));
}

TEST(EvaluateTest, TrainingRanksHoldEachExpertOncePerExpertGroup) {
  Question q("kimi-k2", "2048-h800", PlanPhase::Train);
  const int64_t total = totalParameters(q.spec).value();
  const int64_t routed = expertParameters(q.spec).value() * q.spec.moe->experts * int64_t(q.spec.moeLayers().size());
  ClusterPlan plan = q.plan("ep=16,dp=128,pp=16,recompute=full,zero=os");
  EXPECT_EQ(ofAllRanks(plan), routed * 8 + (total - routed) * 128);
  // DualPipe holds every stage twice.
  q.request.mustFit = false;
  EXPECT_EQ(ofAllRanks(q.plan("ep=16,dp=128,pp=16,schedule=dualpipe,recompute=full,zero=os")), 2 * ofAllRanks(plan));
}

//===----------------------------------------------------------------------===//
// Serving
//===----------------------------------------------------------------------===//

TEST(EvaluateTest, OneRankSendsNothing) {
  Question q("deepseek-v2-lite", "h100x8");
  EXPECT_EQ(linkBytes(q.plan("ep=1")), 0);
  EXPECT_GT(linkBytes(q.plan("ep=2")), 0);
}

TEST(EvaluateTest, ReplicasSendNothingToEachOther) {
  Question q("deepseek-v2-lite", "4x8-h100");
  ClusterPlan plan = q.plan("ep=8,dp=32");
  EXPECT_EQ(plan.layout.replicas, 4);
  for (const TierTraffic &tier : plan.traffic)
    EXPECT_EQ(tier.bytes > 0, tier.tier == "node") << tier.tier;
}

TEST(EvaluateTest, MoreSequencesTakeLongerAndGiveMore) {
  Question q("kimi-k2", "4x8-h100");
  double step = 0, tokens = 0;
  int64_t bytes = 0;
  for (int64_t batch : {32, 128, 512, 2048}) {
    q.workload.serve.batch = batch;
    ClusterPlan plan = q.plan("ep=32");
    EXPECT_GE(*plan.figure("decode_step_s"), step) << batch;
    EXPECT_GE(*plan.figure("output_tokens_per_s"), tokens) << batch;
    EXPECT_GE(plan.fullest().total().value, bytes) << batch;
    step = *plan.figure("decode_step_s"), tokens = *plan.figure("output_tokens_per_s");
    bytes = plan.fullest().total().value;
  }
}

TEST(EvaluateTest, TokensThatUsersGetAgreeWithTheirTimePerToken) {
  Question q("deepseek-v3", "4x8-h100");
  q.workload.serve.batch = 512;
  ClusterPlan plan = q.plan("ep=32");
  EXPECT_NEAR(*plan.figure("batch") / *plan.figure("tpot_s"), *plan.figure("output_tokens_per_s"),
              1e-6 * *plan.figure("output_tokens_per_s"));
}

/// The step of paper 004 with its corrections (k2c-plan --query s004_step --compat exact) and its inefficiencies,
/// within what the two count differently: rows of kernels beside the products, the head's rows, scales of FP8.
TEST(EvaluateTest, DecodeStepIsPaperFoursWithItsCorrections) {
  Question q("deepseek-v3", "4x8-h100");
  q.workload.serve.batch = 1024;
  q.workload.inefficiency = Inefficiency{2.0, 1.5 * 1.1, 1.3 * 1.1};
  q.machines.device.kernels = {};
  ClusterPlan plan = q.plan("ep=32");
  ServeCluster cluster{32, 4, 3.35e12, 989e12, 1979e12, 40e9 * 1.25, 450e9, 80e9};
  ServeParameters parameters;
  parameters.allLayersCommunicate = false;
  parameters.paperFlops = false;
  parameters.loaded = ExpertsLoaded::BinomialMax;
  parameters.embeddingsRead = 1;
  parameters.balancedness = 0.885; // of a uniform router, 1024 tokens on 32 ranks
  StepTerms terms = stepTerms(q.spec, cluster, parameters, 1024, int64_t(2000 + 250));
  EXPECT_NEAR(part(plan, "decode", "attention"), terms.attention, 0.08 * terms.attention);
  EXPECT_NEAR(part(plan, "decode", "experts") + part(plan, "decode", "dense, shared, router") +
                  part(plan, "decode", "embedding, head"),
              terms.experts, 0.12 * terms.experts);
}

/// Models without experts send no rows beside their products: no multiprocessor is taken from these, and one half's
/// sums move beside the other's attention and dense layers.
TEST(EvaluateTest, HalvesOfDenseModelsHideTheirSums) {
  Question q("llama-3.3-70b", "h100x8");
  const ClusterPlan plain = q.plan("tp=8"), halves = q.plan("tp=8,overlap=1");
  const double dense = part(plain, "prefill", "dense, shared, router"),
               sums = part(plain, "prefill", "tensor parallel");
  ASSERT_TRUE(halves.overlaps("prefill"));
  EXPECT_TRUE(has(halves.notes.at(halves.notes.size() - 2), "wins in prefill"));
  EXPECT_NEAR(part(halves, "prefill", "dense, shared, router"), dense, 0.05 * dense);
  double computing = 0, moved = 0; // the sums are read and written in memory, too
  for (const StepPart &step : halves.steps)
    if (step.phase == "prefill" && step.name != "tensor parallel")
      computing += step.seconds.value;
  for (const TierTraffic &tier : halves.traffic)
    moved += tier.phase == "prefill" ? 4 * tier.bytes / (0.9 * 3.35e12) : 0;
  EXPECT_LT(*halves.figure("prefill_step_s"), computing + 0.1 * sums + moved);
}

/// The second half of a prompt sees the first one.
TEST(EvaluateTest, OverlappedBatchesDoTheWorkOfOne) {
  Question q("deepseek-v3", "4x8-h100");
  q.request.mustFit = false;
  for (int64_t prompt : {512, 1024, 4096, 16384, 32768}) {
    q.workload.serve.prompt = Lengths::fixed(prompt);
    auto flops = [&](const ClusterPlan &plan) {
      double sum = 0;
      for (const StepPart &step : plan.steps)
        sum += step.phase == "prefill" && step.name == "attention" ? step.flops.value : 0;
      return sum;
    };
    const ClusterPlan plain = q.plan("ep=32,step=16384"), halves = q.plan("ep=32,step=16384,overlap=1");
    ASSERT_TRUE(halves.overlaps("prefill")) << prompt;
    EXPECT_NEAR(flops(halves), flops(plain), 1e-9 * flops(plain)) << prompt;
  }
}

TEST(EvaluateTest, PromptsCrossTheNetworkOnceForEachNodeAndTokensForEachChoice) {
  Question q("kimi-k2", "4x8-h100");
  q.workload.serve.batch = 32 * 256;
  q.request.mustFit = false;
  q.machines.device.memory.value = Bytes(int64_t(1) << 40);
  q.workload.expertLoad.assign(384, 1); // no rank is fuller than the others
  ClusterPlan plan = q.plan("ep=32,step=256");
  // 3.6 of 4 nodes visited, 3 in 4 of them and of 8 choices remote; FP8 with scales out, bf16 back.
  const double nodes = 4 * (1 - std::pow(0.75, 8)), bytes = 0.75 * 7168 * 60 * 256.0 * (1 + 4.0 / 128 + 2);
  for (const TierTraffic &tier : plan.traffic)
    if (tier.tier == "network") {
      const double wanted = (tier.phase == "decode" ? 8 : nodes) * bytes;
      EXPECT_NEAR(tier.bytes, wanted, 0.01 * wanted) << tier.phase;
    }
}

/// Who asks for overlap gets it: the search is what leaves it out, and a note has both times.
TEST(EvaluateTest, OverlapIsPlannedAsGiven) {
  Question q("kimi-k2", "4x8-h100");
  q.workload.peakRouting = Routing::Mean; // steps of 4096 tokens fit
  q.workload.serve.batch = 32;            // weights are read twice
  const ClusterPlan plain = q.plan("ep=32,step=4096"), halves = q.plan("ep=32,step=4096,overlap=1");
  EXPECT_TRUE(halves.overlaps("prefill") && halves.overlaps("decode"));
  EXPECT_GT(*halves.figure("decode_step_s"), *plain.figure("decode_step_s"));
  EXPECT_LT(*halves.figure("prefill_step_s"), *plain.figure("prefill_step_s"));
  EXPECT_TRUE(has(halves.notes.back(), "loses in decode") && has(halves.notes.back(), "leave overlap=1 out"));
}

/// Generated tokens move beside attention and shared experts, not beside routed ones, and the kernels that send and
/// receive have the device to themselves.
TEST(EvaluateTest, HalvesOfDecodeHideNothingBesideExperts) {
  Question q("deepseek-v3", "9x8-h100");
  q.workload.serve.batch = 72 * 256;
  const char *layout = "ep=72,redundant=32,step=64,overlap=1";
  const ClusterPlan golden = q.plan(layout);
  EXPECT_GT(*golden.figure("decode_step_s"),
            part(golden, "decode", "experts") + part(golden, "decode", "dispatch, combine"));
  q.machines.device.memory.value = Bytes(int64_t(1) << 42);
  q.workload.serve.prompt = Lengths::fixed(32000); // attention hides all that flies
  const double step = *q.plan(layout).figure("decode_step_s");
  q.machines.device.kernels.sendReceive.value = Seconds(2 * 59e-6);
  // Of 128 tokens each: two halves, 58 layers, dispatch and combine.
  EXPECT_NEAR(*q.plan(layout).figure("decode_step_s") - step, 2 * 58 * 2 * 59e-6, 1e-4);
}

/// What moves is read and written in memory, too, so that norms and sums beside it take longer; products do not.
TEST(EvaluateTest, TransfersTakeMemoryFromTheKernelsBesideThem) {
  Question q("deepseek-v3", "4x8-h100");
  q.request.mustFit = false;
  q.machines.device.kernels.transferSms.value = 0;
  for (Tier &tier : q.machines.tiers) // all is hidden
    tier.bandwidth.value = tier.bandwidth.value * 10;
  const ClusterPlan halves = q.plan("ep=32,step=16384,overlap=1");
  double computing = 0, moved = 0;
  for (const StepPart &step : halves.steps)
    if (step.phase == "prefill" && step.name != "dispatch, combine")
      computing += step.seconds.value;
  for (const TierTraffic &tier : halves.traffic)
    moved += tier.phase == "prefill" ? 4 * tier.bytes / (0.9 * 3.35e12) : 0;
  const double longer = *halves.figure("prefill_step_s") - computing;
  EXPECT_GT(longer, 0.1 * moved);
  EXPECT_LT(longer, 0.5 * moved);
}

TEST(EvaluateTest, AcceptedDraftsShortenATokenNotAStep) {
  Question q("deepseek-v3", "4x8-h100");
  q.workload.serve.batch = 64;
  ClusterPlan plain = q.plan("ep=32");
  q.workload.serve.draftTokens = 1;
  ClusterPlan drafted = q.plan("ep=32");
  EXPECT_GT(*drafted.figure("decode_step_s"), *plain.figure("decode_step_s"));
  EXPECT_LT(*drafted.figure("tpot_s"), *plain.figure("tpot_s"));
  EXPECT_GT(drafted.fullest().parameters, plain.fullest().parameters);
}

TEST(EvaluateTest, ReplicasOfHotExpertsShortenTheStep) {
  Question q("kimi-k2", "4x8-h100");
  q.workload.serve.batch = 512;
  q.workload.expertLoad.assign(384, 1);
  for (size_t i = 0; i < 12; ++i)
    q.workload.expertLoad[i] = 20;
  ClusterPlan skewed = q.plan("ep=32"), levelled = q.plan("ep=32,redundant=32");
  EXPECT_LT(*levelled.figure("decode_step_s"), *skewed.figure("decode_step_s"));
}

TEST(EvaluateTest, CacheHitsAndPricesShowInTheFigures) {
  Question q("kimi-k2", "4x8-h100");
  q.workload.dollarsPerDeviceHour = 2;
  ClusterPlan cold = q.plan("ep=32,step=256");
  q.workload.serve.cacheHitRate = 0.9;
  ClusterPlan warm = q.plan("ep=32,step=256");
  EXPECT_LT(*warm.figure("ttft_s"), *cold.figure("ttft_s"));
  EXPECT_LT(*warm.figure("dollars_per_million_tokens"), *cold.figure("dollars_per_million_tokens"));
  EXPECT_FALSE(cold.figure("computed_input_tokens_per_s"));
  EXPECT_NEAR(*warm.figure("computed_input_tokens_per_s") / *warm.figure("input_tokens_per_s"), 0.1, 1e-9);
  EXPECT_DOUBLE_EQ(*cold.figure("dollars_per_hour"), 64);
  EXPECT_NEAR(*cold.figure("dollars_per_million_tokens") * *cold.figure("output_tokens_per_s") * 3600 / 1e6, 64, 1e-9);
}

// At full load steps hold several prompts, and none leaves before its step ends.
TEST(EvaluateTest, TheFirstTokenComesAfterItsStep) {
  Question q("llama-3.1-405b", "4x8-h100");
  ClusterPlan full = q.plan("tp=8,pp=2,replicas=2,step=8192");
  EXPECT_GT(*full.figure("ttft_s"), *full.figure("prefill_step_s"));
  q.workload.serve.arrivalRate = 0.1 * *full.figure("requests_per_s");
  ClusterPlan idle = q.plan("tp=8,pp=2,replicas=2,step=8192");
  EXPECT_LT(*idle.figure("ttft_s"), *full.figure("ttft_s"));
}

// A prompt of four steps that nobody waits behind: each step holds a part, at half of the prompt on average. One more
// step makes the token.
TEST(EvaluateTest, LongPromptsTakeTheirPartsAtTheMeanContext) {
  Question q("llama-3.1-405b", "4x8-h100");
  q.workload.serve.prompt = Lengths::fixed(4 * 4096);
  q.workload.serve.arrivalRate = 1e-6;
  ClusterPlan plan = q.plan("tp=16,replicas=2,step=4096");
  const double seconds = 4 * *plan.figure("prefill_step_s") + *plan.figure("decode_step_s");
  EXPECT_NEAR(*plan.figure("ttft_s"), seconds, 1e-4 * seconds);
}

TEST(EvaluateTest, WorstRoutingNeedsMoreThanMeasuredAndMean) {
  Question q("kimi-k2", "4x8-h100");
  q.workload.serve.batch = 64;
  q.workload.expertLoad.assign(384, 1);
  q.workload.expertLoad[0] = 8;
  int64_t before = 0;
  for (Routing routing : {Routing::Mean, Routing::Measured, Routing::Worst}) {
    q.workload.peakRouting = routing;
    const int64_t bytes = q.plan("ep=32,step=1024").fullest().total().value;
    EXPECT_GT(bytes, before) << int(routing);
    before = bytes;
  }
}

// Each stage has a batch under way, of other prompts: the next chunk of a prompt begins behind all stages. One pool of
// the same stages, planned alone, is no program.
TEST(EvaluateTest, StagesOfAProgramHaveABatchUnderWay) {
  Question q("olmoe-1b-7b", "cpu4x2");
  q.machines.device.memory.value = Bytes(64'000'000'000);
  auto stepsAtOnce = [](const ClusterPlan &plan) {
    return 8 * *plan.figure("prefill_tokens_per_s_per_device") * *plan.figure("prefill_step_s") / 2048;
  };
  const ClusterPlan program = q.plan("pp=8,step=2048"), pipeline = q.plan("pp=8,step=2048,phase=prefill");
  EXPECT_EQ(program.whyNotCompilable, "");
  EXPECT_GT(stepsAtOnce(program), 4);
  EXPECT_DOUBLE_EQ(stepsAtOnce(program), stepsAtOnce(pipeline));
  const ClusterPlan chunks = q.plan("pp=8,step=256"); // eight of a prompt of 2,000 tokens
  EXPECT_GT(*chunks.figure("ttft_s"), 7 * *chunks.figure("prefill_step_s"));
}

// Large steps in halves are faster, those of few tokens are not: a plan of other devices is in halves in both phases.
TEST(EvaluateTest, StepsOfAProgramGoInHalvesWhereTheseAreFaster) {
  Question q("olmoe-1b-7b", "cpu4x2");
  q.machines.device.memory.value = Bytes(64'000'000'000);
  q.workload.serve.batch = 8;
  const ClusterPlan whole = q.plan("ep=8,dp=8,step=2048"), halves = q.plan("ep=8,dp=8,step=2048,overlap=1");
  EXPECT_EQ(halves.overlapped, std::vector<std::string>{"prefill"});
  EXPECT_LT(*halves.figure("prefill_step_s"), *whole.figure("prefill_step_s"));
  EXPECT_DOUBLE_EQ(*halves.figure("decode_step_s"), *whole.figure("decode_step_s"));
  for (const std::string &note : halves.notes)
    EXPECT_FALSE(has(note, "leave overlap=1 out")) << note;
}

} // namespace

//===- EvaluateTest.cpp - One layout of a cluster, predicted ------------------===//
#include "k2c/Planner/Evaluate.h"
#include "TestModels.h"
#include "k2c/Planner/Count.h"
#include "k2c/Planner/Serve.h"
#include <cmath>

using namespace k2c;
using k2c::test::has;

namespace {

Topology topology(const std::string &name) {
  Expected<Topology> loaded = loadTopology(name);
  EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().text());
  return loaded ? *loaded : Topology();
}

ParallelLayout layout(const std::string &text, PlanPhase phase = PlanPhase::Serve) {
  Expected<ParallelLayout> parsed = parseLayout(text, phase);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().text());
  return parsed ? *parsed : ParallelLayout();
}

/// A request whose parts live as long as it.
struct Question {
  ModelSpec spec;
  Topology machines;
  Workload workload;
  PlanRequest request{spec, machines, workload};

  Question(const std::string &model, const std::string &cluster, PlanPhase phase = PlanPhase::Serve)
      : spec(*loadPublishedModel(model)), machines(topology(cluster)), workload(defaultWorkload(spec)) {
    request.phase = phase;
  }
  ClusterPlan plan(const std::string &text) {
    Expected<ClusterPlan> plan = evaluate(request, layout(text, request.phase));
    EXPECT_TRUE(plan) << (plan ? "" : plan.error().text());
    return plan ? *plan : ClusterPlan();
  }
  std::string refusal(const std::string &text) {
    Expected<ClusterPlan> plan = evaluate(request, layout(text, request.phase));
    return plan ? "accepted" : plan.error().text();
  }
};

double linkBytes(const ClusterPlan &plan) {
  double sum = 0;
  for (const TierTraffic &tier : plan.traffic)
    sum += tier.bytes;
  return sum;
}

double part(const ClusterPlan &plan, const std::string &phase, const std::string &name) {
  for (const StepPart &step : plan.steps)
    if (step.phase == phase && step.name == name)
      return step.seconds.value;
  return 0;
}

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

/// The step of paper 004 with its corrections (k2c-plan --query s004_step --compat exact) within what the two count
/// differently: bytes of activations, the head's rows, scales of FP8.
TEST(EvaluateTest, DecodeStepIsPaperFoursWithItsCorrections) {
  Question q("deepseek-v3", "4x8-h100");
  q.workload.serve.batch = 1024;
  ClusterPlan plan = q.plan("ep=32");
  ServeCluster cluster{32, 4, 3.35e12, 989e12, 1979e12, 40e9 * 1.25, 450e9, 80e9};
  ServeKnobs knobs;
  knobs.allLayersCommunicate = false;
  knobs.paperFlops = false;
  knobs.loaded = ExpertsLoaded::BinomialMax;
  knobs.embeddingsRead = 1;
  knobs.balancedness = 0.885; // of a uniform router, 1024 tokens on 32 ranks
  StepTerms terms = stepTerms(q.spec, cluster, knobs, 1024, int64_t(2000 + 250));
  EXPECT_NEAR(part(plan, "decode", "attention"), terms.attention, 0.08 * terms.attention);
  EXPECT_NEAR(part(plan, "decode", "experts") + part(plan, "decode", "dense, shared, router") +
                  part(plan, "decode", "embedding, head"),
              terms.experts, 0.12 * terms.experts);
}

TEST(EvaluateTest, NodeTrafficIsTheDeduplicatedDispatch) {
  Question q("kimi-k2", "4x8-h100");
  q.workload.serve.batch = 32 * 256;
  q.request.mustFit = false;
  q.machines.device.memory.value = Bytes(int64_t(1) << 40);
  q.workload.expertLoad.assign(384, 1); // no rank is fuller than the others
  ClusterPlan plan = q.plan("ep=32");
  // 3.6 of 4 nodes visited, 3 in 4 of them remote; FP8 with scales out, bf16 back.
  const double nodes = 4 * (1 - std::pow(0.75, 8)), values = 7168 * 60 * 256.0;
  const double bytes = nodes * 0.75 * values * (1 + 4.0 / 128 + 2);
  for (const TierTraffic &tier : plan.traffic)
    if (tier.phase == "decode" && tier.tier == "network") {
      EXPECT_NEAR(tier.bytes, bytes, 0.01 * bytes);
    }
}

TEST(EvaluateTest, OverlapIsUsedOnlyWhereItWins) {
  Question q("kimi-k2", "4x8-h100");
  q.workload.peakRouting = Routing::Mean; // steps of 4096 tokens fit
  for (int64_t batch : {32, 1024}) {
    q.workload.serve.batch = batch;
    ClusterPlan plain = q.plan("ep=32,step=4096"), overlapped = q.plan("ep=32,step=4096,overlap=1");
    EXPECT_LE(*overlapped.figure("decode_step_s"), *plain.figure("decode_step_s"));
    EXPECT_LT(*overlapped.figure("prefill_step_s"), *plain.figure("prefill_step_s"));
  }
  q.workload.serve.batch = 32; // weights are read twice
  ClusterPlan small = q.plan("ep=32,overlap=1");
  EXPECT_TRUE(has(small.notes.back(), "loses in decode"));
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
  ClusterPlan cold = q.plan("ep=32");
  q.workload.serve.cacheHitRate = 0.9;
  ClusterPlan warm = q.plan("ep=32");
  EXPECT_LT(*warm.figure("ttft_s"), *cold.figure("ttft_s"));
  EXPECT_LT(*warm.figure("dollars_per_million_tokens"), *cold.figure("dollars_per_million_tokens"));
  EXPECT_DOUBLE_EQ(*cold.figure("dollars_per_hour"), 64);
  EXPECT_NEAR(*cold.figure("dollars_per_million_tokens") * *cold.figure("output_tokens_per_s") * 3600 / 1e6, 64, 1e-9);
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

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

TEST(EvaluateTest, TrainingTimeIsThePipelinesAndSharesSumToIt) {
  Question q("deepseek-v3", "2048-h800", PlanPhase::Train);
  ClusterPlan plan = q.plan("ep=64,dp=128,pp=16,recompute=full,zero=os");
  double sum = 0;
  for (const StepPart &step : plan.steps)
    sum += step.seconds.value;
  // The slowest stage computes, sends and idles; others idle more.
  EXPECT_NEAR(sum, *plan.figure("step_s"), 0.02 * sum);
  EXPECT_GT(*plan.figure("mfu"), 0.05);
  EXPECT_LT(*plan.figure("mfu"), 1);
}

/// Paper 002's case, four MoE layers of DeepSeek V3 with DP 32, TP 2, EP 8, in the exact conventions: 80.02, 39.66,
/// 19.48 and 9.39 GiB of states.
TEST(EvaluateTest, StatesAreThoseOfPaperTwoInItsExactConventions) {
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

TEST(EvaluateTest, BubblesShrinkWithMicrobatchesAndChunks) {
  Question q("deepseek-v3", "256-h800", PlanPhase::Train);
  q.request.mustFit = false;
  auto bubble = [&](const std::string &more) { return *q.plan("ep=16,dp=16,pp=16" + more).figure("bubble"); };
  EXPECT_LT(bubble(",microbatches=64"), bubble(",microbatches=32"));
  EXPECT_LT(bubble(",microbatches=64,schedule=zb-h1"), bubble(",microbatches=64"));
  EXPECT_LT(bubble(",microbatches=64,schedule=interleaved,chunks=2"), bubble(",microbatches=64"));
}

TEST(EvaluateTest, RecomputationTradesMemoryForTime) {
  Question q("kimi-k2", "2048-h800", PlanPhase::Train);
  q.request.mustFit = false;
  double time = 0;
  int64_t bytes = INT64_MAX;
  for (const char *set : {"none", "v3", "k2", "full"}) {
    ClusterPlan plan = q.plan(std::string("ep=16,dp=128,pp=16,zero=os,recompute=") + set);
    EXPECT_LT(plan.fullest().total().value, bytes) << set;
    EXPECT_GT(*plan.figure("step_s"), time) << set;
    bytes = plan.fullest().total().value, time = *plan.figure("step_s");
  }
}

TEST(EvaluateTest, ShardedStatesTradeMemoryForTraffic) {
  Question q("kimi-k2", "2048-h800", PlanPhase::Train);
  q.request.mustFit = false;
  double traffic = 0;
  int64_t bytes = INT64_MAX;
  for (const char *zero : {"none", "os", "os+g", "os+g+params"}) {
    ClusterPlan plan = q.plan(std::string("ep=16,dp=128,pp=16,recompute=full,zero=") + zero);
    EXPECT_LT(plan.fullest().total().value, bytes) << zero;
    if (std::string(zero) != "none" && std::string(zero) != "os")
      EXPECT_GT(linkBytes(plan), traffic) << zero;
    bytes = plan.fullest().total().value, traffic = linkBytes(plan);
  }
}

TEST(EvaluateTest, TimelineHasEveryTaskOfEveryRank) {
  Question q("deepseek-v3", "256-h800", PlanPhase::Train);
  q.request.mustFit = false;
  q.request.withTimeline = true;
  ClusterPlan plan = q.plan("ep=16,dp=64,pp=4,microbatches=8");
  EXPECT_EQ(plan.timeline.size(), 4u * 8 * 2);
  for (const PipelineSpan &span : plan.timeline)
    EXPECT_LT(span.begin.value, span.end.value);
}

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

TEST(EvaluateTest, LayoutsThatDoNotDivideAreRefusedWithBothNumbers) {
  Question q("kimi-k2", "4x8-h100");
  EXPECT_EQ(q.refusal("tp=3,ep=3"), "tp: 3 does not divide the attention heads, 64; choose a divisor of 64");
  EXPECT_TRUE(has(q.refusal("ep=64"), "needs 64 devices, topology '4x8-h100' has 32"));
  EXPECT_TRUE(has(q.refusal("ep=5,dp=8"), "ep 5 x etp 1 does not divide the ranks of a stage"));
  EXPECT_TRUE(has(q.refusal("pp=62"), "needs 62 devices"));
  EXPECT_TRUE(has(q.refusal("dp=1048577"), "dp: is 1048577, must be 1 to 1048576"));
  EXPECT_TRUE(has(q.refusal("dp=1048576,pp=1048576,tp=1048576,replicas=1048576"), "needs more than 2^63 devices"));
  EXPECT_TRUE(has(q.refusal("tp=8,dp=1,ep=1"), "choose ep as a multiple of tp"));
  Question dense("llama-3.1-405b", "4x8-h100");
  EXPECT_EQ(dense.refusal("ep=8"), "ep: is 8, but model 'llama-3.1-405b' has no experts; leave it out");
  Question train("llama-3.1-405b", "4x8-h100", PlanPhase::Train);
  EXPECT_TRUE(has(train.refusal("tp=8,pp=4,recompute=k2"), "lacks one of them"));
  EXPECT_TRUE(has(train.refusal("tp=8,dp=4,overlap=1"), "this is 1f1b with pp=1"));
  EXPECT_TRUE(has(train.refusal("dp=32,microbatch=3"), "does not divide into dp 32 x microbatch 3"));
}

TEST(EvaluateTest, WhatDoesNotFitSaysByHowMuch) {
  Question q("kimi-k2", "h100x8");
  EXPECT_TRUE(has(q.refusal("ep=8"), "GiB (1"));
  EXPECT_TRUE(has(q.refusal("ep=8"), " for one sequence of 2500 tokens, a device has 74.51 GiB (80.00 GB)"));
  Question fits("kimi-k2", "4x8-h100");
  fits.workload.serve.batch = 1 << 20;
  EXPECT_TRUE(has(fits.refusal("ep=32"), "32768 sequences a rank do not fit, "));
}

TEST(EvaluateTest, TargetsAndArrivalsThatDoNotHoldSayByHowMuch) {
  Question q("kimi-k2", "4x8-h100");
  q.workload.serve.timePerToken = Seconds(1e-3);
  EXPECT_TRUE(has(q.refusal("ep=32"), "the target is 1 ms"));
  q.workload.serve.timePerToken.reset();
  q.workload.serve.timeToFirstToken = Seconds(1e-3);
  EXPECT_TRUE(has(q.refusal("ep=32"), "the first token of 95 % of the requests takes up to"));
  q.workload.serve.timeToFirstToken.reset();
  q.workload.serve.arrivalRate = 1e6;
  EXPECT_TRUE(has(q.refusal("ep=32"), "1e+06 requests/s arrive, the layout serves "));
}

TEST(EvaluateTest, TargetsLowerTheBatchUntilTheyHold) {
  Question q("kimi-k2", "4x8-h100");
  ClusterPlan most = q.plan("ep=32");
  q.workload.serve.timePerToken = Seconds(*most.figure("tpot_s") / 2);
  ClusterPlan held = q.plan("ep=32");
  EXPECT_LE(*held.figure("tpot_s"), q.workload.serve.timePerToken->value);
  EXPECT_LT(*held.figure("batch"), *most.figure("batch"));
}

TEST(EvaluateTest, LongSequencesAndForeignLoadsAreRefused) {
  Question q("kimi-k2", "4x8-h100");
  q.workload.serve.prompt = Lengths::fixed(1 << 20);
  EXPECT_TRUE(has(q.refusal("ep=32"), "its longest sequence has 1049076 tokens, the model has 131072 positions"));
  q.workload.serve.prompt = Lengths::fixed(100);
  q.workload.expertLoad = {1, 2, 3};
  EXPECT_TRUE(has(q.refusal("ep=32"), "has 3 loads, the model has 384 experts"));
  q.workload.expertLoad.clear();
  q.workload.peakRouting = Routing::Measured;
  EXPECT_TRUE(has(q.refusal("ep=32"), "routing: is measured, but there is no expert_load"));
}

TEST(EvaluateTest, LayoutTextIsRefusedAtItsEntry) {
  auto refusal = [](const char *text, PlanPhase phase = PlanPhase::Serve) {
    Expected<ParallelLayout> parsed = parseLayout(text, phase);
    return parsed ? std::string("accepted") : parsed.error().text();
  };
  EXPECT_EQ(refusal("ep"), "--layout: 'ep' is not KEY=VALUE; write ep=8,dp=8");
  EXPECT_EQ(refusal("ep=8,ep=4"), "--layout: names ep twice; keep one of them");
  EXPECT_EQ(refusal("ep=8x"), "--layout: ep is '8x', not a whole number; write ep=8");
  EXPECT_EQ(refusal("ep=99999999999999999999"),
            "--layout: ep is '99999999999999999999', not a whole number; write ep=8");
  EXPECT_EQ(refusal("overlap=2"), "--layout: overlap is '2'; use 0 or 1");
  EXPECT_TRUE(has(refusal("schedule=zb-h1"), "'schedule' is not a key of a serving layout"));
  EXPECT_TRUE(has(refusal("schedule=zero", PlanPhase::Train), "use one of gpipe, 1f1b, interleaved, zb-h1"));
  EXPECT_EQ(refusal("schedule=zb-h1,pp=2", PlanPhase::Train), "accepted");
}

TEST(EvaluateTest, LayoutsPrintAsTheyAreRead) {
  const std::string text = "tp=2,ep=32,pp=8,dp=16,sp=1,schedule=interleaved,chunks=4,microbatches=1024,recompute=full,"
                           "zero=os,overlap=1";
  EXPECT_EQ(format(layout(text, PlanPhase::Train), PlanPhase::Train), text);
}

TEST(EvaluateTest, OnlyOneRankOfACpuCompiles) {
  Question gpus("kimi-k2", "4x8-h100");
  EXPECT_EQ(gpus.plan("ep=32").whyNotCompilable, "programs of several ranks are not in this build");
  Question one("deepseek-v2-lite", "h100x1");
  EXPECT_TRUE(has(one.plan("ep=1").whyNotCompilable, "devices of kind nvidia"));
  Question family("gpt-oss-120b", "cpu1");
  EXPECT_EQ(whyNotCompiled(family.request, {}), "family gpt_oss is described for planning only");
  Question host("olmoe-1b-7b", "cpu1");
  EXPECT_EQ(whyNotCompiled(host.request, {}), "");
}

TEST(EvaluateTest, WhatCompilesHasTheCertificateOfThatCompile) {
  Question q("olmoe-1b-7b", "cpu1");
  q.request.compute = q.request.cache = DType::F32;
  q.workload.serve.batch = 3;
  ClusterPlan plan = q.plan("step=512");
  ASSERT_TRUE(plan.compilable) << plan.whyNotCompilable;
  Limits limits;
  limits.stepTokens = 512, limits.maxSequences = 3, limits.maxContext = 2500;
  Expected<Plan> compiled = planHost(q.spec, q.machines, limits);
  ASSERT_TRUE(compiled);
  EXPECT_EQ(plan.fullest().total().value, compiled->memory.total().value);
  EXPECT_TRUE(has(plan.notes.back(), "--step-tokens 512 --max-sequences 3 --max-context 2500"));
}

} // namespace

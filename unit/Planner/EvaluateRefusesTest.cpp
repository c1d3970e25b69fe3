//===- EvaluateRefusesTest.cpp - Layouts and loads that are refused -----------===//
#include "ClusterQuestion.h"

using namespace k2c;
using namespace k2c::test;

namespace {

TEST(EvaluateRefusesTest, LayoutsThatDoNotDivideAreRefusedWithBothNumbers) {
  Question q("kimi-k2", "4x8-h100");
  EXPECT_EQ(q.refusal("tp=3,ep=3"), "tp: 3 does not divide the attention heads, 64; choose a divisor of 64");
  EXPECT_TRUE(has(q.refusal("ep=64"), "needs 64 devices, topology '4x8-h100' has 32"));
  EXPECT_TRUE(has(q.refusal("ep=5,dp=8"), "ep 5 x etp 1 does not divide the ranks of a stage"));
  EXPECT_TRUE(has(q.refusal("pp=62"), "needs 62 devices"));
  EXPECT_TRUE(has(q.refusal("dp=1048577"), "dp: is 1048577, must be 1 to 1048576"));
  EXPECT_TRUE(has(q.refusal("dp=1048576,pp=1048576,tp=1048576,replicas=1048576"), "needs more than 2^63 devices"));
  EXPECT_TRUE(has(q.refusal("tp=8,dp=1,ep=1"), "choose ep x etp as a multiple of tp x cp"));
  EXPECT_EQ(q.refusal("ep=32,redundant=5"),
            "redundant: 5 makes 389 expert slots, which ep 32 does not divide; give redundant=32");
  Question dense("llama-3.1-405b", "4x8-h100");
  EXPECT_EQ(dense.refusal("ep=8"), "ep: is 8, but model 'llama-3.1-405b' has no experts; leave it out");
  Question train("llama-3.1-405b", "4x8-h100", PlanPhase::Train);
  EXPECT_TRUE(has(train.refusal("tp=8,pp=4,recompute=k2"), "lacks one of them"));
  EXPECT_TRUE(has(train.refusal("tp=8,dp=4,overlap=1"), "this is 1f1b with pp=1"));
  for (const char *schedule : {"dualpipe", "dualpipev"})
    EXPECT_TRUE(has(train.refusal(std::string("tp=8,dp=4,schedule=") + schedule),
                    "schedule: " + std::string(schedule) + " runs the model from both ends of a pipeline, pp is 1"));
  EXPECT_TRUE(has(train.refusal("dp=32,microbatch=3"), "does not divide into dp 32 x microbatch 3"));
}

TEST(EvaluateRefusesTest, RanksOfAStageDivideAVocabulary) {
  Question q("kimi-k2", "256-h800");
  EXPECT_EQ(q.refusal("ep=64,vocab=8"), "vocab: is 8, and embedding and head are divided among all ranks of a stage, "
                                        "tp x cp x dp = 64; use vocab=64, or leave it out");
  EXPECT_EQ(q.refusal("ep=64,vocab=0"), "vocab: is 0, must be 1 to 1048576");
  EXPECT_EQ(q.refusal("ep=64,vocab=64"), "accepted");
  EXPECT_EQ(q.plan("ep=64,dp=128,vocab=128").layout.vocab, 64) << "of each of two replicas";
  EXPECT_EQ(
      q.refusal("ep=64,prefill.ep=64,prefill.vocab=2"),
      "prefill.vocab: is 2, and embedding and head are divided among all ranks of a stage, tp x cp x dp = 64; use "
      "vocab=64, or leave it out");
  Question encoder("switch-c-2048", "2048-h800");
  EXPECT_EQ(encoder.refusal("ep=32,dp=32,vocab=32"),
            "vocab: tables of encoder-decoder models are not divided; leave it out");
}

TEST(EvaluateRefusesTest, WidthsThatDoNotDivideAreRefusedWithBothNumbers) {
  auto refusal = [](const char *model, const char *layout, void (*change)(ModelSpec &)) {
    Question q(model, "4x8-h100");
    change(q.spec);
    return q.refusal(layout);
  };
  EXPECT_EQ(
      refusal("llama-3.1-405b", "tp=4", [](ModelSpec &s) { std::get<GqaSpec>(s.attentions["attention"]).kvHeads = 6; }),
      "tp: 4 does not divide the key heads (nor is it a multiple of them), 6; choose a divisor of 6");
  EXPECT_FALSE(has(
      refusal("llama-3.1-405b", "tp=4", [](ModelSpec &s) { std::get<GqaSpec>(s.attentions["attention"]).kvHeads = 2; }),
      "key heads"));
  EXPECT_EQ(refusal("llama-3.1-405b", "tp=4", [](ModelSpec &s) { s.mlp->inter = 6; }),
            "tp: 4 does not divide the width of a dense layer, 6; choose a divisor of 6");
  EXPECT_EQ(refusal("kimi-k2", "tp=4,ep=4", [](ModelSpec &s) { s.moe->sharedInter = 6; }),
            "tp: 4 does not divide the width of the shared expert, 6; choose a divisor of 6");
  EXPECT_EQ(refusal("kimi-k2", "etp=4,dp=4", [](ModelSpec &s) { s.moe->inter = 6; }),
            "etp: 4 does not divide the width of an expert, 6; choose a divisor of 6");
}

/// What parseLayout has no key for in this phase, but a caller can fill in.
TEST(EvaluateRefusesTest, LayoutsOfTheOtherPhaseAreRefused) {
  auto refusal = [](const Question &q, ParallelLayout layout, void (*change)(ParallelLayout &)) {
    change(layout);
    Expected<ClusterPlan> plan = evaluate(q.request, layout);
    return plan ? "accepted" : plan.error().text();
  };
  Question train("kimi-k2", "256-h800", PlanPhase::Train), serve("kimi-k2", "256-h800");
  const ParallelLayout trained = layout("ep=32,dp=128", PlanPhase::Train), served = layout("ep=32,dp=32");
  EXPECT_EQ(refusal(train, trained, [](ParallelLayout &l) { l.vocab = 128; }),
            "vocab: embedding and head are divided by tp in training; leave it out");
  EXPECT_EQ(refusal(train, trained, [](ParallelLayout &l) { l.redundantExperts = 32; }),
            "redundant: experts have no replicas in training; leave it out");
  EXPECT_EQ(refusal(train, trained, [](ParallelLayout &l) { l.replicas = 2; }),
            "replicas: copies of the model are data-parallel ranks in training; use dp");
  EXPECT_EQ(refusal(serve, served, [](ParallelLayout &l) { l.sp = true; }),
            "sp: sequence parallelism is planned for training only; leave it out");
  train.spec.weights[0].shape = {int64_t(1) << 40, int64_t(1) << 30};
  EXPECT_EQ(refusal(train, trained, [](ParallelLayout &) {}),
            "model 'kimi-k2': has more than 1e18 parameters or cache bytes; take config.json from the published model");
  train.spec.weights.clear();
  EXPECT_EQ(refusal(train, trained, [](ParallelLayout &) {}), "model 'kimi-k2': has no parameters");
}

TEST(EvaluateRefusesTest, WhatDoesNotFitSaysByHowMuch) {
  Question q("kimi-k2", "h100x8");
  EXPECT_TRUE(has(q.refusal("ep=8"), "GiB (1"));
  EXPECT_TRUE(has(q.refusal("ep=8"), " for one sequence of 2500 tokens, a device has 74.51 GiB (80.00 GB)"));
  Question fits("kimi-k2", "4x8-h100");
  fits.workload.serve.batch = 1 << 20;
  EXPECT_TRUE(has(fits.refusal("ep=32"), "32768 sequences a rank do not fit, "));
}

TEST(EvaluateRefusesTest, TargetsAndArrivalsThatDoNotHoldSayByHowMuch) {
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

TEST(EvaluateRefusesTest, TargetsLowerTheBatchUntilTheyHold) {
  Question q("kimi-k2", "4x8-h100");
  ClusterPlan most = q.plan("ep=32");
  q.workload.serve.timePerToken = Seconds(*most.figure("tpot_s") / 2);
  ClusterPlan held = q.plan("ep=32");
  EXPECT_LE(*held.figure("tpot_s"), q.workload.serve.timePerToken->value);
  EXPECT_LT(*held.figure("batch"), *most.figure("batch"));
}

TEST(EvaluateRefusesTest, LongSequencesAndForeignLoadsAreRefused) {
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

TEST(EvaluateRefusesTest, LayoutTextIsRefusedAtItsEntry) {
  auto refusal = [](const char *text, PlanPhase phase = PlanPhase::Serve) {
    Expected<ParallelLayout> parsed = parseLayout(text, phase);
    return parsed ? std::string("accepted") : parsed.error().text();
  };
  EXPECT_EQ(refusal("ep"), "--layout: 'ep' is not KEY=VALUE; write ep=8,dp=8");
  EXPECT_EQ(refusal("ep=8,ep=4"), "--layout: names ep twice; keep one of them");
  EXPECT_EQ(refusal("ep=8x"), "--layout: ep is '8x', not a whole number; write ep=8");
  EXPECT_EQ(refusal("ep=99999999999999999999"),
            "--layout: ep is '99999999999999999999', not a whole number; write ep=8");
  EXPECT_EQ(refusal("overlap=2"), "--layout: overlap is '2', must be 0 or 1; choose one of these");
  EXPECT_TRUE(has(refusal("schedule=zb-h1"), "'schedule' is not a key of a serving layout"));
  EXPECT_TRUE(has(refusal("schedule=zero", PlanPhase::Train), "use one of gpipe, 1f1b, interleaved, zb-h1"));
  EXPECT_EQ(refusal("schedule=zb-h1,pp=2", PlanPhase::Train), "accepted");
}

TEST(EvaluateRefusesTest, LayoutsPrintAsTheyAreRead) {
  const std::string text = "tp=2,ep=32,pp=8,dp=16,sp=1,schedule=interleaved,chunks=4,microbatches=1024,recompute=full,"
                           "zero=os,overlap=1";
  EXPECT_EQ(format(layout(text, PlanPhase::Train), PlanPhase::Train), text);
}

TEST(EvaluateRefusesTest, RanksOfCpusCompileAndOneGpu) {
  Question gpus("kimi-k2", "4x8-h100");
  EXPECT_EQ(gpus.plan("ep=32").whyNotCompilable, "has 32 GPUs; programs of several are not in this build");
  Question ranks("olmoe-1b-7b", "cpu4x2");
  ranks.machines.device.memory.value = Bytes(int64_t(1) << 36);
  EXPECT_EQ(ranks.plan("ep=8").whyNotCompilable, "");
  EXPECT_EQ(ranks.plan("ep=4").whyNotCompilable,
            "ep is 4, topology 'cpu4x2' has 8 ranks, and in this build programs are of all of them");
  EXPECT_EQ(ranks.plan("ep=4,etp=2").whyNotCompilable, "");
  EXPECT_EQ(ranks.plan("ep=2,etp=4").whyNotCompilable,
            "etp is 4, and topology 'cpu4x2' has 8 ranks a stage and 2 a node: groups divide both");
  Question one("deepseek-v2-lite", "h100x1");
  EXPECT_EQ(one.plan("ep=1").whyNotCompilable, "");
  Question family("gpt-oss-120b", "cpu1");
  EXPECT_EQ(whyNotCompiled(family.request, {}), "family gpt_oss is described for planning only");
  Question host("olmoe-1b-7b", "cpu1");
  EXPECT_EQ(whyNotCompiled(host.request, {}), "");
  host.request.phase = PlanPhase::Train;
  EXPECT_EQ(whyNotCompiled(host.request, {}), "training programs are not in this build");
}

TEST(EvaluateRefusesTest, WhatCompilesHasTheCertificateOfThatCompile) {
  Question q("olmoe-1b-7b", "cpu1");
  q.request.compute = q.request.cache = DType::F32;
  q.workload.serve.batch = 3;
  ClusterPlan plan = q.plan("step=512");
  ASSERT_TRUE(plan.whyNotCompilable.empty()) << plan.whyNotCompilable;
  Limits limits;
  limits.stepTokens = 512, limits.maxSequences = 3, limits.maxContext = 2500;
  Expected<Plan> compiled = planHost(q.spec, q.machines, limits);
  ASSERT_TRUE(compiled);
  EXPECT_EQ(plan.fullest().total().value, compiled->memory.total().value);
  EXPECT_TRUE(has(plan.notes.back(), "--step-tokens 512 --max-sequences 3 --max-context 2500"));
}

TEST(EvaluateRefusesTest, RanksThatCompileHaveTheCertificateOfTheFullest) {
  Question q("olmoe-1b-7b", "cpu2x1");
  q.request.compute = q.request.cache = DType::F32;
  q.machines.device.memory.value = Bytes(int64_t(1) << 36);
  q.workload.serve.batch = 6;
  ClusterPlan plan = q.plan("ep=2,step=512");
  ASSERT_TRUE(plan.whyNotCompilable.empty()) << plan.whyNotCompilable;
  Limits limits;
  limits.stepTokens = 512, limits.maxSequences = 3, limits.maxContext = 2500;
  PlanOptions options;
  options.layout = layout("ep=2");
  Expected<Plan> compiled = planHost(q.spec, q.machines, limits, options);
  ASSERT_TRUE(compiled);
  EXPECT_EQ(plan.fullest().total().value, compiled->memory.total().value);
  EXPECT_EQ(plan.fullest().ranks, "0-1");
  EXPECT_EQ(plan.fullest().count, 2);
}

} // namespace

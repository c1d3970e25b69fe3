//===- OnePoolTest.cpp - Prompts or tokens, on devices of their own and alone -===//
#include "ClusterQuestion.h"
#include "k2c/Planner/RefusedPlan.h"

using namespace k2c;
using namespace k2c::test;

namespace {

/// What the two plans say of a phase, step by step and link by link.
void expectSamePhase(const ClusterPlan &alone, const ClusterPlan &two, const std::string &phase) {
  for (const StepPart &part : alone.steps) {
    EXPECT_EQ(part.phase, phase);
    EXPECT_DOUBLE_EQ(part.seconds.value, test::part(two, phase, part.name)) << part.name;
  }
  for (const TierTraffic &tier : alone.traffic)
    for (const TierTraffic &other : two.traffic)
      EXPECT_TRUE(tier.phase != other.phase || tier.tier != other.tier || tier.bytes == other.bytes) << tier.tier;
}

void expectSameMemory(const RankMemory &one, const RankMemory &other) {
  EXPECT_EQ(one.ranks, other.ranks);
  EXPECT_EQ(one.pool, other.pool);
  ASSERT_EQ(one.parts.size(), other.parts.size());
  for (size_t i = 0; i < one.parts.size(); ++i)
    EXPECT_EQ(one.parts[i].bytes, other.parts[i].bytes) << one.parts[i].name;
}

void expectSameFigures(const ClusterPlan &one, const ClusterPlan &other, std::initializer_list<const char *> keys) {
  for (const char *key : keys) {
    ASSERT_TRUE(one.figure(key) && other.figure(key)) << key;
    EXPECT_DOUBLE_EQ(*one.figure(key), *other.figure(key)) << key;
  }
}

TEST(OnePoolTest, TokensAreGeneratedAsInTheDecodePoolOfTwo) {
  Question q("deepseek-v3", "4x8-h100");
  q.workload.serve.batch = 512; // which the prompts of the other pool keep up with
  const ClusterPlan two = q.plan("ep=16,prefill.ep=16"), alone = q.plan("phase=decode,ep=16");
  expectSamePhase(alone, two, "decode");
  ASSERT_EQ(alone.memory.size(), 1u);
  expectSameMemory(alone.memory[0], two.memory[1]);
  expectSameFigures(alone, two,
                    {"decode_step_s", "tpot_s", "batch", "sequences_per_rank", "output_tokens_per_s", "requests_per_s",
                     "decode_tokens_per_s_per_device", "decode_busy", "busy"});
}

TEST(OnePoolTest, PromptsAreComputedAsInThePrefillPoolOfTwo) {
  Question q("deepseek-v3", "4x8-h100");
  q.workload.serve.arrivalRate = 10; // which both keep up with
  const ClusterPlan two = q.plan("ep=16,prefill.ep=16"), alone = q.plan("phase=prefill,ep=16");
  expectSamePhase(alone, two, "prefill");
  ASSERT_EQ(alone.memory.size(), 1u);
  expectSameMemory(alone.memory[0], two.memory[0]);
  expectSameFigures(
      alone, two,
      {"prefill_step_s", "prefill_tokens_per_s_per_device", "input_tokens_per_s", "requests_per_s", "prefill_busy"});
  EXPECT_EQ(alone.layout.stepTokens, two.layout.prefill->stepTokens);
  EXPECT_NEAR(*alone.figure("ttft_s") + *two.figure("transfer_exposed_s"), *two.figure("ttft_s"), 1e-12);
}

TEST(OnePoolTest, OnlyItsOwnDevicesCountAndCost) {
  Question q("deepseek-v3", "4x8-h100");
  q.workload.dollarsPerDeviceHour = 2;
  q.workload.serve.batch = 512;
  const ClusterPlan two = q.plan("ep=16,prefill.ep=16"), decode = q.plan("phase=decode,ep=16");
  EXPECT_EQ(decode.devices, 16);
  EXPECT_DOUBLE_EQ(*decode.figure("dollars_per_hour"), 32);
  EXPECT_DOUBLE_EQ(*decode.figure("output_tokens_per_s_per_device"), *decode.figure("output_tokens_per_s") / 16);
  EXPECT_DOUBLE_EQ(2 * *decode.figure("dollars_per_million_tokens"), *two.figure("dollars_per_million_tokens"));
  q.workload.serve.batch.reset();
  const ClusterPlan prefill = q.plan("phase=prefill,ep=16");
  EXPECT_EQ(prefill.devices, 16);
  EXPECT_DOUBLE_EQ(*prefill.figure("dollars_per_million_input_tokens"),
                   32 / (3600 * *prefill.figure("input_tokens_per_s")) * 1e6);
}

TEST(OnePoolTest, WhatTheOtherPoolDoesHasNoFigure) {
  Question q("deepseek-v3", "4x8-h100");
  q.workload.serve.cacheHitRate = 0.5;
  q.workload.dollarsPerDeviceHour = 2;
  const ClusterPlan decode = q.plan("phase=decode,ep=16"), prefill = q.plan("phase=prefill,ep=16"),
                    both = q.plan("ep=16,prefill.ep=16");
  for (const char *key : {"ttft_s", "ttft_p95_s", "prefill_step_s", "prefill_tokens_per_s_per_device",
                          "input_tokens_per_s", "computed_input_tokens_per_s", "prefill_busy"}) {
    EXPECT_FALSE(decode.figure(key)) << key;
    EXPECT_TRUE(prefill.figure(key) && both.figure(key)) << key;
  }
  for (const char *key : {"tpot_s", "batch", "sequences_per_rank", "decode_step_s", "decode_tokens_per_s_per_device",
                          "output_tokens_per_s", "output_tokens_per_s_per_device", "tokens_per_s_per_user",
                          "decode_busy", "dollars_per_million_tokens"}) {
    EXPECT_FALSE(prefill.figure(key)) << key;
    EXPECT_TRUE(decode.figure(key) && both.figure(key)) << key;
  }
  for (const char *key : {"prefill_devices", "decode_devices", "transfer_bytes", "transfer_s", "transfer_exposed_s"}) {
    EXPECT_FALSE(prefill.figure(key) || decode.figure(key)) << key;
    EXPECT_TRUE(both.figure(key)) << key;
  }
}

TEST(OnePoolTest, EachIsBoundByItselfAlone) {
  Question q("deepseek-v3", "4x8-h100");
  const ClusterPlan prefill = q.plan("phase=prefill,ep=16"), decode = q.plan("phase=decode,ep=16"),
                    two = q.plan("ep=16,prefill.ep=16");
  const double prompts = *prefill.figure("prefill_tokens_per_s_per_device") * 16 / 2000;
  const double tokens = *decode.figure("decode_tokens_per_s_per_device") * 16 / 500;
  EXPECT_NEAR(*prefill.figure("requests_per_s"), 0.95 * prompts, 1e-9 * prompts);
  EXPECT_NEAR(*decode.figure("requests_per_s"), tokens, 1e-9 * tokens);
  EXPECT_LE(*two.figure("requests_per_s"), *prefill.figure("requests_per_s") * (1 + 1e-9));
  EXPECT_LE(*two.figure("requests_per_s"), *decode.figure("requests_per_s") * (1 + 1e-9));
  // Memory decides how many sequences decode at once, not the prompts of another pool.
  EXPECT_GT(*decode.figure("batch"), *two.figure("batch"));
  EXPECT_GT(decode.fullest().total().value, 0.99 * double(decode.fullest().capacity.value));
}

TEST(OnePoolTest, ItsOwnTargetHolds) {
  Question q("deepseek-v3", "4x8-h100");
  const ClusterPlan busy = q.plan("phase=prefill,ep=16"), full = q.plan("phase=decode,ep=16");
  q.workload.serve.timeToFirstToken = Seconds(0.7 * *busy.figure("ttft_p95_s"));
  const ClusterPlan soon = q.plan("phase=prefill,ep=16");
  EXPECT_LE(*soon.figure("ttft_p95_s"), q.workload.serve.timeToFirstToken->value * (1 + 1e-9));
  EXPECT_LT(*soon.figure("prefill_busy"), *busy.figure("prefill_busy"));
  q.workload.serve.timeToFirstToken.reset();
  q.workload.serve.timePerToken = Seconds(0.7 * *full.figure("tpot_s"));
  const ClusterPlan quick = q.plan("phase=decode,ep=16");
  EXPECT_LE(*quick.figure("tpot_s"), q.workload.serve.timePerToken->value);
  EXPECT_LT(*quick.figure("batch"), *full.figure("batch"));
  q.workload.serve.timePerToken = Seconds(0.001);
  EXPECT_TRUE(has(q.refusal("phase=decode,ep=16"),
                  "the target is 1 ms; use more devices or another layout, or loosen the target"));
}

TEST(OnePoolTest, LayoutsPrintAsTheyAreRead) {
  for (const char *text : {"phase=decode,tp=2,ep=8,dp=4,replicas=2,redundant=8,overlap=1", "phase=prefill",
                           "phase=prefill,ep=4,dp=2,cp=2,replicas=3,step=1024"})
    EXPECT_EQ(format(layout(text), PlanPhase::Serve), text);
  EXPECT_EQ(format(layout("phase=both,ep=8"), PlanPhase::Serve), "ep=8,dp=8");
  Question q("deepseek-v3", "4x8-h100");
  EXPECT_EQ(format(q.plan("ep=16,phase=decode").layout, PlanPhase::Serve), "phase=decode,ep=16,dp=16");
}

TEST(OnePoolTest, MistakesSayWhatThePoolLacks) {
  Question q("deepseek-v3", "4x8-h100");
  EXPECT_EQ(q.refusal("phase=decode,ep=32,step=64"), "step: is 64, but phase=decode computes no prompts; leave it out");
  EXPECT_EQ(q.plan("phase=decode,ep=32").whyNotCompilable,
            "separate devices for prompts and for tokens are not in this build");
  q.workload.serve.timeToFirstToken = Seconds(2);
  EXPECT_EQ(q.refusal("phase=decode,ep=32"), "targets.first_token: is 2 s, but phase=decode has no TTFT: it computes "
                                             "no prompts; leave it out, or plan both pools (keys with prefill. before "
                                             "them)");
  q.workload.serve.timeToFirstToken.reset();
  q.workload.serve.timePerToken = Seconds(0.05);
  EXPECT_EQ(q.refusal("phase=prefill,ep=32"), "targets.per_token: is 50 ms, but phase=prefill has no TPOT: it "
                                              "generates no tokens; leave it out, or plan both pools (keys with "
                                              "prefill. before them)");
  EXPECT_TRUE(q.plan("ep=16,prefill.ep=16").figure("tpot_s")); // which two pools have
  q.workload.serve.timePerToken.reset();
  q.workload.serve.batch = 1024;
  EXPECT_EQ(q.refusal("phase=prefill,ep=32"), "batch: is 1,024 sequences that decode at once, but phase=prefill "
                                              "generates no tokens; leave it out, or plan both pools (keys with "
                                              "prefill. before them)");
  Question t5("switch-c-2048", "256-h800");
  EXPECT_EQ(t5.refusal("phase=decode,ep=128"),
            "phase: separate pools of encoder-decoder models are not planned; leave it out");
}

TEST(OnePoolTest, PhasesAreWordsOfServingLayoutsWithoutAPrefillPool) {
  auto refusal = [](const char *text, PlanPhase phase = PlanPhase::Serve) {
    Expected<ParallelLayout> parsed = parseLayout(text, phase);
    return parsed ? std::string("accepted") : parsed.error().text();
  };
  EXPECT_EQ(refusal("phase=tokens,ep=8"), "--layout: phase is 'tokens'; use one of both, prefill, decode");
  EXPECT_EQ(refusal("phase=decode,ep=8,prefill.ep=8"),
            "--layout: phase is decode, one pool alone, beside keys of a prefill pool; leave phase or the keys with "
            "prefill. before them out");
  EXPECT_TRUE(has(refusal("prefill.phase=prefill"), "'prefill.phase' is not a key of a serving layout"));
  EXPECT_TRUE(has(refusal("phase=decode,ep=8", PlanPhase::Train), "'phase' is not a key of a training layout"));
}

/// 95 % of its time is the most that either is planned for, where requests arrive.
TEST(OnePoolTest, ItKeepsUpWithArrivalsOrIsRefused) {
  Question q("deepseek-v3", "4x8-h100");
  const double prompts = *q.plan("phase=prefill,ep=16").figure("requests_per_s"),
               tokens = 0.95 * *q.plan("phase=decode,ep=16").figure("requests_per_s");
  for (const auto &[text, most] :
       {std::pair{"phase=prefill,ep=16", prompts}, std::pair{"phase=decode,ep=16", tokens}}) {
    q.workload.serve.arrivalRate = 0.999 * most;
    EXPECT_NEAR(*q.plan(text).figure("busy"), 0.999 * 0.95, 1e-3) << text;
    q.workload.serve.arrivalRate = 1.001 * most;
    EXPECT_TRUE(has(q.refusal(text), "arrival_rate: ")) << text;
    EXPECT_TRUE(has(q.refusal(text), "; use more devices or replicas")) << text;
  }
}

/// The remedy of a refused plan: its text, with the layout of its plan.
std::optional<Remedy> remedyOf(Question &q, const char *text, bool fewest) {
  const ParallelLayout asked = layout(text);
  Expected<ClusterPlan> plan = evaluate(q.request, asked);
  EXPECT_FALSE(plan) << text;
  if (plan)
    return std::nullopt;
  const RefusedPlan refused = explainRefused(q.request, asked, LayoutOrigin::Given, plan.takeError());
  return fewest ? refused.fewest : refused.remedy;
}

TEST(OnePoolTest, RemediesKeepThePhase) {
  Question q("deepseek-v3", "4x8-h100");
  for (bool fewest : {false, true})
    for (const auto &[text, role] :
         {std::pair{"phase=decode,ep=8", PoolRole::Decode}, std::pair{"phase=prefill,ep=8", PoolRole::Prefill},
          std::pair{"phase=prefill,ep=5,dp=8", PoolRole::Prefill}}) {
      const std::optional<Remedy> remedy = remedyOf(q, text, fewest);
      ASSERT_TRUE(remedy) << text;
      EXPECT_EQ(remedy->plan.layout.role, role) << text;
      ASSERT_FALSE(remedy->flags.empty()) << text;
      EXPECT_TRUE(has(remedy->flags[0].second, std::string("phase=") + nameOf(role) + ",")) << text;
    }
  // One device, where a layout has no other key.
  Question small("olmoe-1b-7b", "h100x8");
  small.workload.serve.batch = 100000;
  const std::optional<Remedy> remedy = remedyOf(small, "phase=decode", false);
  ASSERT_TRUE(remedy);
  EXPECT_EQ(remedy->plan.layout.role, PoolRole::Decode);
  // Fewer sequences would not help what decodes none.
  EXPECT_FALSE(remedyOf(small, "phase=prefill", false));
}

} // namespace

//===- TwoPoolsTest.cpp - Prompts and tokens on devices of their own ----------===//
#include "ClusterQuestion.h"
#include <cmath>

using namespace k2c;
using namespace k2c::test;

namespace {

const char *const even = "ep=16,prefill.ep=16";

PlanSearch found(Question &q) {
  Expected<PlanSearch> result = search(q.request);
  EXPECT_TRUE(result) << (result ? "" : result.error().text());
  return result ? *result : PlanSearch();
}

TEST(TwoPoolsTest, NoPromptComesBetweenTwoTokens) {
  Question q("deepseek-v3", "4x8-h100");
  ClusterPlan two = q.plan(even), one = q.plan("ep=16,replicas=2");
  EXPECT_DOUBLE_EQ(*two.figure("tpot_s"), *two.figure("decode_step_s"));
  EXPECT_GT(*one.figure("tpot_s"), *one.figure("decode_step_s"));
  EXPECT_EQ(two.devices, 32);
  EXPECT_EQ(*two.figure("prefill_devices") + *two.figure("decode_devices"), 32);
}

TEST(TwoPoolsTest, TheSlowerPoolBoundsTheRequests) {
  Question q("deepseek-v3", "4x8-h100");
  ClusterPlan plan = q.plan(even);
  const double prompts = *plan.figure("prefill_tokens_per_s_per_device") * 16 / 2000;
  const double tokens = *plan.figure("decode_tokens_per_s_per_device") * 16 / 500;
  EXPECT_NEAR(*plan.figure("requests_per_s"), std::min(0.95 * prompts, tokens), 1e-9 * tokens);
}

TEST(TwoPoolsTest, ACacheMovesWholeOverTheTierThatJoinsThePools) {
  Question q("deepseek-v3", "4x8-h100");
  const double cache = 2000.0 * 61 * (512 + 64) * 2;
  ClusterPlan plan = q.plan(even);
  EXPECT_DOUBLE_EQ(*plan.figure("transfer_bytes"), cache);
  EXPECT_NEAR(*plan.figure("transfer_s"), cache / 45e9 + 5e-6, 0.2 * cache / 45e9);
  for (const TierTraffic &tier : plan.traffic)
    if (tier.phase == "transfer") {
      EXPECT_DOUBLE_EQ(tier.bytes, tier.tier == "network" ? cache : 0);
    }
  // Within a node it takes the node's links; two tensor-parallel ranks get the latents each.
  Question small("deepseek-v2-lite", "h100x8");
  ClusterPlan near = small.plan("ep=4,prefill.ep=4"), copies = small.plan("tp=2,ep=4,dp=2,prefill.ep=4");
  for (const TierTraffic &tier : near.traffic)
    EXPECT_TRUE(tier.phase != "transfer" || tier.tier != "node" || tier.bytes > 0);
  EXPECT_DOUBLE_EQ(*copies.figure("transfer_bytes"), 2 * *near.figure("transfer_bytes"));
}

TEST(TwoPoolsTest, TheFirstTokenWaitsForTheCache) {
  Question q("deepseek-v3", "4x8-h100");
  q.workload.serve.arrivalRate = 1; // hardly anybody waits
  q.workload.serve.cacheTransfer = CacheTransfer::Whole;
  ClusterPlan plan = q.plan(even);
  EXPECT_GT(*plan.figure("ttft_s"), *plan.figure("transfer_s"));
  EXPECT_EQ(*plan.figure("transfer_exposed_s"), *plan.figure("transfer_s"));
  q.machines.tiers.back().bandwidth.value = Bandwidth(1e9);
  ClusterPlan slow = q.plan(even);
  EXPECT_GT(*slow.figure("ttft_s") - *plan.figure("ttft_s"),
            0.9 * (*slow.figure("transfer_s") - *plan.figure("transfer_s")));
}

/// Sent layer by layer, the last of 61 layers' keys comes after the last step alone.
TEST(TwoPoolsTest, LayersLeaveWhileOthersCompute) {
  Question q("deepseek-v3", "4x8-h100");
  q.workload.serve.arrivalRate = 1;
  const std::string text = "ep=16,prefill.ep=16,prefill.step=2000";
  const ClusterPlan layers = q.plan(text);
  q.workload.serve.cacheTransfer = CacheTransfer::Whole;
  const ClusterPlan whole = q.plan(text);
  EXPECT_DOUBLE_EQ(*layers.figure("transfer_s"), *whole.figure("transfer_s"));
  EXPECT_NEAR(*layers.figure("transfer_exposed_s"), *layers.figure("transfer_s") / 61, 1e-12);
  EXPECT_NEAR(*whole.figure("ttft_s") - *layers.figure("ttft_s"), *layers.figure("transfer_s") * 60 / 61, 1e-9);
  EXPECT_DOUBLE_EQ(*layers.figure("requests_per_s"), *whole.figure("requests_per_s"));
  // In two steps, the last layer of the second.
  q.workload.serve.cacheTransfer = CacheTransfer::Layers;
  const ClusterPlan steps = q.plan("ep=16,prefill.ep=16,prefill.step=1000");
  EXPECT_NEAR(*steps.figure("transfer_exposed_s"), *steps.figure("transfer_s") / 2 / 61, 1e-12);
}

/// What takes longer than the prompt's steps leave of the link comes after them.
TEST(TwoPoolsTest, SlowLinksHideAsMuchAsThePromptComputes) {
  Question q("deepseek-v2-lite", "4x8-h100");
  q.workload.serve.arrivalRate = 1;
  q.machines.tiers.back().bandwidth.value = Bandwidth(0.5e9);
  const ClusterPlan plan = q.plan("ep=8,prefill.ep=8,prefill.step=2000,prefill.replicas=2"); // experts within a node
  const double step = *plan.figure("prefill_step_s"),
               hidden = *plan.figure("transfer_s") - *plan.figure("transfer_exposed_s");
  EXPECT_GT(*plan.figure("transfer_s"), step);
  EXPECT_NEAR(hidden, step * 26 / 27, 1e-9); // its first layer's keys are not there yet
  // Where the steps' own exchanges cross the same links, less.
  const ClusterPlan shared = q.plan("ep=16,prefill.ep=16,prefill.step=2000");
  EXPECT_LT(*shared.figure("transfer_s") - *shared.figure("transfer_exposed_s"),
            0.5 * *shared.figure("prefill_step_s"));
}

TEST(TwoPoolsTest, CachedTokensLeaveFromTheStart) {
  Question q("deepseek-v2-lite", "4x8-h100");
  q.workload.serve.arrivalRate = 1;
  q.workload.serve.cacheHitRate = 0.5;
  q.machines.tiers.back().bandwidth.value = Bandwidth(0.5e9);
  const ClusterPlan plan = q.plan("ep=8,prefill.ep=8,prefill.step=1000,prefill.replicas=2");
  EXPECT_NEAR(*plan.figure("transfer_s") - *plan.figure("transfer_exposed_s"), *plan.figure("prefill_step_s"), 1e-6);
}

TEST(TwoPoolsTest, TargetsOfTheFirstTokenLeaveThePromptsRoom) {
  Question q("deepseek-v3", "4x8-h100");
  ClusterPlan busy = q.plan(even);
  q.workload.serve.timeToFirstToken = Seconds(0.7 * *busy.figure("ttft_p95_s"));
  ClusterPlan held = q.plan(even);
  EXPECT_LE(*held.figure("ttft_p95_s"), q.workload.serve.timeToFirstToken->value * (1 + 1e-9));
  EXPECT_LT(*held.figure("prefill_busy"), *busy.figure("prefill_busy"));
}

TEST(TwoPoolsTest, ReplicasOfHotExpertsMayBeInThePrefillPoolAlone) {
  Question q("deepseek-v3", "4x8-h100");
  q.workload.expertLoad.assign(256, 1);
  for (size_t i = 0; i < 8; ++i)
    q.workload.expertLoad[i] = 20;
  q.workload.serve.batch = 256;
  ClusterPlan plain = q.plan("ep=16,prefill.ep=16,prefill.step=1024"),
              levelled = q.plan("ep=16,prefill.ep=16,prefill.redundant=32,prefill.step=1024");
  EXPECT_LT(*levelled.figure("prefill_step_s"), *plain.figure("prefill_step_s"));
  EXPECT_DOUBLE_EQ(*levelled.figure("decode_step_s"), *plain.figure("decode_step_s"));
  EXPECT_GT(levelled.memory.front().parameters, plain.memory.front().parameters);
  EXPECT_EQ(levelled.memory.back().parameters, plain.memory.back().parameters);
}

TEST(TwoPoolsTest, EachPoolHoldsWhatItsWorkNeeds) {
  Question q("deepseek-v3", "4x8-h100");
  ClusterPlan plan = q.plan(even);
  ASSERT_EQ(plan.memory.size(), 2u);
  EXPECT_EQ(plan.memory[0].ranks, "0-15 (prefill)");
  EXPECT_EQ(plan.memory[1].pool, "decode");
  auto cache = [](const RankMemory &ranks) {
    for (const MemoryPart &part : ranks.parts)
      if (part.name == "cache")
        return part.bytes.value;
    return int64_t(0);
  };
  EXPECT_LT(cache(plan.memory[0]), cache(plan.memory[1]));
}

TEST(TwoPoolsTest, LayoutsOfTwoPoolsPrintAsTheyAreRead) {
  const std::string text = "tp=2,ep=8,dp=4,replicas=2,redundant=8,overlap=1,prefill.ep=4,prefill.dp=2,prefill.cp=2,"
                           "prefill.replicas=3,prefill.step=1024,prefill.overlap=1";
  EXPECT_EQ(format(layout(text), PlanPhase::Serve), text);
  EXPECT_EQ(format(layout("prefill.replicas=1"), PlanPhase::Serve), "prefill.replicas=1");
}

TEST(TwoPoolsTest, MistakesNameThePoolAndBothNumbers) {
  Question q("deepseek-v3", "4x8-h100");
  EXPECT_EQ(q.refusal("ep=16,prefill.tp=3,prefill.ep=3"),
            "prefill.tp: 3 does not divide the attention heads, 128; choose a divisor of 128");
  EXPECT_EQ(q.refusal("ep=32,prefill.ep=8"),
            "layout: 8 devices that compute prompts and 32 that generate tokens are 40, topology '4x8-h100' has 32; "
            "lower replicas or prefill.replicas, or choose a larger topology");
  EXPECT_EQ(q.refusal("ep=16,step=512,prefill.ep=16"),
            "step: is 512, but prompts are computed by the prefill pool; write prefill.step=512");
  EXPECT_EQ(q.refusal("ep=16,prefill.tp=8,prefill.ep=1,prefill.dp=2"),
            "prefill.ep: ep x etp = 1 ranks share the experts, but tp x cp = 8 ranks share the attention; choose ep x "
            "etp as a multiple of tp x cp");
  EXPECT_TRUE(has(q.refusal("ep=24,prefill.ep=8"), "memory: ranks 0-7 (prefill) need "));
  Question t5("switch-c-2048", "256-h800");
  EXPECT_EQ(t5.refusal("ep=128,prefill.ep=128"),
            "prefill: separate pools of encoder-decoder models are not planned; leave its keys out");
  EXPECT_EQ(t5.refusal("ep=128,cp=2"), "cp: caches of encoder-decoder models are not divided; leave it out");
  auto refusal = [](const char *text, PlanPhase phase = PlanPhase::Serve) {
    Expected<ParallelLayout> parsed = parseLayout(text, phase);
    return parsed ? std::string("accepted") : parsed.error().text();
  };
  EXPECT_EQ(refusal("prefill.ep=x"), "--layout: prefill.ep is 'x', not a whole number; write prefill.ep=8");
  EXPECT_EQ(refusal("prefill.overlap=2"), "--layout: prefill.overlap is '2', must be 0 or 1; choose one of these");
  EXPECT_EQ(refusal("prefill.ep=8,prefill.ep=8"), "--layout: names prefill.ep twice; keep one of them");
  EXPECT_TRUE(has(refusal("prefill.prefill.ep=8"), "'prefill.prefill.ep' is not a key of a serving layout"));
  EXPECT_TRUE(has(refusal("prefill.ep=8", PlanPhase::Train), "'prefill.ep' is not a key of a training layout"));
  EXPECT_EQ(q.plan(even).whyNotCompilable, "separate devices for prompts and for tokens are not in this build");
}

TEST(TwoPoolsTest, ArrivalsBeyondThePoolsAreRefused) {
  Question q("deepseek-v3", "4x8-h100");
  q.workload.serve.arrivalRate = 1e6;
  EXPECT_TRUE(has(q.refusal(even), "use more devices or replicas in the busier pool"));
}

/// The best value of `key` over all pairs of pools on eight devices; less is better with sign 1.
double bruteForce(Question &q, const char *key, double sign) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<ParallelLayout> one;
  for (int64_t tp : {1, 2, 4})
    for (int64_t pp : {1, 2, 4})
      for (int64_t ranks : {1, 2, 4})
        for (int64_t etp : {1, 2, 4})
          for (bool overlap : {false, true}) {
            ParallelLayout layout;
            layout.tp = tp, layout.pp = pp, layout.ep = ranks / etp, layout.etp = etp, layout.dp = ranks / tp;
            layout.overlap = overlap;
            if (ranks % tp == 0 && ranks % etp == 0 && ranks * pp < 8 && !(overlap && ranks == 1))
              one.push_back(layout);
          }
  for (const ParallelLayout &decode : one)
    for (const ParallelLayout &prefill : one)
      for (int64_t r = 1; r * prefill.devices() + decode.devices() <= 8; ++r)
        for (int64_t n = 1; r * prefill.devices() + n * decode.devices() <= 8; ++n) {
          ParallelLayout layout = decode, other = prefill;
          layout.replicas = n, other.replicas = r;
          layout.prefill = std::make_shared<const ParallelLayout>(other);
          if (Expected<ClusterPlan> plan = evaluate(q.request, layout))
            best = std::min(best, sign * *plan->figure(key));
        }
  return best;
}

TEST(TwoPoolsTest, SearchesFindWhatNestedLoopsFind) {
  Question q("olmoe-1b-7b", "h100x8");
  q.workload.serve.timePerToken = Seconds(4e-3);
  q.workload.serve.timeToFirstToken = Seconds(0.1);
  const double best = -bruteForce(q, "output_tokens_per_s", -1);
  PlanSearch result = found(q);
  EXPECT_GE(*result.best.figure("output_tokens_per_s"), best * (1 - 1e-9));
  if (result.best.layout.prefill) {
    EXPECT_NEAR(*result.best.figure("output_tokens_per_s"), best, 1e-9 * best);
  }
}

TEST(TwoPoolsTest, TightTargetsMakeTwoPoolsWin) {
  Question q("deepseek-v3", "256-h800");
  q.workload.serve.prompt = Lengths::fixed(4000);
  q.workload.serve.timePerToken = Seconds(0.03);
  PlanSearch result = found(q);
  EXPECT_TRUE(result.best.layout.prefill) << format(result.best.layout, PlanPhase::Serve);
  // One pool is among those that lose, and is said why.
  bool one = false;
  for (const RunnerUp &runner : result.runnersUp)
    one |= !runner.plan.layout.prefill && has(runner.loses, "fewer tokens/s; ");
  EXPECT_TRUE(one);
}

TEST(TwoPoolsTest, ArrivalsAndLengthsDecideTheRatio) {
  Question q("deepseek-v3", "256-h800");
  q.request.objective = Objective::Devices;
  q.workload.serve.timePerToken = Seconds(0.03);
  auto ratio = [&](int64_t prompt, int64_t output) {
    q.workload.serve.prompt = Lengths::fixed(prompt);
    q.workload.serve.output = Lengths::fixed(output);
    q.workload.serve.arrivalRate = 20;
    const PlanSearch result = found(q);
    for (const ClusterPlan &plan : result.frontier)
      if (plan.layout.prefill)
        return *plan.figure("prefill_devices") / *plan.figure("decode_devices");
    return 0.0;
  };
  EXPECT_GT(ratio(6000, 200), ratio(500, 1500));
}

} // namespace

//===- SearchTest.cpp - The best layout is the best ---------------------------===//
#include "ClusterQuestion.h"

using namespace k2c;
using namespace k2c::test;

namespace {

PlanSearch found(Question &q) {
  Expected<PlanSearch> result = search(q.request);
  EXPECT_TRUE(result) << (result ? "" : result.error().text());
  return result ? *result : PlanSearch();
}

/// The best value that nested loops over all small layouts find; less is better.
double bruteForce(Question &q, const char *key, double sign, const std::vector<ParallelLayout> &layouts) {
  double best = std::numeric_limits<double>::infinity();
  for (const ParallelLayout &layout : layouts)
    if (Expected<ClusterPlan> plan = evaluate(q.request, layout))
      best = std::min(best, sign * *plan->figure(key));
  return best;
}

std::vector<ParallelLayout> allOfEight() {
  std::vector<ParallelLayout> all;
  for (int64_t tp : {1, 2, 4, 8})
    for (int64_t pp : {1, 2, 4, 8})
      for (int64_t ranks : {1, 2, 4, 8})
        for (int64_t etp : {1, 2, 4, 8})
          for (bool overlap : {false, true}) {
            ParallelLayout layout;
            layout.tp = tp, layout.pp = pp, layout.ep = ranks / etp, layout.etp = etp, layout.dp = ranks / tp;
            layout.overlap = overlap;
            if (ranks % tp || ranks % etp || ranks * pp > 8 || (overlap && ranks == 1))
              continue;
            layout.replicas = 8 / (ranks * pp);
            all.push_back(layout);
          }
  return all;
}

/// Of one pool; TwoPoolsTest looks at two.
double bestOfOnePool(const PlanSearch &result, const char *key) {
  if (!result.best.layout.prefill)
    return *result.best.figure(key);
  for (const RunnerUp &runner : result.runnersUp)
    if (!runner.plan.layout.prefill)
      return *runner.plan.figure(key);
  return 0;
}

TEST(SearchTest, FindsWhatNestedLoopsFind) {
  for (const char *model : {"deepseek-v2-lite", "olmoe-1b-7b", "mixtral-8x22b"}) {
    Question q(model, "h100x8");
    EXPECT_DOUBLE_EQ(bestOfOnePool(found(q), "output_tokens_per_s"),
                     -bruteForce(q, "output_tokens_per_s", -1, allOfEight()))
        << model;
    q.request.objective = Objective::Latency;
    EXPECT_DOUBLE_EQ(bestOfOnePool(found(q), "tpot_s"), bruteForce(q, "tpot_s", 1, allOfEight())) << model;
  }
}

TEST(SearchTest, FindsWhatNestedLoopsFindForTraining) {
  Question q("olmoe-1b-7b", "h100x8", PlanPhase::Train);
  q.workload.train.batchTokens = 64 * 4096;
  const auto elementwise = RecomputeSet(uint8_t(RecomputeSet::Norms) | uint8_t(RecomputeSet::Activations));
  std::vector<ParallelLayout> all;
  for (int64_t tp : {1, 2, 4, 8})
    for (int64_t pp : {1, 2, 4, 8})
      for (auto [ep, etp] : std::vector<std::pair<int64_t, int64_t>>{
               {1, 1}, {2, 1}, {4, 1}, {8, 1}, {1, 2}, {1, 4}, {1, 8}, {2, 2}, {2, 4}, {4, 2}})
        for (PipelineKind kind : {PipelineKind::OneFOneB, PipelineKind::ZeroBubbleH1, PipelineKind::Interleaved,
                                  PipelineKind::DualPipe, PipelineKind::DualPipeV})
          for (int64_t chunks : {1, 2, 4})
            for (bool overlap : {false, true})
              for (RecomputeSet set : {RecomputeSet::None, elementwise, RecomputeSet::Layer})
                for (Zero zero : {Zero::Os, Zero::OsGParams})
                  for (int64_t size : {1, 2, 4}) {
                    ParallelLayout layout;
                    layout.tp = tp, layout.pp = pp, layout.ep = ep, layout.etp = etp,
                    layout.dp = std::max<int64_t>(1, 8 / (tp * pp));
                    layout.sp = tp > 1, layout.schedule = kind, layout.chunks = chunks, layout.overlap = overlap;
                    layout.recompute = set, layout.zero = zero, layout.microbatchSize = size;
                    const bool isInterleaved = kind == PipelineKind::Interleaved;
                    if (layout.devices() == 8 && isInterleaved == (chunks > 1) &&
                        (pp > 1 || kind == PipelineKind::OneFOneB))
                      for (Offload offload : {Offload::None, Offload::Activations, Offload::Optimizer, Offload::Both}) {
                        layout.offload = offload;
                        all.push_back(layout);
                      }
                  }
  EXPECT_NEAR(*found(q).best.figure("tokens_per_s"), -bruteForce(q, "tokens_per_s", -1, all),
              1e-9 * *found(q).best.figure("tokens_per_s"));
}

/// Slow links favour stages, which keep activations of many micro-batches.
TEST(SearchTest, OffloadsWhereMemoryRefusesWhatIsFaster) {
  Question q("olmoe-1b-7b", "h100x8", PlanPhase::Train);
  q.workload.train.batchTokens = 256 * 4096;
  q.machines.device.memory.value = Bytes(24'000'000'000);
  q.machines.tiers[0].bandwidth.value = Bandwidth(10e9);
  const PlanSearch with = found(q);
  q.machines.host.reset();
  const PlanSearch without = found(q);
  EXPECT_NE(with.best.layout.offload, Offload::None);
  EXPECT_EQ(without.best.layout.offload, Offload::None);
  EXPECT_GT(*with.best.figure("tokens_per_s"), *without.best.figure("tokens_per_s"));
  EXPECT_GT(with.candidates, without.candidates);
}

/// A search extrapolates a pipeline's steady state; the plan it returns is simulated whole.
TEST(SearchTest, ManyMicrobatchesTakeWhatTheWholeSimulationSays) {
  Question q("olmoe-1b-7b", "h100x8", PlanPhase::Train);
  q.workload.train.batchTokens = int64_t(4096) * 4096;
  PlanSearch result = found(q);
  Expected<ClusterPlan> again = evaluate(q.request, result.best.layout);
  ASSERT_TRUE(again);
  EXPECT_DOUBLE_EQ(*again->figure("step_s"), *result.best.figure("step_s"));
  for (const RunnerUp &runner : result.runnersUp)
    EXPECT_LE(*runner.plan.figure("tokens_per_s"), *result.best.figure("tokens_per_s") * (1 + 1e-9));
}

TEST(SearchTest, EachObjectiveIsBestAtItsOwn) {
  Question q("kimi-k2", "256-h800");
  q.workload.dollarsPerDeviceHour = 2;
  q.workload.serve.timePerToken = Seconds(0.2);
  std::map<Objective, ClusterPlan> best;
  for (Objective objective :
       {Objective::Throughput, Objective::Latency, Objective::Devices, Objective::ExpertParallel, Objective::Cost}) {
    q.request.objective = objective;
    best[objective] = found(q).best;
  }
  for (const auto &[objective, plan] : best) {
    EXPECT_GE(*best[Objective::Throughput].figure("output_tokens_per_s"), *plan.figure("output_tokens_per_s"));
    EXPECT_LE(*best[Objective::Latency].figure("tpot_s"), *plan.figure("tpot_s"));
    EXPECT_LE(best[Objective::Devices].devices, plan.devices);
    EXPECT_LE(best[Objective::ExpertParallel].layout.ep, std::max(plan.layout.ep, plan.layoutOf("prefill").ep));
    EXPECT_LE(*best[Objective::Cost].figure("dollars_per_million_tokens"), *plan.figure("dollars_per_million_tokens"));
    EXPECT_LE(*plan.figure("tpot_s"), 0.2) << nameOf(objective);
    EXPECT_TRUE(plan.fits());
  }
  EXPECT_LT(best[Objective::Devices].devices, 256);
}

TEST(SearchTest, FewestDevicesServeWhatArrives) {
  Question q("kimi-k2", "256-h800");
  q.request.objective = Objective::Devices;
  q.workload.serve.arrivalRate = 20;
  const PlanSearch few = found(q);
  q.workload.serve.arrivalRate = 200;
  const PlanSearch many = found(q);
  EXPECT_GT(many.best.devices, few.best.devices);
  EXPECT_NEAR(*many.best.figure("requests_per_s"), 200, 1e-6);
}

TEST(SearchTest, FrontierHasNoPlanThatAnotherCovers) {
  Question q("deepseek-v3", "4x8-h100");
  PlanSearch result = found(q);
  EXPECT_GT(result.frontier.size(), 2u);
  EXPECT_EQ(format(result.frontier.front().layout, PlanPhase::Serve), format(result.best.layout, PlanPhase::Serve));
  for (const ClusterPlan &a : result.frontier)
    for (const ClusterPlan &b : result.frontier)
      if (&a != &b) {
        EXPECT_FALSE(*a.figure("output_tokens_per_s") >= *b.figure("output_tokens_per_s") &&
                     *a.figure("tpot_s") <= *b.figure("tpot_s") && a.devices <= b.devices);
      }
}

TEST(SearchTest, RunnersUpSayWhatTheyCost) {
  Question q("kimi-k2", "4x8-h100");
  PlanSearch result = found(q);
  ASSERT_FALSE(result.runnersUp.empty());
  for (const RunnerUp &runner : result.runnersUp) {
    EXPECT_TRUE(has(runner.loses, "fewer tokens/s"));
    if (runner.plan.layout.prefill)
      continue;
    // Prompts and tokens share the devices, and the part that is named takes more of them for a token than the best's:
    // its share of the phase that it belongs to.
    const double prompts = *runner.plan.figure("prefill_busy"), tokens = *runner.plan.figure("decode_busy");
    EXPECT_NEAR(prompts + tokens, 1, 1e-9);
    auto cost = [&](const ClusterPlan &plan) {
      double sum = 0, named = 0;
      const bool isPrefill = has(runner.loses, "; prefill: ");
      for (const StepPart &part : plan.steps)
        if (part.phase == (isPrefill ? "prefill" : "decode")) {
          sum += part.seconds.value;
          named += has(runner.loses, ": " + part.name + " takes") ? part.seconds.value : 0;
        }
      return named / sum * *plan.figure(isPrefill ? "prefill_busy" : "decode_busy") * double(plan.devices) /
             *plan.figure("output_tokens_per_s");
    };
    EXPECT_GT(cost(runner.plan), cost(result.best)) << runner.loses;
    EXPECT_TRUE(has(runner.loses, " takes " + format(Seconds(cost(runner.plan))) + " of a device for a token"));
  }
}

TEST(SearchTest, NothingFitsSaysHowClose) {
  Question q("kimi-k2", "h100x8");
  Expected<PlanSearch> none = search(q.request);
  ASSERT_FALSE(none);
  EXPECT_TRUE(has(none.error().text(), "model 'kimi-k2' on topology 'h100x8': none of "));
  EXPECT_TRUE(has(none.error().text(), " layouts holds: the smallest, "));
  EXPECT_TRUE(has(none.error().text(), " of a device's 74.51 GiB (80.00 GB); memory refuses "));
}

TEST(SearchTest, CostNeedsAPrice) {
  Question q("kimi-k2", "4x8-h100");
  q.request.objective = Objective::Cost;
  Expected<PlanSearch> none = search(q.request);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text(),
            "--objective cost: the workload has no price; add dollars_per_device_hour to the workload");
}

TEST(SearchTest, DefaultsUseAllDevicesInReplicasThatHoldTheModel) {
  for (const auto &[model, text] :
       {std::pair("kimi-k2", "ep=32,dp=32"), std::pair("deepseek-v3", "ep=16,dp=16,replicas=2")}) {
    Question q(model, "4x8-h100"); // 24 devices hold Kimi K2, but leave 8 idle
    Expected<ClusterPlan> plan = evaluateDefault(q.request);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->devices, 32);
    EXPECT_EQ(format(plan->layout, PlanPhase::Serve).rfind(text, 0), 0u) << format(plan->layout, PlanPhase::Serve);
  }
  for (const char *model : {"llama-3.1-405b", "dbrx", "grok-1", "gpt-oss-120b", "switch-c-2048"}) {
    Question other(model, "256-h800");
    EXPECT_TRUE(evaluateDefault(other.request)) << model;
  }
}

} // namespace

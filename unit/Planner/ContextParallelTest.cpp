//===- ContextParallelTest.cpp - Ranks that share a sequence, or an expert -===//
#include "ClusterQuestion.h"
#include "k2c/Planner/Count.h"
#include "k2c/Planner/TrainingMemory.h"

using namespace k2c;
using namespace k2c::test;

namespace {

Question longPrompts(const char *model, const char *cluster, int64_t tokens = 100'000) {
  Question q(model, cluster);
  q.workload.serve.prompt = Lengths::fixed(tokens);
  q.workload.peakRouting = Routing::Mean;
  return q;
}

double bytesOf(const ClusterPlan &plan, const std::string &part) {
  for (const MemoryPart &each : plan.memory.front().parts)
    if (each.name == part)
      return double(each.bytes.value);
  return 0;
}

double linksOf(const ClusterPlan &plan, const std::string &phase, const std::string &part) {
  for (const StepPart &step : plan.steps)
    if (step.phase == phase && step.name == part)
      return step.linkBytes;
  return 0;
}

TEST(ContextParallelTest, EachDeviceHoldsItsShareOfTheCache) {
  for (const char *model : {"kimi-k2", "gpt-oss-120b"}) {
    Question q = longPrompts(model, "4x8-h100");
    q.workload.serve.batch = 32;
    const double one = bytesOf(q.plan("ep=32,step=1024"), "cache"); // 1 sequence on each of 32 devices
    ClusterPlan shared = q.plan("ep=32,cp=8,step=8192");            // 8 sequences on each 8 devices
    EXPECT_EQ(shared.layout.dp, 4);
    EXPECT_NEAR(bytesOf(shared, "cache"), one, 0.01 * one) << model;
    q.workload.serve.batch = 4; // 1 sequence on each 8 devices
    EXPECT_NEAR(8 * bytesOf(q.plan("ep=32,cp=8,step=8192"), "cache"), one, 0.01 * one) << model;
  }
}

TEST(ContextParallelTest, LongPromptsAreReadSoonerByMoreDevices) {
  Question q = longPrompts("kimi-k2", "4x8-h100");
  q.workload.serve.batch = 4;
  double before = std::numeric_limits<double>::infinity();
  for (const char *layout :
       {"ep=32,step=4096", "ep=32,cp=2,step=8192", "ep=32,cp=4,step=16384", "ep=32,cp=8,step=32768"}) {
    const double seconds = *q.plan(layout).figure("ttft_s");
    EXPECT_LT(seconds, before) << layout;
    before = seconds;
  }
}

/// Of a prompt's step, every device of eight gets the seven eighths of all latents that others cached.
TEST(ContextParallelTest, PromptsPassTheKeys) {
  Question q = longPrompts("kimi-k2", "4x8-h100", 65536);
  q.workload.serve.batch = 4;
  ClusterPlan plan = q.plan("ep=32,cp=8,step=65536");
  const double latents = 65536.0 * 61 * (512 + 64) * 2;
  EXPECT_NEAR(linksOf(plan, "prefill", "context parallel"), latents * 7 / 8, 1e-3 * latents);
}

/// Of a decode step, a device gets the queries that others own, in bf16, and returns as many partial outputs in f32
/// with their log-sum-exp.
TEST(ContextParallelTest, DecodingPassesTheQueries) {
  Question q = longPrompts("kimi-k2", "4x8-h100");
  q.workload.serve.batch = 32;
  ClusterPlan plan = q.plan("ep=32,cp=8,step=8192");
  const double row = 61 * 64 * ((512 + 64) * 2 + (512 + 1) * 4.0);
  EXPECT_NEAR(linksOf(plan, "decode", "context parallel"), 8 * row * 7 / 8, 1e-6 * row);
}

TEST(ContextParallelTest, WorkOfAStepIsDividedNotRepeated) {
  Question q = longPrompts("mixtral-8x22b", "4x8-h100", 30'000);
  auto flops = [&](const char *layout) {
    double sum = 0;
    const ClusterPlan plan = q.plan(layout);
    for (const StepPart &step : plan.steps)
      sum += step.phase == "decode" && step.name == "attention" ? step.flops.value : 0;
    return sum;
  };
  // One sequence of a device, or an eighth of eight.
  q.workload.serve.batch = 8;
  const double one = flops("ep=8,replicas=1,step=1024");
  EXPECT_NEAR(flops("ep=8,cp=8,replicas=1,step=8192"), one, 1e-9 * one);
}

TEST(ContextParallelTest, SearchesUseItForLongPromptsOnly) {
  Question q = longPrompts("kimi-k2", "4x8-h100");
  q.workload.serve.timeToFirstToken = Seconds(3); // sooner than one device computes a prompt
  Expected<PlanSearch> found = search(q.request);
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_GT(found->best.layout.cp, 1) << format(found->best.layout, PlanPhase::Serve);
  q.workload.serve.prompt = Lengths::fixed(4000);
  found = search(q.request);
  ASSERT_TRUE(found);
  for (const ClusterPlan &plan : found->frontier)
    EXPECT_EQ(plan.layout.cp, 1);
}

//===----------------------------------------------------------------------===//
// Expert tensor parallelism
//===----------------------------------------------------------------------===//

TEST(ExpertTensorTest, TrainingSendsRowsToTheRanksOfAnExpert) {
  Question q("mixtral-8x22b", "256-h800", PlanPhase::Train);
  q.request.mustFit = false;
  const char *rest = ",dp=16,pp=4,tp=4,sp=1,recompute=full,zero=os";
  ClusterPlan whole = q.plan(std::string("ep=8") + rest), divided = q.plan(std::string("ep=8,etp=4") + rest);
  EXPECT_GT(linksOf(divided, "forward", "dispatch, combine"), linksOf(whole, "forward", "dispatch, combine"));
  // Each rank holds a quarter of its expert.
  EXPECT_LT(divided.fullest().parameters, whole.fullest().parameters);
}

TEST(ExpertTensorTest, ActivationsKeepAllRowsOfAQuarterOfTheWidth) {
  const ModelSpec spec = *loadPublishedModel("mixtral-8x22b");
  Microbatch batch;
  batch.tokens = 4096, batch.ep = 8;
  const double whole = moeActivations(spec, batch, Recompute::None, false);
  batch.etp = 4;
  const double divided = moeActivations(spec, batch, Recompute::None, false);
  const double rows = 4096.0 * double(spec.moe->topK);
  EXPECT_DOUBLE_EQ(divided - whole, rows * 3 * 3 * double(spec.hidden)); // inputs and outputs of three more ranks
}

TEST(ExpertTensorTest, SearchesOfFewLargeExpertsDivideThem) {
  Question q("mixtral-8x22b", "4x8-h100", PlanPhase::Train);
  q.request.objective = Objective::ExpertParallel;
  Expected<PlanSearch> found = search(q.request);
  ASSERT_TRUE(found) << found.error().text();
  EXPECT_GT(found->best.layout.etp, 1) << format(found->best.layout, PlanPhase::Train);
}

} // namespace

//===- AdviceTest.cpp - What makes the longest part of a phase shorter ----===//

#include "SamplePlan.h"

#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::test;

namespace {

/// What is advised where the step is `part` alone.
std::string advice(ClusterPlan plan, const StepPart &part) {
  plan.steps = {part};
  plan.timeline.clear();
  plan.memory.resize(1);
  const Topology topology = sampleTopology();
  const PlanSummary summary = summarize({plan, topology});
  EXPECT_EQ(summary.advice.size(), 1u);
  return summary.advice.empty() ? "" : summary.advice.back();
}

StepPart reads(const char *phase, const char *name) {
  return {phase, name, Seconds(0.01), Flops(4e10), 2e10, 0, "", Bound::Memory};
}

StepPart moves(const char *phase, const char *name, const char *tier, Bound bound = Bound::Link) {
  return {phase, name, Seconds(0.01), Flops(0), 0, 1e8, tier, bound};
}

/// `sampleServing` with caches that fill the device.
ClusterPlan fullServing() {
  ClusterPlan plan = sampleServing();
  plan.memory[0].parts[3].bytes = Bytes(37'000'000'000);
  return plan;
}

TEST(Advice, ArithmeticTakesMoreDevicesOrANarrowerFormat) {
  EXPECT_EQ(advice(sampleServing(), {"prefill", "attention", Seconds(1), Flops(1e13), 1e9, 0, "", Bound::Compute}),
            "prefill: more GPUs, or weights and activations in a narrower format, shorten it");
}

TEST(Advice, OneDeviceIsNotToldToBecomeMore) {
  ClusterPlan plan = sampleServing();
  plan.available = 1;
  EXPECT_EQ(advice(plan, {"prefill", "attention", Seconds(1), Flops(1e13), 1e9, 0, "", Bound::Compute}),
            "prefill: weights and activations in a narrower format shorten it");
}

TEST(Advice, MoreSequencesShareReadsWhileThereIsMemory) {
  EXPECT_EQ(advice(sampleServing(), reads("decode", "experts")),
            "decode, experts: 2 FLOP/byte; serve more sequences at once, or raise ep so that each rank reads fewer "
            "experts");
  EXPECT_EQ(
      advice(sampleServing(), reads("decode", "attention")),
      "decode, attention: 2 FLOP/byte; serve more sequences at once, or keep fewer cached tokens or a KV cache in "
      "FP8");
  EXPECT_EQ(advice(fullServing(), reads("decode", "experts")),
            "decode, experts: 2 FLOP/byte; raise ep so that each rank reads fewer experts");
  EXPECT_EQ(advice(fullServing(), reads("decode", "attention")),
            "decode, attention: 2 FLOP/byte; keep fewer cached tokens or a KV cache in FP8");
}

TEST(Advice, ALinearThatReadsItsWeightsIsToldOfTheirFormat) {
  EXPECT_EQ(advice(fullServing(), reads("decode", "dense, shared, router")),
            "decode, dense, shared, router: 2 FLOP/byte; hold its weights in a narrower format");
}

TEST(Advice, TrainingReadsOnceForAMicroBatch) {
  EXPECT_EQ(advice(sampleTraining(), reads("forward", "attention")),
            "forward, attention: 2 FLOP/byte; a larger micro-batch or longer sequences raise it");
  EXPECT_EQ(advice(sampleTraining(), {"update", "optimizer", Seconds(1), Flops(0), 2e10, 0, "", Bound::Memory}),
            "update, optimizer: only moves bytes; zero=os divides states among data-parallel ranks");
}

TEST(Advice, TransfersStayInsideAFasterTierOrRunBesideWork) {
  ClusterPlan plan = sampleServing();
  EXPECT_EQ(advice(plan, moves("decode", "dispatch", "network")),
            "decode: the traffic of dispatch crosses tier network; keep its ranks inside a faster tier, or hide it "
            "behind work "
            "(overlap=1)");
  EXPECT_EQ(advice(plan, moves("decode", "dispatch", "node")),
            "decode: the traffic of dispatch crosses tier node; hide it behind work (overlap=1)");
  plan.layout.overlap = true;
  EXPECT_EQ(
      advice(plan, moves("decode", "dispatch", "node")),
      "decode: the traffic of dispatch crosses tier node; lower its bytes (narrower dispatch, fewer nodes a token)");
}

TEST(Advice, GradientsThatAreDividedAreSummedForEachMicroBatch) {
  ClusterPlan plan = sampleTraining();
  plan.layout.zero = Zero::OsG;
  EXPECT_EQ(advice(plan, moves("exchange", "gradients", "network")),
            "exchange: gradients cross tier network; zero=os sums gradients once a step, larger micro-batches less "
            "often");
}

TEST(Advice, SmallMessagesAreJoined) {
  EXPECT_EQ(advice(sampleServing(), moves("decode", "tensor parallel", "node", Bound::Latency)),
            "decode: the messages of tensor parallel are too small for the link; more tokens a step or fewer ranks in "
            "the group make them larger");
}

} // namespace

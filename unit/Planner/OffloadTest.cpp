//===- OffloadTest.cpp - Activations in the memory of the host ----------------===//
#include "ClusterQuestion.h"

using namespace k2c;
using namespace k2c::test;

namespace {

const char *const layoutText = "ep=16,dp=128,pp=16,recompute=k2,zero=os";

/// Kimi K2 on 2048 H800.
struct Offloading : Question {
  Offloading() : Question("kimi-k2", "2048-h800", PlanPhase::Train) { request.mustFit = false; }
  ClusterPlan with(const std::string &more = "") {
    return plan(std::string(layoutText) + ",offload=activations" + more);
  }
};

int64_t activations(const RankMemory &memory) {
  for (const MemoryPart &part : memory.parts)
    if (part.name == "activations")
      return part.bytes.value;
  return 0;
}

TEST(OffloadTest, TwoPassesStayOnTheDeviceAndAllLieOnTheHost) {
  Offloading q;
  const ClusterPlan without = q.plan(layoutText), with = q.with();
  EXPECT_FALSE(without.host);
  ASSERT_TRUE(with.host);
  // 1F1B keeps 16 on the first rank and one on the last.
  EXPECT_NEAR(double(activations(with.memory[0])), double(activations(without.memory[0])) / 8, 16);
  EXPECT_EQ(activations(with.memory[15]), activations(without.memory[15]));
  EXPECT_EQ(with.memory[0].host.value, activations(without.memory[0]));
  // Eight devices of a node run one stage.
  int64_t most = 0;
  for (const RankMemory &ranks : with.memory)
    most = std::max(most, ranks.host.value);
  EXPECT_NEAR(double(with.host->bytes.value), 8 * double(most), 16);
  EXPECT_EQ(with.host->capacity, Bytes(2'000'000'000'000));
}

TEST(OffloadTest, NodesOfSeveralStagesHoldTheirSum) {
  Offloading q;
  const ClusterPlan plan = q.plan("ep=2,dp=2,pp=16,recompute=k2,zero=os,microbatches=64,offload=activations");
  EXPECT_NEAR(double(plan.host->bytes.value),
              2 * double(plan.memory[0].host.value + plan.memory[1].host.value + plan.memory[2].host.value +
                         plan.memory[3].host.value),
              16);
}

TEST(OffloadTest, BytesMoveOnceEachWayForEveryMicrobatch) {
  Offloading q;
  const ClusterPlan plan = q.with();
  double out = 0, in = 0;
  for (const StepPart &step : plan.steps) {
    out += step.name == "activations to host" ? step.linkBytes : 0;
    in += step.name == "activations back" ? step.linkBytes : 0;
  }
  EXPECT_GT(out, 0);
  EXPECT_DOUBLE_EQ(out, in);
  const double each = double(activations(plan.memory[15])); // the slowest stage, which has the head, and one pass
  EXPECT_NEAR(out, each * double(plan.layout.microbatches), 1e-6 * out);
}

TEST(OffloadTest, WhatHidesBehindThePassesCostsNothing) {
  Offloading q;
  q.machines.host->bandwidth.value = Bandwidth(1e12);
  EXPECT_DOUBLE_EQ(*q.with().figure("step_s"), *q.plan(layoutText).figure("step_s"));
}

TEST(OffloadTest, WhatDoesNotHideLengthensTheStep) {
  Offloading q;
  q.machines.host->bandwidth.value = Bandwidth(8e9);
  const ClusterPlan plan = q.with();
  double sum = 0, exposed = 0;
  for (const StepPart &step : plan.steps) {
    sum += step.exposed().value;
    exposed += step.tier == "host" ? step.exposed().value : 0;
  }
  EXPECT_GT(exposed, 0);
  EXPECT_GT(*plan.figure("step_s"), *q.plan(layoutText).figure("step_s") + 0.99 * exposed);
  EXPECT_NEAR(sum, *plan.figure("step_s"), 0.02 * sum);
}

TEST(OffloadTest, NeedsAHostThatIsLargeEnough) {
  Offloading q;
  q.request.mustFit = true;
  const std::string text = "ep=16,dp=128,pp=16,recompute=full,zero=os,offload=activations";
  EXPECT_EQ(q.refusal(text), "accepted");
  q.machines.host->memory.value = Bytes(1'000'000'000);
  EXPECT_EQ(q.refusal(text).find("offload: the fullest node's host holds "), 0u) << q.refusal(text);
  q.machines.host.reset();
  EXPECT_EQ(q.refusal(text),
            "offload: topology '2048-h800' does not say what memory its nodes have; add host: {memory: "
            "2 TB, bandwidth: 64 GB/s}");
}

TEST(OffloadTest, LayoutsNameIt) {
  EXPECT_EQ(format(layout("ep=16,dp=16,offload=activations", PlanPhase::Train), PlanPhase::Train),
            "ep=16,dp=16,offload=activations");
  Expected<ParallelLayout> bad = parseLayout("offload=states", PlanPhase::Train);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().text(), "--layout: offload is 'states'; use one of none, activations");
}

} // namespace

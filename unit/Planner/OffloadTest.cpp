//===- OffloadTest.cpp - Activations and states in the memory of the host -----===//
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

int64_t bytesOf(const RankMemory &memory, const std::string &name) {
  for (const MemoryPart &part : memory.parts)
    if (part.name == name)
      return part.bytes.value;
  return 0;
}

int64_t activations(const RankMemory &memory) { return bytesOf(memory, "activations"); }

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

/// States leave the device; the host holds them and the gradients that update them, 8 and 4 bytes of a parameter.
TEST(OffloadTest, OptimizerStatesLieOnTheHost) {
  Offloading q;
  const ClusterPlan without = q.plan(layoutText), with = q.plan(std::string(layoutText) + ",offload=optimizer");
  for (size_t stage = 0; stage < 16; ++stage) {
    const int64_t states = bytesOf(without.memory[stage], "optimizer");
    EXPECT_GT(states, 0);
    EXPECT_EQ(bytesOf(with.memory[stage], "optimizer"), 0);
    EXPECT_EQ(bytesOf(with.memory[stage], "gradients"), bytesOf(without.memory[stage], "gradients"));
    EXPECT_NEAR(double(with.memory[stage].host.value), 1.5 * double(states), 16);
    // Fragmentation is a share of what comes and goes.
    EXPECT_NEAR(double((without.memory[stage].total() - with.memory[stage].total()).value), double(states), 16);
  }
  const ClusterPlan both = q.plan(std::string(layoutText) + ",offload=activations+optimizer");
  EXPECT_EQ(both.memory[0].host, with.memory[0].host + q.with().memory[0].host);
  EXPECT_NEAR(double(with.host->bytes.value), 8 * double(with.memory[1].host.value),
              0.2 * double(with.host->bytes.value));
}

/// Gradients go down, the processors update, parameters come back; the longest of the three is what the step takes.
TEST(OffloadTest, HostsUpdateBesideTheirLink) {
  Offloading q;
  const std::string text = std::string(layoutText) + ",offload=optimizer";
  for (double memory : {1e11, 1e15}) {
    q.machines.host->memoryBandwidth = {Bandwidth(memory), "a test"};
    const ClusterPlan plan = q.plan(text);
    double longest = 0, shown = 0, gradients = 0, parameters = 0;
    for (const StepPart &step : plan.steps)
      if (step.phase == "optimizer") {
        EXPECT_EQ(step.tier, "host");
        longest = std::max(longest, step.seconds.value), shown += step.exposed().value;
        gradients += step.name == "gradients to host" ? step.linkBytes : 0;
        parameters += step.name == "parameters back" ? step.linkBytes : 0;
      }
    EXPECT_EQ(shown, longest);
    EXPECT_EQ(part(plan, "optimizer", "update on host") == longest, memory < 1e12);
    EXPECT_DOUBLE_EQ(gradients, 2 * parameters); // 4 and 2 bytes
    EXPECT_NEAR(gradients, double(bytesOf(q.plan(layoutText).memory[1], "optimizer")) / 2, 0.1 * gradients);
    const ClusterPlan device = q.plan(layoutText);
    EXPECT_NEAR(*plan.figure("step_s") - *device.figure("step_s"), longest - part(device, "optimizer", "update"), 1e-9);
  }
}

TEST(OffloadTest, HostsOfUnknownSpeedAreNamed) {
  Offloading q;
  auto says = [&] {
    for (const std::string &note : q.plan(std::string(layoutText) + ",offload=optimizer").notes)
      if (note.find("(host: memory_bandwidth)") != std::string::npos)
        return true;
    return false;
  };
  EXPECT_FALSE(says());
  q.machines.host->memoryBandwidth.reset();
  EXPECT_TRUE(says());
}

TEST(OffloadTest, StatesNeedAHostThatIsLargeEnough) {
  Offloading q;
  q.request.mustFit = true;
  q.machines.host->memory.value = Bytes(200'000'000'000);
  const std::string text = "ep=16,dp=128,pp=16,recompute=full,offload=optimizer,zero=";
  EXPECT_EQ(q.refusal(text + "none").find("offload: the fullest node's host holds "), 0u) << q.refusal(text + "none");
  EXPECT_EQ(q.refusal(text + "os"), "accepted");
}

TEST(OffloadTest, SearchMovesStatesWhereMemoryRefusesWhatIsFaster) {
  Question q("olmoe-1b-7b", "h100x8", PlanPhase::Train);
  q.workload.train.batchTokens = 256 * 4096;
  q.machines.device.memory.value = Bytes(12'000'000'000);
  Expected<PlanSearch> with = search(q.request);
  q.machines.host.reset();
  Expected<PlanSearch> without = search(q.request);
  ASSERT_TRUE(with);
  EXPECT_TRUE(offloads(with->best.layout.offload, Offload::Optimizer)) << format(with->best.layout, PlanPhase::Train);
  EXPECT_TRUE(!without || *with->best.figure("tokens_per_s") > *without->best.figure("tokens_per_s"));
}

TEST(OffloadTest, LayoutsNameIt) {
  EXPECT_EQ(format(layout("ep=16,dp=16,offload=activations", PlanPhase::Train), PlanPhase::Train),
            "ep=16,dp=16,offload=activations");
  EXPECT_EQ(format(layout("dp=16,offload=activations+optimizer", PlanPhase::Train), PlanPhase::Train),
            "dp=16,offload=activations+optimizer");
  Expected<ParallelLayout> bad = parseLayout("offload=states", PlanPhase::Train);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().text(),
            "--layout: offload is 'states'; use one of none, activations, optimizer, activations+optimizer");
}

} // namespace

//===- ExpertPartsTest.cpp - Plans whose ranks share experts ------------------===//
#include "ClusterQuestion.h"
#include "k2c/Planner/Planner.h"
#include "k2c/Planner/StepCost.h"
#include <map>

using namespace k2c;
using namespace k2c::test;

namespace {

/// Of a rank of a program of eight, in groups of `etp` that share experts.
Plan plannedOfEight(const ModelSpec &spec, int64_t etp) {
  Topology machines = topology("cpu4x2");
  machines.device.memory.value = gibibytes(1 << 14);
  PlanOptions options;
  options.layout = compileLayout(spec, machines);
  options.layout.ep /= etp;
  options.layout.etp = etp;
  Expected<Plan> plan = planHost(spec, machines, defaultLimits(spec), options);
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().text());
  return plan ? *plan : Plan();
}

double received(const ClusterPlan &plan, const std::string &phase, const std::string &tier) {
  for (const TierTraffic &traffic : plan.traffic)
    if (traffic.phase == phase && traffic.tier == tier)
      return traffic.bytes;
  return 0;
}

// Mixtral 8x22B: 56 layers of 8 experts, hidden 6144, inner width 16384, of which a token chooses 2.
constexpr int64_t layers = 56, hidden = 6144, inner = 16384;

/// On eight ranks whose machines hold it, which decode one sequence each.
struct Mixtral : Question {
  Mixtral() : Question("mixtral-8x22b", "cpu4x2") {
    machines.device.memory.value = gibibytes(1 << 14);
    workload.serve.batch = 8;
    workload.expertLoad.assign(8, 1);
    request.compute = DType::BF16;
  }
};

} // namespace

TEST(ExpertParts, ARankHasRowsOfGateAndUpAndColumnsOfDown) {
  const ModelSpec spec = published("mixtral-8x22b");
  const Plan whole = plannedOfEight(spec, 1), divided = plannedOfEight(spec, 2);
  std::map<std::string, int64_t> bytes = familyBytes(divided);
  EXPECT_EQ(divided.expertSlots, 2);
  EXPECT_EQ(bytes["experts_gate_up"], layers * 2 * (2 * inner / 2) * hidden * 2);
  EXPECT_EQ(bytes["experts_down"], layers * 2 * hidden * (inner / 2) * 2);
  EXPECT_EQ(divided.memory.weights, whole.memory.weights) << "two halves of experts, or one whole";
  EXPECT_EQ(divided.expertBytes, Bytes(layers * 3 * hidden * (inner / 2) * 2));
  EXPECT_EQ(divided.expertBytes * 2, whole.expertBytes);
}

// Two matrices an expert and layer: of one expert whole, of two experts in two parts each.
TEST(ExpertParts, TablesOfExpertsAreOfEachPart) {
  const ModelSpec spec = published("mixtral-8x22b");
  EXPECT_EQ(plannedOfEight(spec, 2).memory.reserve - plannedOfEight(spec, 1).memory.reserve,
            Bytes(layers * 2 * (2 * 2 - 1) * 512));
}

TEST(ExpertParts, AreSaidWithTheirSlots) {
  const ModelSpec spec = published("mixtral-8x22b");
  EXPECT_TRUE(has(plannedOfEight(spec, 2).remarks[0].text,
                  "as ep=4,etp=2,dp=8: sequences of their own, and 2 slots each for the 8 experts of a layer, of which "
                  "each of 2 has a part"));
  EXPECT_FALSE(has(plannedOfEight(spec, 1).remarks[0].text, "has a part"));
}

TEST(ExpertParts, ARankHasParametersOfItsParts) {
  const ModelSpec spec = published("mixtral-8x22b");
  const auto parameters = [&](int64_t etp) {
    const Plan plan = plannedOfEight(spec, etp);
    return describeHostPlan(spec, topology("cpu4x2"), plan).memory[0].parameters;
  };
  EXPECT_EQ(parameters(2), parameters(1));
}

// Twice as many choices fall on a group as on a rank alone, and each rank computes half of each.
TEST(ExpertParts, NoPartIsComputedTwice) {
  const ModelSpec spec = published("mixtral-8x22b");
  const auto experts = [&](int64_t etp) {
    for (const Work &each : stepWork(spec, plannedOfEight(spec, etp), {2, 3, 0}))
      if (each.name == "experts")
        return each;
    return Work();
  };
  EXPECT_DOUBLE_EQ(experts(1).flops.value, 2.0 * 6 * 2 * layers * 3 * inner * hidden / 8);
  EXPECT_DOUBLE_EQ(experts(2).flops.value, experts(1).flops.value);
  EXPECT_EQ(experts(2).bytes, experts(1).bytes);
}

// Of 8 experts a token chooses 2: of the C(8, 2) = 28 ways C(6, 2) = 15 avoid one of 4 groups, each on its own node.
// One row of bf16 goes to and from each group visited, but for one in 4; within a group the other rank gets each row
// that came, and sends back one of f32 for each of 2 choices.
TEST(ExpertParts, RowsGoToAGroupAndPartsComeBack) {
  Mixtral q;
  const ClusterPlan plan = q.plan("ep=4,etp=2");
  ASSERT_EQ(plan.whyNotCompilable, "");
  const double visited = 4 * (1 - 15 / 28.0), row = layers * hidden;
  EXPECT_NEAR(received(plan, "decode", "network"), row * (2 + 2) * visited * 3 / 4, 1);
  EXPECT_NEAR(received(plan, "decode", "node"), row * (2 * visited + 2 * 4), 1);
}

// A sequence of each of 2 ranks passes a stage at once, and goes from stage to stage between nodes.
TEST(ExpertParts, AGroupAloneExchangesWithinItself) {
  Mixtral q;
  const ClusterPlan plan = q.plan("etp=2,pp=4,dp=2");
  ASSERT_EQ(plan.whyNotCompilable, "");
  EXPECT_NEAR(received(plan, "decode", "node"), layers * hidden * (2 + 2 * 4), 1);
}

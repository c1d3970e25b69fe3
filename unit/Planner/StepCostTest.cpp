//===- StepCostTest.cpp - FLOP, bytes and seconds of one step -----------------===//
#include "k2c/Planner/StepCost.h"
#include "TestModels.h"
#include "k2c/Planner/Count.h"
#include "k2c/Planner/Planner.h"
#include <map>

using namespace k2c;
using namespace k2c::test;

namespace {

struct Case {
  ModelSpec spec;
  Plan plan;
  explicit Case(ModelSpec model) : spec(std::move(model)) {
    Expected<Plan> result = planHost(spec, machine(gibibytes(1 << 14)), defaultLimits(spec));
    EXPECT_TRUE(result);
    plan = *result;
  }
  std::map<std::string, Work> work(const StepShape &shape) {
    std::map<std::string, Work> result;
    for (const Work &work : stepWork(spec, plan, shape))
      result[work.name] = work;
    return result;
  }
};

} // namespace

TEST(Roofline, IsTheSlowerOfTheTwo) {
  Device device = machine(Bytes(1)).device; // two cores together: 200 GFLOP/s, 50 GB/s
  EXPECT_DOUBLE_EQ(roofline({"", Flops(200e9), Bytes(1)}, device, DType::F32).value, 1);
  EXPECT_DOUBLE_EQ(roofline({"", Flops(200e9), Bytes(1)}, device, DType::BF16).value, 0.5);
  EXPECT_DOUBLE_EQ(roofline({"", Flops(1), Bytes(100000000000)}, device, DType::F32).value, 2);
}

// Per token and layer: q and o 64 x 64, k and v 32 x 64, gate, up and down 96 x 64: 30720 multiply-adds.
TEST(StepCost, DenseModel) {
  Case tiny(tinyLlama());
  auto work = tiny.work({2, 3, 10});
  EXPECT_DOUBLE_EQ(work["linears"].flops.value, 2.0 * 6 * 2 * 30720);
  EXPECT_EQ(work["linears"].bytes, Bytes(192512 - 16384 * 3)) << "all but embedding, head and rotary table";
  EXPECT_DOUBLE_EQ(work["logits"].flops.value, 2.0 * 2 * 100 * 64) << "one row a sequence";
  EXPECT_EQ(work["experts"].bytes, Bytes(0));
  // 2 layers, 6 tokens, 10 + (3 + 1) / 2 keys on average, 4 heads of 16, scores and values.
  EXPECT_DOUBLE_EQ(work["attention"].flops.value, 2.0 * 6 * 12 * 4 * 2 * 16 * 2);
  EXPECT_EQ(work["attention"].bytes, Bytes(512 * 2 * 13));
}

// 256 experts, 8 a token: 2 tokens hit 15.75.
TEST(StepCost, ExpertsAreReadWhenTheyAreHit) {
  Case v3(published("deepseek-v3"));
  int64_t experts = 0;
  for (const FamilyBytes &family : v3.plan.families)
    if (family.family.rfind("experts_", 0) == 0)
      experts += family.bytes.value;
  EXPECT_NEAR(double(v3.work({2, 1, 0})["experts"].bytes.value), double(experts) * 15.75 / 256, 2);
  EXPECT_DOUBLE_EQ(v3.work({1, 1, 0})["experts"].flops.value, 2.0 * 8 * 58 * 3 * 7168 * 2048);
}

// At position 0 absorbed attention uses W_UK and W_UV once, and a little more; norms have no FLOP.
TEST(StepCost, ActiveParametersAreTwoFlopEach) {
  Case k2(published("kimi-k2"));
  Prediction step = predictStep(k2.spec, k2.plan, machine(Bytes(1)).device, {1, 1, 0});
  EXPECT_NEAR(step.flops.value / (2.0 * activeParameters(k2.spec, false).real()), 1, 1e-3);
}

TEST(StepCost, LongPromptsRunExpandedShortOnesAbsorbed) {
  Case k2(published("kimi-k2"));
  const AttentionSizes mla = attentionSizes(*k2.spec.latentAttention());
  double absorbed = k2.work({1, 170, 100000})["attention"].flops.value;
  EXPECT_DOUBLE_EQ(absorbed, 61 * absorbedFlops(mla, 170, 100000 + 85.5).value);
  double expanded = k2.work({1, 171, 100000})["attention"].flops.value; // 171 see 100086 on average, of 100171
  EXPECT_DOUBLE_EQ(expanded, 61 * (expandedFlops(mla, 171, 100086).value + expandedFlops(mla, 0, 85).value));
}

TEST(StepCost, DecodeTakesTheTimeOfItsBytes) {
  Case tiny(tinyLlama());
  Prediction step = predictStep(tiny.spec, tiny.plan, machine(Bytes(1)).device, {1, 1, 1});
  EXPECT_NEAR(step.seconds.value, double(step.bytes.value) / 50e9, 1e-12);
  EXPECT_EQ(step.tokens, 1);
  EXPECT_EQ(step.context, 1);
}

//===- PlanDeviceTest.cpp - A program's step on one GPU ------------------------===//
#include "k2c/Planner/PlanDevice.h"
#include "TestKernels.h"
#include "TestModels.h"

using namespace k2c;
using namespace k2c::test;

namespace {

/// 25.6 TFLOP/s, which are 6.4 TB/s of L2, 1 TB/s of memory, 2 us a launch.
Topology gpu() {
  Topology topology = machine(gibibytes(80));
  Device &device = topology.device;
  device.kind = DeviceKind::Nvidia;
  device.f32 = {FlopRate(25.6e12), "a datasheet"};
  device.bf16 = {FlopRate(1e15), "a datasheet"};
  device.memoryRead = {Bandwidth(1e12), "estimate: clocks"};
  device.kernels.launch = {Seconds(2e-6), "a README"};
  return topology;
}

ProgramKernel linear(int64_t n, int64_t k) { return {{"linear", linearOf(n, k)}, {}, 3}; }

DeviceKernelTime timeOf(int64_t tokens, const Topology &topology = gpu()) {
  Prediction step;
  step.tokens = tokens;
  return timeOnDevice({linear(4096, 4096)}, Plan(), step, topology.device).kernels.at(0);
}

const Remark &remarkOf(const Plan &plan, const std::string &part) {
  for (const Remark &remark : plan.remarks)
    if (remark.text.find(part) != std::string::npos)
      return remark;
  ADD_FAILURE() << "no remark has '" << part << "'";
  return plan.remarks.front();
}

} // namespace

// 4096 x 4096 bf16 weights, three launches: 100.7 MB of memory, 2 x 16.8 M FLOP a row.
TEST(PlanDevice, AKernelTakesAsLongAsItsSlowestUnit) {
  const DeviceKernelTime one = timeOf(1), many = timeOf(1000);
  EXPECT_NEAR(one.memory.value, 3 * 33554432 / 1e12, 1e-12);
  EXPECT_NEAR(one.issue.value, 3 * 33554432 / 25.6e12, 1e-12);
  EXPECT_NEAR(one.l2.value, 3 * (33554432.0 + 2 * 4 * 4096) / 6.4e12, 1e-12);
  EXPECT_DOUBLE_EQ(one.launch.value, 6e-6);
  EXPECT_DOUBLE_EQ(one.seconds().value, one.memory.value + 6e-6);
  EXPECT_STREQ(one.bound(), "memory");
  EXPECT_STREQ(many.bound(), "issue");
  EXPECT_DOUBLE_EQ(many.memory.value, one.memory.value);
}

TEST(PlanDevice, LaunchesAndL2MayBoundAKernel) {
  Topology slow = gpu(), fast = gpu();
  slow.device.kernels.launch.value = Seconds(1e-3);
  EXPECT_STREQ(timeOf(1, slow).bound(), "launches");
  fast.device.memoryRead.value = Bandwidth(1e15);
  EXPECT_STREQ(timeOf(1, fast).bound(), "L2");
  fast.device.l2Read = {Bandwidth(3.2e12), "a measurement"};
  EXPECT_DOUBLE_EQ(timeOf(1, fast).l2.value, 2 * timeOf(1).l2.value);
}

// What is decided does not depend on who predicts; kernels multiply in f32, whatever the compute type.
TEST(PlanDevice, PlansMemoryAsOfAHostAndTimesInF32) {
  const ModelSpec spec = tinyLlama();
  PlanOptions options;
  options.compute = DType::BF16;
  Topology slow = gpu();
  slow.device.f32.value = FlopRate(1e6); // arithmetic decides
  const Plan host = *planHost(spec, slow, defaultLimits(spec), options);
  const Plan device = *planDevice(spec, slow, defaultLimits(spec), options);
  EXPECT_EQ(device.memory.total(), host.memory.total());
  EXPECT_EQ(device.prefill.flops.value, host.prefill.flops.value);
  EXPECT_NEAR(device.prefill.seconds.value, device.prefill.flops.value / 1e6, 1e-6);
  EXPECT_LT(host.prefill.seconds.value, device.prefill.seconds.value);
}

TEST(PlanDevice, NamesTheSourcesOfItsConstantsAndWhatBoundsKernels) {
  const ModelSpec spec = tinyLlama();
  const Plan plan = *planDevice(spec, gpu(), defaultLimits(spec), {}, {}, {linear(64, 64)});
  const Remark &decode = remarkOf(plan, "decode of 1 token: at least ");
  EXPECT_TRUE(has(decode.text, "f32 at 25.6 TFLOP/s, a datasheet; memory at 1 TB/s, estimate: clocks; L2 at "));
  EXPECT_TRUE(has(decode.text, ", assumed: 64 bytes a cycle of each multiprocessor"));
  EXPECT_TRUE(has(decode.text, "; 3 launches at 2 us, a README); nothing was measured on this device"));
  const Remark &kernel = remarkOf(plan, "'linear' in a step of 1 token: 3 launches in at least ");
  EXPECT_EQ(kernel.pass, "device-time");
  EXPECT_TRUE(has(kernel.text, ", bound by launches"));
  Topology measured = gpu();
  for (std::string *source : {&measured.device.f32.source, &measured.device.kernels.launch.source})
    *source = "measured by k2c calibrate, 2026-11-21";
  auto textOfDecode = [&] {
    return remarkOf(*planDevice(spec, measured, defaultLimits(spec), {}, {}, {linear(64, 64)}), "decode").text;
  };
  EXPECT_TRUE(has(textOfDecode(),
                  "at 2 us, measured by k2c calibrate, 2026-11-21); measured were f32, launches, and not "
                  "memory, L2"));
  measured.device.memoryRead.source = measured.device.f32.source;
  measured.device.l2Read = {Bandwidth(5e12), measured.device.f32.source};
  EXPECT_TRUE(has(textOfDecode(), "; L2 at 5 TB/s, measured by k2c calibrate, 2026-11-21; 3 launches"));
  EXPECT_TRUE(has(textOfDecode(), "); all of these were measured"));
  Topology silent = gpu();
  silent.device.kernels.launch = {};
  const Plan without = *planDevice(spec, silent, defaultLimits(spec), {}, {}, {linear(64, 64)});
  EXPECT_TRUE(has(remarkOf(without, "decode").text, "3 launches, whose time the topology does not state"));
}

TEST(PlanDevice, RefusesWhatDoesNotFit) {
  const ModelSpec spec = tinyLlama();
  Topology small = gpu();
  small.device.memory.value = Bytes(1000);
  EXPECT_FALSE(planDevice(spec, small, defaultLimits(spec)));
}

//===- GpuTopologyTest.cpp - What a driver states, as a topology ------------===//
#include "lib/Cluster/GpuTopology.h"
#include <gtest/gtest.h>

using namespace k2c;
using cluster::GpuClocks;
using cluster::topologyOf;

namespace {

GpuFacts facts(const std::string &name, int major, int minor) {
  GpuFacts gpu;
  gpu.name = name;
  gpu.driverVersion = 13000;
  gpu.major = major, gpu.minor = minor;
  gpu.memory = 150'000'000'000;
  return gpu;
}

constexpr GpuClocks hopper{132, 1980000, 3201000, 6144, 60 << 20};

} // namespace

// Memory, architecture and multiprocessors are the driver's; rates that no driver states are those of the datasheet.
TEST(GpuTopology, HasTheRatesOfABuiltInWithTheSameDevices) {
  const Expected<Topology> topology = topologyOf(facts("NVIDIA H200", 9, 0), hopper);
  ASSERT_TRUE(topology) << topology.error().text();
  const Device &device = topology->device, known = loadTopology("h200x1")->device;
  EXPECT_EQ(device.memory.value, Bytes(150'000'000'000));
  EXPECT_EQ(device.memory.source, "stated by the driver, CUDA 13.0");
  EXPECT_EQ(device.arch, "sm_90a");
  EXPECT_EQ(device.cores, 132);
  EXPECT_EQ(device.memoryRead, known.memoryRead);
  EXPECT_EQ(device.memoryRead.source, known.memoryRead.source);
  EXPECT_EQ(device.kernels.launch, known.kernels.launch);
  EXPECT_EQ(device.l2.value, Bytes(60 << 20));
  EXPECT_EQ(device.l2.source, device.memory.source);
  EXPECT_TRUE(topology->host);
  EXPECT_EQ(topology->ranks(), 1);
  EXPECT_TRUE(parseTopology(printTopology(*topology), "printed"));
}

// Another number of multiprocessors, or a name in which a model's is a part of a word, is another device.
TEST(GpuTopology, EstimatesTheRatesOfOthers) {
  GpuClocks fewer = hopper;
  fewer.multiprocessors = 114;
  for (const auto &[name, clocks] : {std::pair("NVIDIA H100 PCIe", fewer), std::pair("NVIDIA GH200 480GB", hopper)}) {
    const Expected<Topology> topology = topologyOf(facts(name, 9, 0), clocks);
    ASSERT_TRUE(topology) << topology.error().text();
    EXPECT_EQ(topology->device.memoryRead.value, Bandwidth(2 * 6144 / 8 * 3201e6)) << name;
    EXPECT_EQ(topology->device.memoryRead.source,
              "estimate: 6144 bits twice a cycle at 3201 MHz, stated by the driver");
  }
  const Topology topology = *topologyOf(facts("any", 9, 0), fewer);
  EXPECT_EQ(topology.device.f32.value, FlopRate(2.0 * 128 * 114 * 1980e6));
  EXPECT_EQ(topology.device.f32.source, "estimate: 128 multiply-adds a cycle of each of 114 multiprocessors at 1980 "
                                        "MHz, stated by the driver");
  EXPECT_EQ(topology.device.l2.value, Bytes(60 << 20));
  EXPECT_FALSE(topology.host);
}

// An H100 NVL has the name and the multiprocessors of the SXM, and other memory.
TEST(GpuTopology, TellsProductsOfOneModelApartByTheirMemory) {
  GpuFacts gpu = facts("NVIDIA H100", 9, 0);
  gpu.memory = 79LL << 30;
  EXPECT_EQ(topologyOf(gpu, hopper)->device.memoryRead, loadTopology("4x8-h100")->device.memoryRead);
  gpu.memory = 94LL << 30;
  EXPECT_EQ(topologyOf(gpu, hopper)->device.memoryRead.source.substr(0, 10), "estimate: ");
}

TEST(GpuTopology, TakesTheLatestCodeThatADeviceRuns) {
  const std::pair<std::pair<int, int>, const char *> devices[] = {
      {{8, 0}, "sm_80"},   {{8, 6}, "sm_80"},   {{8, 9}, "sm_89"},   {{9, 0}, "sm_90a"},
      {{10, 0}, "sm_100"}, {{10, 3}, "sm_100"}, {{12, 0}, "sm_120"}, {{12, 1}, "sm_120"}};
  for (const auto &[capability, arch] : devices)
    EXPECT_EQ(topologyOf(facts("any", capability.first, capability.second), hopper)->device.arch, arch);
}

TEST(GpuTopology, RefusesWhatItHasNoCodeFor) {
  EXPECT_EQ(topologyOf(facts("Tesla V100", 7, 0), hopper).error().text(),
            "topology 'gpu': Tesla V100 has compute capability 7.0, k2c has code for 8.0 and later ones; use "
            "--topology host");
  EXPECT_EQ(topologyOf(facts("Tesla V100", 7, 0), hopper).error().code, K2RT_DEVICE_FAILED);
}

TEST(GpuTopology, RefusesADriverThatStatesNoClock) {
  GpuClocks without = hopper;
  without.memoryKilohertz = 0;
  EXPECT_EQ(topologyOf(facts("any", 9, 0), without).error().text(),
            "topology 'gpu': the driver states 0 kHz of memory of any; write a topology file with its rates, "
            "docs/Topology.md");
}

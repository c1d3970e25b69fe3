//===- ParseTest.cpp - Topology files, good and bad -----------------------===//
#include "k2c/Cluster/Topology.h"
#include <algorithm>
#include <gtest/gtest.h>

using namespace k2c;

namespace {

const char *const good = "k2topo: 1\n"                                   // 1
                         "name: pair\n"                                  // 2
                         "device:\n"                                     // 3
                         "  kind: cpu\n"                                 // 4
                         "  cores: 4\n"                                  // 5
                         "  memory: {value: 8 GiB, source: datasheet}\n" // 6
                         "  memory_read: 50 GB/s\n"                      // 7
                         "  f32: 0.2 TFLOP/s\n"                          // 8
                         "  bf16: 400 GFLOP/s\n"                         // 9
                         "  l1: 48 KiB\n"                                // 10
                         "  l2: 1 MiB\n"                                 // 11
                         "  l3: 32 MiB\n"                                // 12
                         "tiers:\n"                                      // 13
                         "  - name: network\n"                           // 14
                         "    count: 2\n"                                // 15
                         "    bandwidth: 25 MB/s\n"                      // 16
                         "    latency: {value: 100 us, source: ping}\n"  // 17
                         "    efficiency: 0.9\n"                         // 18
                         "    source: shaped\n";                         // 19

std::string replaced(std::string from, const std::string &to) {
  std::string text = good;
  return text.replace(text.find(from), from.size(), to);
}

std::string errorOf(const std::string &text) {
  Expected<Topology> topology = parseTopology(text, "t.yaml");
  return topology ? "" : topology.error().text();
}

} // namespace

TEST(Topology, ReadsEveryField) {
  Expected<Topology> topology = parseTopology(good, "t.yaml");
  ASSERT_TRUE(topology) << topology.error().text();
  EXPECT_EQ(topology->name, "pair");
  EXPECT_EQ(topology->ranks(), 2);
  EXPECT_EQ(topology->device.cores, 4);
  EXPECT_EQ(topology->device.memory.value, gibibytes(8));
  EXPECT_EQ(topology->device.memoryRead.value, Bandwidth(50e9));
  EXPECT_EQ(topology->device.f32.value, FlopRate(0.2e12));
  EXPECT_EQ(topology->device.l3.value, mebibytes(32));
  ASSERT_EQ(topology->tiers.size(), 1u);
  const Tier &network = topology->tiers[0];
  EXPECT_EQ(network.bandwidth.value, Bandwidth(25e6));
  EXPECT_DOUBLE_EQ(network.latency.value.value, 100e-6);
  EXPECT_EQ(network.effective(), Bandwidth(22.5e6));
  EXPECT_EQ(topology->nodes(), 2);
}

TEST(Topology, ConstantsNameTheirSource) {
  Expected<Topology> topology = parseTopology(good, "t.yaml");
  ASSERT_TRUE(topology);
  EXPECT_EQ(topology->device.memory.source, "datasheet");
  EXPECT_EQ(topology->device.memoryRead.source, "stated in t.yaml:7:16");
  EXPECT_EQ(topology->tiers[0].bandwidth.source, "shaped");
  EXPECT_EQ(topology->tiers[0].latency.source, "ping");
}

TEST(Topology, TiersMultiplyFromTheInnermost) {
  Expected<Topology> topology = loadTopology("gb200-nvl72");
  ASSERT_TRUE(topology) << topology.error().text();
  EXPECT_EQ(topology->ranks(), 72);
  EXPECT_EQ(topology->devicesPerNode(), 4);
  EXPECT_EQ(topology->nodes(), 18);
  EXPECT_EQ(topology->tiers[1].bandwidth.value, topology->tiers[0].bandwidth.value);
}

TEST(Topology, JsonIsReadToo) {
  Expected<Topology> topology = parseTopology(
      R"({"k2topo": 1, "name": "g", "device": {"kind": "nvidia", "arch": "sm_90a", "sms": 132, "memory": "80 GB",
          "memory_read": "3 TB/s", "f32": "67 TFLOP/s", "bf16": "989 TFLOP/s"}})",
      "t.json");
  ASSERT_TRUE(topology) << topology.error().text();
  EXPECT_EQ(topology->device.whole(topology->device.bf16.value), FlopRate(989e12));
}

// Between L2 and the multiprocessors: of a GPU that was measured; no CPU has it.
TEST(Topology, TheBandwidthOfL2IsOptional) {
  Topology topology = *loadTopology("h200x1");
  EXPECT_FALSE(topology.device.l2Read);
  topology.device.l2Read = {Bandwidth(5.5e12), "measured"};
  const Topology again = *parseTopology(printTopology(topology), "again.yaml");
  ASSERT_TRUE(again.device.l2Read);
  EXPECT_EQ(again.device.l2Read->value, Bandwidth(5.5e12));
  EXPECT_EQ(again.device.l2Read->source, "measured");
  EXPECT_FALSE(isSameMachine(topology, *loadTopology("h200x1")));
  EXPECT_EQ(errorOf(replaced("l2: 1 MiB", "l2: 1 MiB\n  l2_read: 1 TB/s")).find("t.yaml:12:3: "), 0u);
}

TEST(Topology, PrintedFilesReadBackTheSame) {
  for (const TopologyName &name : knownTopologies()) {
    if (name.name == "gpu") // asks the driver of this machine
      continue;
    Expected<Topology> topology = loadTopology(name.name);
    ASSERT_TRUE(topology) << topology.error().text();
    std::string text = printTopology(*topology);
    Expected<Topology> again = parseTopology(text, "again.yaml");
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(printTopology(*again), text);
    EXPECT_EQ(again->ranks(), topology->ranks());
    EXPECT_EQ(again->device.memory.value, topology->device.memory.value);
    EXPECT_EQ(again->device.f32.value, topology->device.f32.value);
  }
}

// A copy of a built-in is the built-in, whoever states its constants; with another constant it is not.
TEST(Topology, ABuiltInIsKnownByItsConstants) {
  for (const char *name : {"4x8-h100", "12x8-h200", "gb300-nvl72"}) {
    const Topology built = *loadTopology(name);
    EXPECT_TRUE(isBuiltIn(built)) << name;
    auto changed = [&](auto change) {
      Topology own = built;
      change(own);
      return isBuiltIn(own);
    };
    EXPECT_TRUE(changed([](Topology &own) { own.device.memory.source = "mine", own.description = ""; }));
    EXPECT_FALSE(changed([](Topology &own) { own.device.memory.value -= Bytes(1); }));
    EXPECT_FALSE(changed([](Topology &own) { own.device.kernels.launch.value = Seconds(1); }));
    EXPECT_FALSE(changed([](Topology &own) { own.device.fp8.reset(); }));
    EXPECT_FALSE(changed([](Topology &own) { own.tiers[1].bandwidth.value = Bandwidth(1e9); }));
    EXPECT_FALSE(changed([](Topology &own) { own.tiers.pop_back(); }));
    EXPECT_FALSE(changed([](Topology &own) { own.host.reset(); }));
    EXPECT_FALSE(changed([](Topology &own) { own.name = "mine"; }));
  }
  Topology own = *loadTopology("h200x8");
  EXPECT_TRUE(resizedTopology(own, 64));
  own.device.memoryRead.value = Bandwidth(1e12);
  EXPECT_FALSE(resizedTopology(own, 64));
}

TEST(Topology, SourcesWithQuotesReadBack) {
  Expected<Topology> topology = parseTopology(good, "t.yaml");
  ASSERT_TRUE(topology);
  topology->description = "a \"quoted\" \\ line\nand another";
  Expected<Topology> again = parseTopology(printTopology(*topology), "again.yaml");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->description, topology->description);
}

TEST(Topology, MistakesHaveAPlace) {
  EXPECT_EQ(errorOf(replaced("  cores: 4\n", "  cores: 4\n  kores: 4\n")).find("t.yaml:6:3: "), 0u);
  EXPECT_EQ(errorOf(replaced("cores: 4", "cores: 0")), "t.yaml:5:10: cores is 0, must be 1 to 1048576");
  EXPECT_EQ(errorOf(replaced("cores: 4", "cores: four")).find("t.yaml:5:10: "), 0u);
  EXPECT_EQ(errorOf(replaced("l2: 1 MiB", "l2: 1 MiB/s")),
            "t.yaml:11:7: '1 MiB/s' has the unit 'MiB/s'; write one of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB");
  EXPECT_EQ(errorOf(replaced("50 GB/s", "50")),
            "t.yaml:7:16: '50' has no unit; write one of B/s, KB/s, MB/s, GB/s, TB/s");
  EXPECT_EQ(errorOf(replaced("50 GB/s", "-50 GB/s")), "t.yaml:7:16: '-50 GB/s' is not a positive number with a unit");
  EXPECT_EQ(errorOf(replaced("50 GB/s", "nan GB/s")), "t.yaml:7:16: 'nan GB/s' is not a positive number with a unit");
  EXPECT_EQ(errorOf(replaced("8 GiB", "80000000000 TiB")), "t.yaml:6:19: '80000000000 TiB' is too large");
  EXPECT_EQ(errorOf(replaced("kind: cpu", "kind: tpu")),
            "t.yaml:4:9: device kind 'tpu' is not known; use cpu, nvidia or amd");
  EXPECT_EQ(errorOf(replaced("  l3: 32 MiB\n", "")), "t.yaml:4:3: device lacks 'l3'");
  EXPECT_EQ(errorOf(replaced("k2topo: 1", "k2topo: 2")), "t.yaml:1:9: is format 2, this build reads 1");
}

TEST(Topology, NumaNodesHaveAllCores) {
  Expected<Topology> topology = parseTopology(replaced("cores: 4", "cores: 4\n  numa: [1, 3]"), "t.yaml");
  ASSERT_TRUE(topology) << topology.error().text();
  EXPECT_EQ(topology->device.numa, (std::vector<int64_t>{1, 3}));
  Expected<Topology> again = parseTopology(printTopology(*topology), "again.yaml");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->device.numa, topology->device.numa);
  auto numa = [](const std::string &value) { return errorOf(replaced("cores: 4", "cores: 4\n  numa: " + value)); };
  EXPECT_EQ(numa("[2, 3]"), "t.yaml:6:9: numa has 5 cores, the device 4; list the cores of every NUMA node, or leave "
                            "numa out");
  EXPECT_EQ(numa("[4, 0]"), "t.yaml:6:13: cores of a NUMA node is 0, must be 1 to 1048576");
  EXPECT_EQ(numa("2"), "t.yaml:6:9: numa must be a list of 1 to 1024 numbers, the cores of each NUMA node");
  EXPECT_EQ(numa("[]"), "t.yaml:6:9: numa must be a list of 1 to 1024 numbers, the cores of each NUMA node");
}

TEST(Topology, MistakesOfTiersHaveAPlace) {
  EXPECT_EQ(errorOf(replaced("efficiency: 0.9", "efficiency: 1.5")),
            "t.yaml:18:17: efficiency is '1.5', must be above 0 and at most 1");
  EXPECT_EQ(errorOf(replaced("efficiency: 0.9", "efficiency: .nan")).find("t.yaml:18:17: "), 0u);
  EXPECT_EQ(errorOf(replaced("    bandwidth: 25 MB/s\n", "")), "t.yaml:14:5: a tier lacks 'bandwidth'");
  EXPECT_EQ(errorOf(replaced("bandwidth:", "bandwith:")).find("t.yaml:16:5: a tier has no key 'bandwith'"), 0u);
  EXPECT_EQ(errorOf(std::string(good) + "  - {name: network, count: 2, bandwidth: 1 GB/s, latency: 1 us}\n"),
            "t.yaml:20:12: two tiers are called 'network'; rename one of them");
  EXPECT_EQ(errorOf(std::string(good) + "  - {name: pod, count: 1048576, bandwidth: 1 GB/s, latency: 1 us}\n"),
            "t.yaml:20:24: 1048576 units of 2 devices are more than the 1048576 accepted");
  EXPECT_EQ(errorOf(std::string(good) + "nodes: [a, b, c]\n"),
            "t.yaml:20:8: names 3 nodes, the tiers make 2; call the tier that ends at one host 'node'");
}

const char *const gpu = "k2topo: 1\n"                                    // 1
                        "name: one\n"                                    // 2
                        "device: {kind: nvidia, arch: sm_90a, sms: 1,\n" // 3
                        "  memory: 1 GB, memory_read: 1 GB/s, f32: 1 TFLOP/s, bf16: 1 TFLOP/s}\n"
                        "host:\n"                                  // 5
                        "  memory: {value: 2 TB, source: order}\n" // 6
                        "  bandwidth: 64 GB/s\n"                   // 7
                        "  efficiency: 0.5\n";                     // 8

TEST(Topology, HostsReadBack) {
  Expected<Topology> topology = parseTopology(gpu, "t.yaml");
  ASSERT_TRUE(topology) << topology.error().text();
  ASSERT_TRUE(topology->host);
  EXPECT_EQ(topology->host->memory.value, Bytes(2'000'000'000'000));
  EXPECT_EQ(topology->host->memory.source, "order");
  EXPECT_EQ(topology->host->effective(), Bandwidth(32e9));
  Expected<Topology> again = parseTopology(printTopology(*topology), "again.yaml");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(printTopology(*again), printTopology(*topology));
  EXPECT_EQ(again->host->effective(), Bandwidth(32e9));
}

TEST(Topology, MistakesOfHostsHaveAPlace) {
  auto with = [](const std::string &from, const std::string &to) {
    std::string text = gpu;
    return errorOf(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_EQ(with("  bandwidth: 64 GB/s\n", ""), "t.yaml:6:3: host lacks 'bandwidth'");
  EXPECT_EQ(with("efficiency: 0.5", "efficiency: 2"), "t.yaml:8:15: efficiency is '2', must be above 0 and at most 1");
  EXPECT_EQ(with("bandwidth:", "bandwith:").find("t.yaml:7:3: host has no key 'bandwith'"), 0u);
  EXPECT_EQ(errorOf(std::string(good) + "host: {memory: 1 GB, bandwidth: 1 GB/s}\n"),
            "t.yaml:20:7: a cpu is its own host; leave host out");
}

const char *const kernels =
    "k2topo: 1\n"                                      // 1
    "name: one\n"                                      // 2
    "device: {kind: nvidia, arch: sm_90a, sms: 132,\n" // 3
    "  memory: 1 GB, memory_read: 1 GB/s, f32: 1 TFLOP/s, bf16: 1 TFLOP/s,\n"
    "  kernels: {bf16: {value: 0.75, source: bench}, launch: 3 us,\n"                                // 5
    "            fill: 160 B, transfer_sms: 20,\n"                                                   // 6
    "            attention_fill: 220, tile_rows: 64, send_receive: 59 us, transfer_rate: 0.775}}\n"; // 7

TEST(Topology, WhatKernelsReachReadsBack) {
  Expected<Topology> topology = parseTopology(kernels, "t.yaml");
  ASSERT_TRUE(topology) << topology.error().text();
  const ReachedRates &rates = topology->device.kernels;
  EXPECT_EQ(rates.bf16.value, 0.75);
  EXPECT_EQ(rates.bf16.source, "bench");
  EXPECT_EQ(rates.fp8.value, 1); // what is not stated is the peak
  EXPECT_EQ(rates.launch.value, Seconds(3e-6));
  EXPECT_EQ(rates.fill.value, Bytes(160));
  EXPECT_EQ(rates.transferSms.value, 20);
  EXPECT_EQ(rates.attentionFill.value, 220);
  EXPECT_EQ(rates.tileRows.value, 64);
  EXPECT_EQ(rates.sendReceive.value, Seconds(59e-6));
  EXPECT_EQ(rates.transferRate.value, 0.775);
  Expected<Topology> again = parseTopology(printTopology(*topology), "again.yaml");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(printTopology(*again), printTopology(*topology));
  EXPECT_EQ(again->device.kernels.transferSms.value, 20);
}

TEST(Topology, MistakesOfKernelsHaveAPlace) {
  auto with = [](const std::string &from, const std::string &to) {
    std::string text = kernels;
    return errorOf(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_EQ(with("transfer_sms: 20", "transfer_sms: 132"), "t.yaml:6:40: transfer_sms is 132, must be 0 to 131");
  EXPECT_EQ(with("tile_rows: 64", "tile_rows: -1"), "t.yaml:7:45: tile_rows is -1, must be 0 to 1048576");
  EXPECT_EQ(with("value: 0.75", "value: 2"), "t.yaml:5:27: bf16 is '2', must be above 0 and at most 1");
  EXPECT_EQ(with("launch", "lunch").find("t.yaml:5:49: kernels has no key 'lunch'"), 0u);
}

TEST(Topology, NotAMappingIsAnError) {
  EXPECT_NE(errorOf("- 1\n"), "");
  EXPECT_NE(errorOf(""), "");
  EXPECT_NE(errorOf("k2topo: 1\nname: x\ndevice: 3\n"), "");
  EXPECT_NE(errorOf(replaced("tiers:", "tiers: 3\nnodes:")), "");
}

TEST(Topology, BuiltInsAllParseAndAreListed) {
  std::vector<TopologyName> names = knownTopologies();
  EXPECT_EQ(names[0].name, "host");
  EXPECT_EQ(names[1].name, "gpu");
  for (const char *name : {"cpu1", "cpu2x1", "cpu4x2", "h100x1", "h200x1", "h100x8", "4x8-h100", "9x8-h100",
                           "12x4-b200", "12x4-b200-nvl", "gb200-nvl72", "256-h800", "2048-h800"})
    EXPECT_TRUE(std::any_of(names.begin(), names.end(), [&](const TopologyName &n) { return n.name == name; })) << name;
  for (const TopologyName &name : names) {
    if (name.name == "gpu") // asks the driver of this machine
      continue;
    Expected<Topology> topology = loadTopology(name.name);
    ASSERT_TRUE(topology) << topology.error().text();
    EXPECT_EQ(topology->name, name.name);
    EXPECT_EQ(printTopology(*topology).find("stated in"), std::string::npos) << name.name << ": a source of its own";
  }
}

TEST(Topology, UnknownNamesAreRefused) {
  Error unknown = loadTopology("laptop").takeError();
  EXPECT_EQ(unknown.text().find("topology 'laptop': is not known; use one of host, "), 0u);
  EXPECT_NE(unknown.remedy.find("h100x8"), std::string::npos);
  EXPECT_EQ(loadTopology("./none.yaml").takeError().where, "./none.yaml");
}

TEST(Topology, WhatCompiles) {
  EXPECT_TRUE(checkCompiles(hostTopology()));
  EXPECT_TRUE(checkCompiles(*loadTopology("h100x1")));
  EXPECT_EQ(checkCompiles(*loadTopology("h100x8")).takeError().text(),
            "topology 'h100x8': has 8 GPUs; programs of several are not in this build; use --topology h200x1, or "
            "--topology host");
  EXPECT_EQ(checkCompiles(*loadTopology("mi300x8")).takeError().text(),
            "topology 'mi300x8': compiling for devices of kind amd is not in this build; use --topology host or cpu1");
  Topology ranks = *loadTopology("cpu4x2");
  EXPECT_TRUE(checkCompiles(ranks));
  ranks.tiers[1].count = 2049;
  EXPECT_EQ(checkCompiles(ranks).takeError().text(),
            "topology 'cpu4x2': has 4098 ranks; in this build programs have at most 4096; choose a smaller topology");
}

//===- ParseTest.cpp - Topology files, good and bad -----------------------===//
#include "k2c/Cluster/Topology.h"
#include <algorithm>
#include <gtest/gtest.h>

using namespace k2c;

namespace {

const char *const good = "name: pair\n"                                                        // 1
                         "nodes: 2\n"                                                          // 2
                         "devices_per_node: 1\n"                                               // 3
                         "device:\n"                                                           // 4
                         "  kind: cpu\n"                                                       // 5
                         "  cores: 4\n"                                                        // 6
                         "  memory: {value: 8 GiB, source: datasheet}\n"                       // 7
                         "  memory_read: 50 GB/s\n"                                            // 8
                         "  f32: 0.2 TFLOP/s\n"                                                // 9
                         "  bf16: 400 GFLOP/s\n"                                               // 10
                         "  l1: 48 KiB\n"                                                      // 11
                         "  l2: 1 MiB\n"                                                       // 12
                         "  l3: 32 MiB\n"                                                      // 13
                         "links:\n"                                                            // 14
                         "  network: {bandwidth: 25 MB/s, latency: 100 us, source: shaped}\n"; // 15

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
  EXPECT_FALSE(topology->node);
  EXPECT_EQ(topology->network->bandwidth, Bandwidth(25e6));
  EXPECT_DOUBLE_EQ(topology->network->latency.value, 100e-6);
}

TEST(Topology, ConstantsNameTheirSource) {
  Expected<Topology> topology = parseTopology(good, "t.yaml");
  ASSERT_TRUE(topology);
  EXPECT_EQ(topology->device.memory.source, "datasheet");
  EXPECT_EQ(topology->device.memoryRead.source, "stated in t.yaml:8:16");
  EXPECT_EQ(topology->network->source, "shaped");
}

TEST(Topology, MistakesHaveAPlace) {
  EXPECT_EQ(errorOf(replaced("  cores: 4\n", "  cores: 4\n  kores: 4\n")).find("t.yaml:7:3: "), 0u);
  EXPECT_EQ(errorOf(replaced("cores: 4", "cores: 0")), "t.yaml:6:10: cores is 0, must be 1 to 1048576");
  EXPECT_EQ(errorOf(replaced("cores: 4", "cores: four")).find("t.yaml:6:10: "), 0u);
  EXPECT_EQ(errorOf(replaced("l2: 1 MiB", "l2: 1 MiB/s")),
            "t.yaml:12:7: '1 MiB/s' has the unit 'MiB/s'; write one of B, KB, MB, GB, TB, KiB, MiB, GiB, TiB");
  EXPECT_EQ(errorOf(replaced("50 GB/s", "50")),
            "t.yaml:8:16: '50' has no unit; write one of B/s, KB/s, MB/s, GB/s, TB/s");
  EXPECT_EQ(errorOf(replaced("50 GB/s", "-50 GB/s")), "t.yaml:8:16: '-50 GB/s' is not a positive number with a unit");
  EXPECT_EQ(errorOf(replaced("50 GB/s", "nan GB/s")), "t.yaml:8:16: 'nan GB/s' is not a positive number with a unit");
  EXPECT_EQ(errorOf(replaced("8 GiB", "80000000000 TiB")), "t.yaml:7:19: '80000000000 TiB' is too large");
  EXPECT_EQ(errorOf(replaced("kind: cpu", "kind: tpu")),
            "t.yaml:5:9: device kind 'tpu' is not in this build; use kind: cpu");
  EXPECT_EQ(errorOf(replaced("  l3: 32 MiB\n", "")), "t.yaml:5:3: device lacks 'l3'");
  EXPECT_EQ(errorOf(replaced("devices_per_node: 1", "devices_per_node: 2")),
            "t.yaml:15:3: several devices need the link 'node'");
  EXPECT_EQ(errorOf(replaced("network:", "netvork:")).find("t.yaml:15:3: "), 0u);
}

TEST(Topology, NotAMappingIsAnError) {
  EXPECT_NE(errorOf("- 1\n"), "");
  EXPECT_NE(errorOf(""), "");
  EXPECT_NE(errorOf("name: x\nnodes: 1\ndevices_per_node: 1\ndevice: 3\n"), "");
  EXPECT_NE(errorOf("name: x\nnodes: 1\ndevices_per_node: 1\nlinks: 3\n"), "");
}

TEST(Topology, BuiltInsAllParseAndAreListed) {
  std::vector<TopologyName> names = knownTopologies();
  EXPECT_EQ(names[0].name, "host");
  for (const char *name : {"cpu1", "cpu2x1"})
    EXPECT_TRUE(std::any_of(names.begin(), names.end(), [&](const TopologyName &n) { return n.name == name; })) << name;
  for (const TopologyName &name : names) {
    Expected<Topology> topology = loadTopology(name.name);
    ASSERT_TRUE(topology) << topology.error().text();
    EXPECT_EQ(topology->name, name.name);
    EXPECT_EQ(topology->device.memoryRead.source.find("stated in"), std::string::npos) << "a source of its own";
  }
}

TEST(Topology, LaterAndUnknownNamesAreRefused) {
  EXPECT_EQ(loadTopology("h100x8").takeError().message, "is not in this build");
  EXPECT_EQ(loadTopology("laptop").takeError().text(),
            "topology 'laptop': is not known; use one of host, cpu1, cpu2x1, or the path of a YAML file");
  EXPECT_EQ(loadTopology("./none.yaml").takeError().where, "./none.yaml");
}

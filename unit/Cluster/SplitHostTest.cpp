//===- SplitHostTest.cpp - A measured machine as several ranks ------------===//
#include "k2c/Cluster/SplitHost.h"
#include <gtest/gtest.h>

using namespace k2c;

namespace {

LinkRates link(const char *name, int64_t count, double latency, double rate) {
  std::vector<ReadRate> sizes = {{Bytes(64), Bandwidth(1e8)}, {mebibytes(4), Bandwidth(rate)}};
  return {name, count, Seconds(latency), sizes, sizes};
}

/// Two sockets of two caches of four cores.
Topology host() {
  Topology host;
  host.name = "host";
  host.device.cores = 16;
  host.device.memory = {gibibytes(64), "MemTotal"};
  host.device.memoryRead = {Bandwidth(160e9), "measured"};
  host.device.f32 = host.device.bf16 = {FlopRate(1e11), "measured"};
  host.device.l1 = host.device.l2 = host.device.l3 = {mebibytes(1), "sysfs"};
  host.device.measured = Calibration{"k2c", "2026-11-21", "znver4", {}, {}};
  host.device.measured->links = {link("cache", 4, 30e-9, 30e9), link("socket", 2, 100e-9, 20e9),
                                 link("node", 2, 200e-9, 10e9)};
  return host;
}

std::string refusal(const Topology &host, int64_t ranks) {
  auto split = splitHost(host, ranks);
  return split ? "" : split.error().text();
}

} // namespace

TEST(SplitHost, ARankACacheLeavesTheTiersAboveIt) {
  auto split = splitHost(host(), 4);
  ASSERT_TRUE(split);
  EXPECT_EQ(split->device.cores, 4);
  EXPECT_EQ(split->device.memory.value, gibibytes(16));
  EXPECT_EQ(split->device.memoryRead.value, Bandwidth(40e9));
  EXPECT_FALSE(split->device.measured);
  ASSERT_EQ(split->tiers.size(), 2u);
  EXPECT_EQ(split->tiers[0].name, "socket");
  EXPECT_EQ(split->tiers[1].name, "node");
  EXPECT_EQ(split->ranks(), 4);
  EXPECT_EQ(split->tiers[1].bandwidth.value, Bandwidth(10e9));
  EXPECT_EQ(split->tiers[1].latency.value, Seconds(200e-9));
  EXPECT_EQ(split->tiers[1].latency.source, "measured by k2c calibrate, 2026-11-21");
}

TEST(SplitHost, ARankMayBeAPartOfACache) {
  auto split = splitHost(host(), 8);
  ASSERT_TRUE(split);
  ASSERT_EQ(split->tiers.size(), 3u);
  EXPECT_EQ(split->tiers[0].count, 2);
  EXPECT_EQ(split->ranks(), 8);
  EXPECT_EQ(split->nodes(), 1);
}

TEST(SplitHost, IsReadBackFromItsFile) {
  auto split = splitHost(host(), 16);
  ASSERT_TRUE(split);
  auto read = parseTopology(printTopology(*split), "a.yaml");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(printTopology(*read), printTopology(*split));
}

TEST(SplitHost, RefusesWhatIsUneven) {
  EXPECT_EQ(refusal(host(), 3), "3 ranks: do not divide the 16 processors; name a divisor");
  Topology odd = host();
  odd.device.cores = 14;
  EXPECT_EQ(refusal(odd, 2), "2 ranks: the 14 processors are not joined evenly: the tiers make 16; give the process "
                             "the processors of equal units");
  Topology six = host();
  six.device.cores = 24;
  six.device.measured->links[0].count = 6;
  EXPECT_EQ(refusal(six, 6), "6 ranks: cut a cache of 6 units unevenly; name a multiple or a divisor of them");
  odd.device.measured.reset();
  EXPECT_EQ(refusal(odd, 2), "2 ranks: topology 'host' has no measured links; run k2c calibrate");
}

//===- HostTiersTest.cpp - Processors of machines laid out in a folder ----===//
#include "k2c/Cluster/HostTiers.h"
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <numeric>

using namespace k2c;
namespace fs = std::filesystem;

namespace {

/// A sysfs of equal sockets, NUMA nodes, caches, cores and threads, numbered from the innermost outwards.
class Tiers : public ::testing::Test {
protected:
  Tiers() {
    std::string pattern = (fs::temp_directory_path() / "k2c-tiers-XXXXXX").string();
    root = std::string(::mkdtemp(pattern.data())) + "/";
  }
  ~Tiers() override { fs::remove_all(root); }

  void write(const std::string &path, const std::string &text) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text << "\n";
  }
  std::vector<HostTier> of(int sockets, int nodes, int caches, int cores, int threads) {
    int count = sockets * nodes * caches * cores * threads;
    for (int cpu = 0; cpu < count; ++cpu) {
      std::string folder = root + "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/";
      int core = cpu / threads, cache = core / cores, node = cache / caches;
      write(folder + "topology/thread_siblings_list", std::to_string(core));
      write(folder + "topology/physical_package_id", std::to_string(node / nodes));
      write(folder + "cache/index0/level", "1");
      write(folder + "cache/index0/shared_cpu_list", std::to_string(core));
      write(folder + "cache/index3/level", "3");
      write(folder + "cache/index3/shared_cpu_list", std::to_string(cache));
      fs::create_directories(folder + "node" + std::to_string(node));
    }
    return hostTiers(first(count), root);
  }
  static std::vector<int> first(int count) {
    std::vector<int> processors(static_cast<size_t>(count));
    std::iota(processors.begin(), processors.end(), 0);
    return processors;
  }
  static std::string text(const std::vector<HostTier> &tiers) {
    std::string text;
    for (const HostTier &tier : tiers)
      text += tier.name + " " + std::to_string(tier.count) + " (" + std::to_string(tier.first) + "-" +
              std::to_string(tier.second) + ") ";
    return text;
  }
  std::string root;
};

} // namespace

TEST_F(Tiers, TwoCoresOfOneCache) { EXPECT_EQ(text(of(1, 1, 1, 2, 1)), "cache 2 (0-1) "); }

TEST_F(Tiers, EveryLevelThatJoinsSomethingIsATier) {
  EXPECT_EQ(text(of(2, 2, 3, 4, 2)), "core 2 (0-1) cache 4 (0-2) numa 3 (0-8) socket 2 (0-24) node 2 (0-48) ");
}

TEST_F(Tiers, OneProcessorHasNone) { EXPECT_EQ(text(of(1, 1, 1, 1, 1)), ""); }

TEST_F(Tiers, OnlyProcessorsOfThisProcessCount) {
  of(2, 1, 1, 4, 1);
  EXPECT_EQ(text(hostTiers({1, 6, 7}, root)), "cache 2 (6-7) node 2 (1-6) ");
}

TEST_F(Tiers, WithoutSysfsTheNodeJoinsAll) { EXPECT_EQ(text(hostTiers(first(4), root)), "node 4 (0-1) "); }

// A cache over several NUMA nodes: its parts are units of the nodes.
TEST_F(Tiers, ACacheMaySpanNumaNodes) {
  of(1, 1, 1, 4, 1);
  for (int cpu : {2, 3}) {
    fs::remove(root + "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/node0");
    fs::create_directories(root + "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/node1");
  }
  EXPECT_EQ(text(hostTiers(first(4), root)), "cache 2 (0-1) socket 2 (0-2) ");
}

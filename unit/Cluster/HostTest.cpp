//===- HostTest.cpp - Reading a machine laid out in a folder --------------===//
#include "k2c/Cluster/Topology.h"
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace k2c;
namespace fs = std::filesystem;

namespace {

/// A folder with proc and sys of a machine.
class Machine : public ::testing::Test {
protected:
  Machine() {
    std::string pattern = (fs::temp_directory_path() / "k2c-host-XXXXXX").string();
    root = std::string(::mkdtemp(pattern.data())) + "/";
    write("proc/meminfo", "MemTotal:       24500000 kB\nMemFree: 1 kB\n");
    write("proc/self/cgroup", "0::/a/b\n");
    cpu("AuthenticAMD", "26", "fpu avx2 avx512f avx512bw avx512vl avx512_bf16");
  }
  ~Machine() override { fs::remove_all(root); }

  void write(const std::string &path, const std::string &text) {
    fs::create_directories(fs::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  void cpu(const std::string &vendor, const std::string &family, const std::string &flags) {
    write("proc/cpuinfo", "processor\t: 0\nvendor_id\t: " + vendor + "\ncpu family\t: " + family +
                              "\ncpu MHz\t\t: 4000.000\nflags\t\t: " + flags + "\n\nprocessor\t: 1\n");
  }
  Device host() { return hostTopology(root).device; }
  std::string root;
};

} // namespace

TEST_F(Machine, MemoryIsTheMachinesWithoutLimits) {
  EXPECT_EQ(host().memory.value, Bytes(int64_t(24500000) * 1024));
  EXPECT_EQ(host().memory.source, "MemTotal of /proc/meminfo");
}

TEST_F(Machine, NearestCgroupLimitBinds) {
  write("sys/fs/cgroup/a/b/memory.max", "max\n");
  write("sys/fs/cgroup/a/memory.max", "2147483648\n");
  write("sys/fs/cgroup/memory.max", "4294967296\n");
  EXPECT_EQ(host().memory.value, gibibytes(2));
  EXPECT_EQ(host().memory.source, "/sys/fs/cgroup/a/memory.max");
}

TEST_F(Machine, CgroupVersion1) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/j\n4:memory:/j\n");
  write("sys/fs/cgroup/memory/j/memory.limit_in_bytes", "1073741824\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/cpu/j/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu/j/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(host().memory.value, gibibytes(1));
  EXPECT_EQ(host().cores, 1);
}

TEST_F(Machine, QuotaLimitsCores) {
  write("sys/fs/cgroup/a/cpu.max", "90000 100000\n");
  EXPECT_EQ(host().cores, 1);
}

TEST_F(Machine, CachesComeFromSysfs) {
  std::string folder = "sys/devices/system/cpu/cpu0/cache/index";
  const char *const rows[][3] = {{"1", "Instruction", "64K"}, {"1", "Data", "48K"}, {"2", "Unified", "2M"}};
  for (int i = 0; i < 3; ++i) {
    write(folder + std::to_string(i) + "/level", rows[i][0]);
    write(folder + std::to_string(i) + "/type", rows[i][1]);
    write(folder + std::to_string(i) + "/size", rows[i][2]);
  }
  EXPECT_EQ(host().l1.value, kibibytes(48));
  EXPECT_EQ(host().l2.value, mebibytes(2));
  EXPECT_EQ(host().l3.source, "assumed: sysfs describes no level 3 cache");
}

TEST_F(Machine, RatesFollowTheInstructionSet) {
  EXPECT_EQ(host().f32.value, FlopRate(256e9)); // 2 * 16 lanes * 2 pipes * 4 GHz
  EXPECT_EQ(host().bf16.value, FlopRate(512e9));
  EXPECT_EQ(host().f32.source, "estimate: 2 fused multiply-adds of 16 lanes a cycle at 4000 MHz of /proc/cpuinfo");
  cpu("AuthenticAMD", "25", "avx2 avx512f avx512bw avx512vl avx512_bf16"); // 256-bit pipes
  EXPECT_EQ(host().f32.value, FlopRate(128e9));
  cpu("GenuineIntel", "6", "avx2 fma");
  EXPECT_EQ(host().f32.value, FlopRate(128e9));
  EXPECT_EQ(host().bf16.value, FlopRate(128e9));
}

TEST(Host, CoresOfNumaNodes) {
  using Cores = std::vector<int64_t>;
  EXPECT_EQ(numaCores({4, 3}, 7), (Cores{4, 3}));
  EXPECT_EQ(numaCores({3}, 3), Cores{});
  EXPECT_EQ(numaCores({4, 3}, 3), (Cores{2, 1})); // a quota
  EXPECT_EQ(numaCores({4, 3}, 1), Cores{});
  EXPECT_EQ(numaCores({1, 1024, 1024}, 2), (Cores{1, 1})); // a node without cores is left out
}

TEST_F(Machine, NothingReadableStillGivesACpu) {
  fs::remove_all(root + "proc");
  EXPECT_GE(host().cores, 1);
  EXPECT_EQ(host().memory.value, Bytes(0));
  EXPECT_GT(host().f32.value, FlopRate(0));
}

TEST(Host, ThisMachine) {
  Topology host = hostTopology();
  EXPECT_EQ(host.ranks(), 1);
  EXPECT_GT(host.device.memory.value, mebibytes(100));
}

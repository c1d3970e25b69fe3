// Container limits from laid-out proc and sys files, and the refusal of what does not fit.
#include "base/Container.h"
#include "device/cpu/CpuDevice.h"
#include "engine/Carver.h"
#include "engine/PagePool.h"
#include "fake/FakeBundle.h"
#include "fake/Root.h"
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::runtime;

namespace {

const std::pair<std::string, std::string> machine = {"proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 900000 kB\n"};

} // namespace

TEST(Container, MachineWithoutLimits) {
  Root root({machine});
  const Container container = readContainer(root.folder);
  EXPECT_EQ(container.memoryBytes, 1024000000);
  EXPECT_EQ(container.availableBytes, 921600000);
  EXPECT_EQ(container.memorySource, "MemTotal of /proc/meminfo");
  EXPECT_EQ(container.quota, 0);
  EXPECT_EQ(container.defaultThreads, static_cast<int32_t>(container.processors.size()));
}

TEST(Container, Cgroup2LimitsOfAnyAncestorBind) {
  Root root({machine,
             {"proc/self/cgroup", "0::/a/b\n"},
             {"sys/fs/cgroup/a/b/memory.max", "max\n"},
             {"sys/fs/cgroup/a/memory.max", "100000000\n"},
             {"sys/fs/cgroup/a/memory.current", "60000000\n"},
             {"sys/fs/cgroup/a/memory.stat", "anon 1\nfile 20000000\n"},
             {"sys/fs/cgroup/a/cpu.max", "50000 100000\n"}});
  const Container container = readContainer(root.folder);
  EXPECT_EQ(container.memoryBytes, 100000000);
  EXPECT_EQ(container.availableBytes, 60000000);
  EXPECT_EQ(container.memorySource, "/sys/fs/cgroup/a/memory.max");
  EXPECT_EQ(container.quota, 0.5);
  EXPECT_EQ(container.defaultThreads, 1);
}

TEST(Container, Cgroup1) {
  Root root({machine,
             {"proc/self/cgroup", "4:memory:/x\n3:cpu,cpuacct:/\n"},
             {"sys/fs/cgroup/memory/memory.limit_in_bytes", "200000000\n"},
             {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
             {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}});
  const Container container = readContainer(root.folder);
  EXPECT_EQ(container.memoryBytes, 200000000);
  EXPECT_EQ(container.defaultThreads, static_cast<int32_t>(container.processors.size()));
}

TEST(Container, RubbishIsNoLimit) {
  Root root({machine, {"sys/fs/cgroup/memory.max", "lots\n"}, {"sys/fs/cgroup/cpu.max", "\n"}});
  EXPECT_EQ(readContainer(root.folder).memoryBytes, 1024000000);
}

TEST(CpuDevice, WhatDoesNotFitIsRefusedWithBothNumbers) {
  FakeBundle fake("fake_large");
  Expected<Bundle> bundle = Bundle::open(fake.folder);
  ASSERT_TRUE(bundle) << bundle.error().text();
  CpuOptions options;
  options.threads = 1;
  options.container = readContainer();
  options.container->memoryBytes = 100000000;
  options.container->memorySource = "/sys/fs/cgroup/memory.max";
  Expected<std::unique_ptr<CpuDevice>> device = CpuDevice::create(*bundle, options);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, K2RT_OUT_OF_MEMORY);
  const std::string text = device.error().text();
  EXPECT_NE(text.find(std::to_string(bundle->manifest.memory.peakBytes(1))), std::string::npos) << text;
  EXPECT_NE(text.find("memory.max allows 95.37 MiB (100.00 MB) = 100000000 bytes"), std::string::npos) << text;
  options.container->memoryBytes = INT64_MAX;
  options.container->availableBytes = 1000;
  EXPECT_FALSE(CpuDevice::create(*bundle, options));
}

TEST(PagePool, HandsOutEachPageOnce) {
  PagePool pool(10);
  std::vector<int32_t> a(4), b(6);
  pool.take(4, a.data());
  pool.take(6, b.data());
  EXPECT_EQ(pool.available(), 0);
  std::vector<int32_t> all(a);
  all.insert(all.end(), b.begin(), b.end());
  std::sort(all.begin(), all.end());
  for (int32_t page = 0; page < 10; ++page)
    EXPECT_EQ(all[page], page);
  pool.giveBack(4, a.data());
  EXPECT_EQ(pool.available(), 4);
}

TEST(Carver, AlignsAndKnowsItsEnd) {
  std::vector<std::byte> memory(4096);
  Carver carver(memory.data(), 4096);
  auto *first = carver.take<char>(1);
  auto *second = carver.take<char>(1);
  EXPECT_EQ(second - first, 64);
  EXPECT_TRUE(carver.fits());
  EXPECT_EQ(carver.take<char>(4096), nullptr);
  EXPECT_FALSE(carver.fits());
}

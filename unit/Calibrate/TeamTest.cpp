//===- TeamTest.cpp - Workers, memory and kernels that fail a calibration ---===//
#include "Team.h"
#include "../LimitedChild.h"
#include "Measurement.h"
#include "Memory.h"
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::calibration;

TEST(Memory, MoreThanAnAddressSpaceIsRefused) {
  Expected<Memory> memory = Memory::map(Bytes(int64_t(1) << 50));
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().text(), "calibration: cannot map 1.00 PiB (1.13 PB): Cannot allocate memory; free memory");
}

TEST(Measurement, RatesAreKeptWithFourDigits) {
  EXPECT_EQ(rounded(123456.7), 123500);
  EXPECT_EQ(rounded(0.000123449), 0.0001234);
}

TEST(Team, WorkersThatDoNotStartAreRefused) {
  if (!test::canLimitMemory)
    GTEST_SKIP() << "a sanitizer takes memory itself";
  EXPECT_EQ(test::saidInChild([] {
              test::limitMoreMemory(16 << 20); // a worker's stack is a megabyte
              Expected<Team> team = Team::start(64, 0);
              return team ? "started" : team.error().text();
            }),
            "--threads 64: the workers do not start; allow the process more threads");
}

TEST(Team, AKernelThatFailsIsRefused) {
  Expected<Team> team = Team::start(1, 0);
  ASSERT_TRUE(team) << team.error().text();
  Launch launch;
  launch.function = [](k2rt_ir_worker *, void *const *) -> int32_t { return 1; };
  launch.items = 1;
  const k2rt_ir_step step = {};
  Expected<Seconds> time = team->time({launch}, step, Seconds(0));
  ASSERT_FALSE(time);
  EXPECT_EQ(time.error().text(), "calibration: a kernel failed on data of its own; report it with the CPU's name");
}

TEST(Measurement, BuffersThatAreTooSmallAreRefused) {
  Expected<Memory> memory = Memory::map(kibibytes(4));
  Expected<Team> team = Team::start(1, 0);
  ASSERT_TRUE(memory && team);
  Buffers buffers(*memory);
  const TargetInfo target;
  const std::vector<Probe> probes = linearProbes(target, /*quick=*/true, /*maxWorkers=*/1);
  const Kernels none;
  const Bench bench{target, buffers, *memory};
  Measurement measurement(probes, none, bench, *team, Seconds(0));
  Status status = measurement.round(kibibytes(256), [] {});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().text(),
            "calibration: the buffers are too small for a kernel; report it with the CPU's name");
}

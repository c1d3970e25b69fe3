// Affinity masks of machines of any size, and that binding a thread is what the system then reports.
#include "base/Processors.h"
#include <cerrno>
#include <gtest/gtest.h>
#include <thread>

using namespace k2c;

namespace {

/// A machine whose kernel knows processors 0 .. kernelBits-1; the calling thread may run on `allowed`.
int kernelBits = 0;
std::vector<int> allowed;

int machine(pid_t, size_t bytes, cpu_set_t *mask) {
  if (bytes * 8 < static_cast<size_t>(kernelBits)) {
    errno = EINVAL;
    return -1;
  }
  for (int processor : allowed)
    CPU_SET_S(processor, bytes, mask);
  return 0;
}

int refusal(pid_t, size_t, cpu_set_t *) {
  errno = EPERM;
  return -1;
}

int always(pid_t, size_t, cpu_set_t *) {
  errno = EINVAL;
  return -1;
}

} // namespace

TEST(Processors, MoreThanOneMaskHolds) {
  kernelBits = 8192;
  allowed = {0, 1023, 1024, 5000, 8191};
  EXPECT_EQ(ownProcessors(machine), allowed);
}

TEST(Processors, EveryProcessorOfALargeMachine) {
  kernelBits = 4096;
  allowed.resize(1536);
  for (int processor = 0; processor < 1536; ++processor)
    allowed[processor] = processor;
  EXPECT_EQ(ownProcessors(machine).size(), 1536u);
}

TEST(Processors, ARefusalTellsNothing) {
  EXPECT_EQ(ownProcessors(refusal), std::vector<int>());
  EXPECT_EQ(ownProcessors(always), std::vector<int>());
}

TEST(Processors, AThreadRunsWhereItIsBound) {
  const std::vector<int> before = ownProcessors();
  ASSERT_FALSE(before.empty());
  std::vector<int> bound;
  int outcome = -1;
  std::thread([&] {
    outcome = bindThread(::pthread_self(), {before.back()});
    bound = ownProcessors();
  }).join();
  EXPECT_EQ(outcome, 0);
  EXPECT_EQ(bound, std::vector<int>{before.back()});
  EXPECT_EQ(ownProcessors(), before) << "another thread is not bound";
}

TEST(Processors, WhatTheMachineLacksIsRefused) { EXPECT_EQ(bindThread(::pthread_self(), {(1 << 20) - 1}), EINVAL); }

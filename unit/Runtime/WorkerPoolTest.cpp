// Workers meet: every job runs once on every worker, also with many more workers than processors.
#include "k2rt/WorkerPool.h"
#include "../LimitedChild.h"
#include <atomic>
#include <gtest/gtest.h>
#include <thread>

using namespace k2c;
using namespace k2c::runtime;

TEST(WorkerPool, EveryWorkerRunsEveryJobOnce) {
  for (int32_t threads : {1, 2, 7}) {
    Expected<std::unique_ptr<WorkerPool>> pool = WorkerPool::start(threads, readContainer());
    ASSERT_TRUE(pool) << pool.error().text();
    std::vector<int> runs(threads, 0);
    for (int job = 0; job < 50; ++job)
      (*pool)->run([&](int32_t worker) { ++runs[worker]; });
    EXPECT_EQ(runs, std::vector<int>(threads, 50));
  }
}

TEST(WorkerPool, StartsAndEndsWithoutAJob) { EXPECT_TRUE(WorkerPool::start(3, readContainer())); }

TEST(WorkerPool, AThreadThatTheSystemRefusesIsNamed) {
  if (!k2c::test::canLimitMemory)
    GTEST_SKIP() << "a sanitizer takes memory itself";
  const std::string said = k2c::test::saidInChild([] {
    k2c::test::limitMoreMemory(16 << 20); // a thread's stack is a megabyte
    Expected<std::unique_ptr<WorkerPool>> pool = WorkerPool::start(64, readContainer());
    return pool ? "started" : pool.error().text();
  });
  EXPECT_EQ(said.rfind("--threads 64: cannot start thread ", 0), 0u) << said;
  EXPECT_NE(said.find(": Resource temporarily unavailable"), std::string::npos) << said;
}

TEST(Barrier, WhoWaitsIdlesUntilTheLastArrives) {
  constexpr int32_t threads = 2;
  Expected<std::unique_ptr<WorkerPool>> pool = WorkerPool::start(threads, readContainer());
  ASSERT_TRUE(pool);
  Barrier barrier(threads, (*pool)->spins());
  std::atomic<int32_t> idled{0};
  (*pool)->run([&](int32_t worker) {
    while (worker == 1 && idled == 0)
      std::this_thread::yield();
    barrier.wait([] {}, [&] { ++idled; });
  });
  EXPECT_GT(idled.load(), 0);
}

TEST(Barrier, NobodyPassesEarlyAndTheActionIsSeenByAll) {
  constexpr int32_t threads = 5;
  Expected<std::unique_ptr<WorkerPool>> pool = WorkerPool::start(threads, readContainer());
  ASSERT_TRUE(pool);
  Barrier barrier(threads, (*pool)->spins());
  int32_t rounds = 0; // written by the last to arrive only
  std::atomic<int32_t> wrong{0};
  (*pool)->run([&](int32_t) {
    for (int32_t round = 1; round <= 200; ++round) {
      barrier.wait([&] { ++rounds; });
      wrong += rounds != round;
      barrier.wait();
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

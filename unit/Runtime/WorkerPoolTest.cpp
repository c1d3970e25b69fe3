// Workers meet: every job runs once on every worker, also with many more workers than processors.
#include "host/WorkerPool.h"
#include <atomic>
#include <gtest/gtest.h>
#include <thread>

using namespace k2rt;

TEST(WorkerPool, EveryWorkerRunsEveryJobOnce) {
  for (int32_t threads : {1, 2, 7}) {
    Result<std::unique_ptr<WorkerPool>> pool = WorkerPool::start(threads, readContainer());
    ASSERT_TRUE(pool) << pool.error().text();
    std::vector<int> runs(threads, 0);
    for (int job = 0; job < 50; ++job)
      (*pool)->run([&](int32_t worker) { ++runs[worker]; });
    EXPECT_EQ(runs, std::vector<int>(threads, 50));
  }
}

TEST(WorkerPool, StartsAndEndsWithoutAJob) { EXPECT_TRUE(WorkerPool::start(3, readContainer())); }

TEST(Barrier, WhoWaitsIdlesUntilTheLastArrives) {
  constexpr int32_t threads = 2;
  Result<std::unique_ptr<WorkerPool>> pool = WorkerPool::start(threads, readContainer());
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
  Result<std::unique_ptr<WorkerPool>> pool = WorkerPool::start(threads, readContainer());
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

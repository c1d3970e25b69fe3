// Helped launches: tails cover the end of a share, every part is claimed once, by whoever comes first.
#include "host/Tail.h"
#include "host/WorkerPool.h"
#include "k2rt/share.h"
#include <gtest/gtest.h>
#include <vector>

using namespace k2rt;

// Whatever the numbers: the share's first items, then the parts of its tail, are the share, in order.
TEST(Tail, PartsEndTheShare) {
  for (int64_t begin : {int64_t(0), int64_t(5), int64_t(1) << 40})
    for (int64_t items = 0; items < 200; ++items) {
      const Tail tail = tailOf(begin, begin + items);
      EXPECT_GE(tail.begin, begin);
      EXPECT_EQ(tail.begin + tail.parts * tail.items, begin + items);
      EXPECT_GE(tail.parts * tail.items * 8, items) << "less than an eighth of " << items;
      EXPECT_LE(tail.parts, 2);
    }
}

TEST(Tail, NoMoreThanAnEighthOfALargeShare) {
  const Tail tail = tailOf(1000, 1000 + (int64_t(1) << 40));
  EXPECT_EQ(tail.parts * tail.items, int64_t(1) << 37);
}

TEST(Tail, AnItemOfItsOwnMayBeClaimed) {
  EXPECT_EQ(tailOf(7, 8).begin, 7);
  EXPECT_EQ(tailOf(7, 8).parts, 1);
  EXPECT_EQ(tailOf(7, 7).parts, 0);
}

// More workers than items, no items, and shares of unequal length: each item is in one place.
TEST(Tail, SharesOfALaunchAreWhole) {
  for (int32_t workers : {1, 2, 3, 7, 64})
    for (int64_t items : {0, 1, 5, 64, 1000}) {
      std::vector<int> runs(items, 0);
      for (int32_t worker = 0; worker < workers; ++worker) {
        const int64_t begin = k2rt_share_begin(items, worker, workers),
                      end = k2rt_share_begin(items, worker + 1, workers);
        const Tail tail = tailOf(begin, end);
        for (int64_t item = begin; item < tail.begin; ++item)
          ++runs[item];
        for (int64_t part = 0; part < tail.parts; ++part)
          for (int64_t item = 0; item < tail.items; ++item)
            ++runs[tail.begin + part * tail.items + item];
      }
      EXPECT_EQ(runs, std::vector<int>(items, 1)) << workers << " workers";
    }
}

TEST(TailClaims, ANewLaunchBeginsAnew) {
  TailClaims claims;
  EXPECT_EQ(claims.next(1, 2), 0);
  EXPECT_EQ(claims.next(1, 2), 1);
  EXPECT_EQ(claims.next(1, 2), 2) << "nothing is left";
  EXPECT_EQ(claims.next(2, 0), 0) << "nothing was there";
  EXPECT_EQ(claims.next(uint64_t(1) << 50, 1), 0);
  EXPECT_EQ(claims.next(uint64_t(1) << 50, 1), 1);
}

TEST(TailClaims, NeighboursLookAtEachOther) {
  for (int32_t count : {1, 2, 3, 4, 5, 64})
    for (int32_t worker = 0; worker < count; ++worker) {
      std::vector<int32_t> visited;
      visitNeighbours(worker, count, [&](int32_t neighbour) { visited.push_back(neighbour); });
      EXPECT_EQ(visited.front(), worker);
      EXPECT_EQ(static_cast<int32_t>(visited.size()), std::min(count, worker / 4 * 4 + 4) - worker / 4 * 4);
      for (int32_t neighbour : visited)
        EXPECT_EQ(neighbour / 4, worker / 4);
    }
}

TEST(TailClaims, EveryPartGoesToOneWorker) {
  constexpr int32_t threads = 4;
  Result<std::unique_ptr<WorkerPool>> pool = WorkerPool::start(threads, readContainer());
  ASSERT_TRUE(pool);
  constexpr uint64_t launches = 500;
  constexpr int64_t parts = 3;
  TailClaims claims;
  Barrier barrier(threads, (*pool)->spins());
  std::atomic<int32_t> taken{0}, wrong{0};
  (*pool)->run([&](int32_t) {
    for (uint64_t launch = 1; launch <= launches; ++launch) {
      while (claims.next(launch, parts) < parts)
        ++taken;
      barrier.wait([&] { wrong += taken.exchange(0) != parts; });
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

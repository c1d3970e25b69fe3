// What an exchange counts of its collectives, and how a rank tells another.
#include "exchange/Counters.h"
#include "exchange/Header.h"
#include "fake/OpenExchange.h"
#include "transport/local/LocalTransport.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::runtime;

namespace {

/// Runs `work(rank, exchange)` on a thread for each rank of `grid`, and closes their exchanges.
template <class Work> void onRanks(const Grid &grid, Work work) {
  std::vector<std::unique_ptr<Transport>> transports = localTransports(grid.ranks());
  std::vector<std::thread> team;
  for (int32_t rank = 0; rank < grid.ranks(); ++rank)
    team.emplace_back([&, rank] {
      const auto maker = [&]() -> Expected<std::unique_ptr<Transport>> { return std::move(transports[rank]); };
      Expected<std::unique_ptr<Exchange>> exchange = test::openExchange(maker, grid);
      work(rank, **exchange);
      EXPECT_TRUE((*exchange)->close());
    });
  for (std::thread &thread : team)
    thread.join();
}

/// Counters of a site that other ranks have waited for.
Counters sample() {
  Counters counters;
  RequestTotals totals;
  totals.sent = {SentBytes{100, 80, 3}, SentBytes{7, 40, 1}};
  totals.last = 2;
  totals.end = totals.begin + std::chrono::seconds(2);
  Collective c{Op::allToAllRows, Axis::rail, 1, 5};
  counters.count(c, totals, totals.begin + std::chrono::seconds(1));
  return counters;
}

} // namespace

TEST(Counters, SayWhoWaitedForWhom) {
  std::vector<SiteCounters> counters(2);
  onRanks(Grid{1, 2, 1, 2, 1, 1, 1}, [&](int32_t rank, Exchange &exchange) {
    std::vector<char> source(2000), result(2000);
    Collective c{Op::allToAll, Axis::ep, 6, 2};
    c.source = source.data();
    c.result = result.data();
    c.bytes = 1000;
    for (int i = 0; i < 2; ++i) {
      if (rank == 1)
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
      EXPECT_TRUE(exchange.run(c));
    }
    counters[rank] = exchange.counters().sites().at({6, 2});
  });
  for (const SiteCounters &site : counters) {
    EXPECT_EQ(site.op, Op::allToAll);
    EXPECT_EQ(site.axis, Axis::ep);
    EXPECT_EQ(site.calls, 2);
    EXPECT_EQ(site.tiers[0].payloadBytes + site.tiers[0].controlBytes, 0) << "each rank is a node";
    EXPECT_EQ(site.tiers[1].payloadBytes, 2 * 1000);
    EXPECT_EQ(site.tiers[1].messages, 2);
    EXPECT_EQ(site.tiers[1].controlBytes, 2 * int64_t(sizeof(Header)));
    EXPECT_LE(site.waitedSeconds, site.seconds);
  }
  EXPECT_GT(counters[0].waitedFor.at(1), 0.1);
  EXPECT_LT(counters[1].waitedSeconds, counters[0].waitedSeconds);
}

// Four ranks on two nodes; each sends as many rows to a member as its number says.
TEST(Counters, RowsAreCountedByTierAtTheirSender) {
  std::vector<SiteCounters> counters(4);
  onRanks(Grid{1, 4, 1, 4, 1, 1, 2}, [&](int32_t rank, Exchange &exchange) {
    const int64_t sent[] = {0, 1, 2, 3}, sentOffsets[] = {0, 0, 1, 3};
    int64_t received[] = {3, 3, 3, 3}, receivedOffsets[] = {0, 3, 6, 9};
    std::vector<char> source(6 * 10), result(12 * 10);
    Collective c{Op::allToAllRows, Axis::ep, 0, 4};
    c.source = source.data();
    c.result = result.data();
    c.bytes = 10;
    c.rows = {sent, sentOffsets, received, receivedOffsets, /*isCapacity=*/true};
    EXPECT_TRUE(exchange.run(c));
    counters[rank] = exchange.counters().sites().at({0, 4});
  });
  const int64_t within[] = {1, 0, 3, 2}, between[] = {5, 5, 1, 1};
  for (int32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(counters[rank].tiers[0].messages, within[rank]) << rank;
    EXPECT_EQ(counters[rank].tiers[0].payloadBytes, 10 * within[rank]) << rank;
    EXPECT_EQ(counters[rank].tiers[1].messages, between[rank]) << rank;
    EXPECT_EQ(counters[rank].tiers[1].payloadBytes, 10 * between[rank]) << rank;
    EXPECT_EQ(counters[rank].tiers[0].controlBytes, int64_t(sizeof(Header)));
    EXPECT_EQ(counters[rank].tiers[1].controlBytes, 2 * int64_t(sizeof(Header)));
  }
}

TEST(Counters, CountsAndControlAreNoPayload) {
  Counters counters;
  RequestTotals totals;
  totals.sent[0] = {100, 80, 1};
  Collective c{Op::counts, Axis::ep, 1};
  counters.count(c, totals, totals.begin);
  c = {Op::broadcast, Axis::world, 2};
  counters.count(c, totals, totals.begin);
  c.isControl = true;
  counters.count(c, totals, totals.begin);
  const TierCounters counts = counters.sites().at({1, -1}).total(), broadcast = counters.sites().at({2, -1}).total();
  EXPECT_EQ(counts.payloadBytes, 0);
  EXPECT_EQ(counts.messages, 0);
  EXPECT_EQ(counts.controlBytes, 180);
  EXPECT_EQ(broadcast.payloadBytes, 100);
  EXPECT_EQ(broadcast.messages, 1);
  EXPECT_EQ(broadcast.controlBytes, 80 + 180);
}

TEST(Counters, LayersOfASiteAreCountedApart) {
  Counters counters;
  const RequestTotals totals;
  for (const int32_t layer : {3, 4, 3}) {
    const Collective c{Op::allToAllRows, Axis::ep, 0, layer};
    counters.count(c, totals, totals.begin);
  }
  EXPECT_EQ(counters.sites().at({0, 3}).calls, 2);
  EXPECT_EQ(counters.sites().at({0, 4}).calls, 1);
}

TEST(Counters, ReachAnotherRankAsTheyAre) {
  Counters sums;
  for (int rank = 0; rank < 2; ++rank) {
    Expected<Counters> read = Counters::read(sample().words(4), 4);
    ASSERT_TRUE(read) << read.error().text();
    sums.add(*read);
  }
  ASSERT_EQ(sums.sites().size(), 1u);
  const SiteCounters &site = sums.sites().at({1, 5});
  EXPECT_EQ(site.op, Op::allToAllRows);
  EXPECT_EQ(site.axis, Axis::rail);
  EXPECT_EQ(site.calls, 1) << "all ranks have the same calls";
  EXPECT_EQ(site.tiers[0].payloadBytes, 200);
  EXPECT_EQ(site.tiers[0].messages, 6);
  EXPECT_EQ(site.tiers[1].controlBytes, 80);
  EXPECT_EQ(site.seconds, 4);
  EXPECT_EQ(site.waitedFor, (std::vector<double>{0, 0, 2, 0}));
}

// Each number of an entry is held to what a rank can count.
TEST(Counters, WhatNoRankCountsIsRefused) {
  const std::vector<int64_t> words = sample().words(4);
  ASSERT_EQ(static_cast<int64_t>(words.size()), Counters::entryWords(4));
  const auto isRefused = [&](size_t at, int64_t word) {
    std::vector<int64_t> changed = words;
    changed[at] = word;
    Expected<Counters> read = Counters::read(changed, 4);
    const std::string said = read ? "" : read.error().text();
    EXPECT_TRUE(read || said == "counters: have numbers that no rank counts; start the same build of k2c on every host")
        << said;
    return !read;
  };
  int64_t notANumber = 0;
  const double nan = std::nan("");
  std::memcpy(&notANumber, &nan, sizeof nan);
  for (size_t at = 0; at < words.size(); ++at)
    EXPECT_TRUE(isRefused(at, at < 11 ? -2 : notANumber)) << at;
  EXPECT_TRUE(isRefused(0, int64_t(1) << 31));
  EXPECT_TRUE(isRefused(2, opCount));
  EXPECT_TRUE(isRefused(3, axisCount));
  EXPECT_TRUE(isRefused(5, int64_t(1) << 52));
  std::vector<int64_t> cut = words;
  cut.pop_back();
  EXPECT_FALSE(Counters::read(cut, 4));
}

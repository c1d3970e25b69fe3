// What is measured of links: rates that no link exceeds, the same on all ranks, by messages that suit its speed.
#include "exchange/LinkProbe.h"
#include "fake/OpenExchange.h"
#include "transport/local/LocalTransport.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <map>

using namespace k2c;
using namespace k2c::runtime;
using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

constexpr ProbeTimes briefly = {milliseconds(5), milliseconds(10), milliseconds(40)};
constexpr double pacedBytesPerSecond = 10e6;

/// Threads, but each sends at a pace: a message is done when a link of that rate would have carried it.
class Paced : public Transport {
public:
  explicit Paced(std::unique_ptr<Transport> inner) : inner(std::move(inner)) {}
  int32_t rank() const override { return inner->rank(); }
  int32_t ranks() const override { return inner->ranks(); }
  Ticket send(int32_t peer, int32_t tag, const void *data, int64_t bytes) override {
    const Ticket ticket = inner->send(peer, tag, data, bytes);
    const auto takes = std::chrono::duration<double>(static_cast<double>(bytes) / pacedBytesPerSecond);
    free = std::max(free, Clock::now()) + std::chrono::duration_cast<Clock::duration>(takes);
    due[ticket] = free;
    return ticket;
  }
  Ticket receive(int32_t peer, int32_t tag, void *data, int64_t capacity) override {
    return inner->receive(peer, tag, data, capacity);
  }
  Expected<bool> test(Ticket ticket) override {
    const auto found = due.find(ticket);
    if (found != due.end() && Clock::now() < found->second)
      return false;
    Expected<bool> has = inner->test(ticket);
    if (has && *has && found != due.end())
      due.erase(found);
    return has;
  }
  Doorbell &bell() override { return inner->bell(); }
  microseconds nap(Pace pace) const override { return std::min(inner->nap(pace), microseconds(500)); }
  Status close() override { return inner->close(); }

private:
  const std::unique_ptr<Transport> inner;
  Clock::time_point free = Clock::now();
  std::map<Ticket, Clock::time_point> due;
};

/// Runs `work(rank, probe)` on a thread for each rank.
template <class Work> void onRanks(int32_t ranks, bool isPaced, Work work) {
  std::vector<std::unique_ptr<Transport>> transports = localTransports(ranks);
  std::vector<std::thread> team;
  for (int32_t rank = 0; rank < ranks; ++rank)
    team.emplace_back([&, rank] {
      const auto maker = [&]() -> Expected<std::unique_ptr<Transport>> {
        if (isPaced)
          return std::unique_ptr<Transport>(new Paced(std::move(transports[rank])));
        return std::move(transports[rank]);
      };
      Grid grid;
      grid.dp = grid.ep = ranks;
      LinkProbe probe(std::move(*test::openExchange(maker, grid)), briefly);
      work(rank, probe);
    });
  for (std::thread &thread : team)
    thread.join();
}

void expectPositive(const LinkRates &rates) {
  for (const double number : {rates.latencySeconds, rates.aloneBytesPerSecond, rates.togetherBytesPerSecond})
    EXPECT_TRUE(std::isfinite(number) && number > 0) << number;
  for (const int64_t bytes : {rates.aloneBytes, rates.togetherBytes})
    EXPECT_TRUE(bytes >= 4096 && bytes <= 16 << 20) << bytes;
}

} // namespace

TEST(LinkProbe, AllRanksFindTheSame) {
  for (const std::vector<int32_t> &counts : {std::vector<int32_t>{2, 2}, {1, 3}}) {
    int32_t ranks = 1;
    for (const int32_t count : counts)
      ranks *= count;
    std::vector<std::vector<LinkRates>> found(static_cast<size_t>(ranks));
    onRanks(ranks, /*isPaced=*/false, [&](int32_t rank, LinkProbe &probe) {
      LinkTier tier{1, 1};
      for (const int32_t count : counts) {
        tier = {tier.inner * tier.count, count};
        if (count == 1)
          continue;
        Expected<LinkRates> rates = probe.measure(tier);
        ASSERT_TRUE(rates) << rates.error().text();
        found[rank].push_back(*rates);
      }
      EXPECT_TRUE(probe.close());
    });
    for (const std::vector<LinkRates> &ofRank : found)
      for (size_t tier = 0; tier < ofRank.size(); ++tier) {
        expectPositive(ofRank[tier]);
        EXPECT_EQ(ofRank[tier].latencySeconds, found[0][tier].latencySeconds);
        EXPECT_EQ(ofRank[tier].aloneBytes, found[0][tier].aloneBytes);
      }
  }
}

TEST(LinkProbe, NoRateIsAboveThatOfTheLink) {
  onRanks(2, /*isPaced=*/true, [&](int32_t, LinkProbe &probe) {
    Expected<LinkRates> rates = probe.measure({1, 2});
    ASSERT_TRUE(rates) << rates.error().text();
    expectPositive(*rates);
    EXPECT_LE(rates->aloneBytesPerSecond, pacedBytesPerSecond);
    EXPECT_LE(rates->togetherBytesPerSecond, pacedBytesPerSecond);
    EXPECT_LE(rates->aloneBytes, 512 << 10) << "which takes 52 ms, more than it may look";
    EXPECT_TRUE(probe.close());
  });
}

TEST(LinkProbe, ARankThatLeavesEndsItOnAllRanks) {
  onRanks(3, /*isPaced=*/false, [](int32_t rank, LinkProbe &probe) {
    if (rank == 1)
      return;
    Expected<LinkRates> rates = probe.measure({1, 3});
    ASSERT_FALSE(rates);
    EXPECT_NE(rates.error().text().find("rank 1"), std::string::npos) << rates.error().text();
  });
}

TEST(LinkProbe, AnInterruptEndsItOnAllRanks) {
  onRanks(2, /*isPaced=*/true, [&](int32_t rank, LinkProbe &probe) {
    if (rank == 0)
      probe.interrupt();
    Expected<LinkRates> rates = probe.measure({1, 2});
    ASSERT_FALSE(rates);
    EXPECT_EQ(rates.error().code, K2RT_INTERRUPTED) << rates.error().text();
  });
}

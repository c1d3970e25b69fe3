// What the exchange computes and says without a transport between processes: groups, orders, headers, counters.
#include "exchange/Exchange.h"
#include "../LimitedChild.h"
#include "exchange/TreeSum.h"
#include "fake/OpenExchange.h"
#include "transport/RankText.h"
#include "transport/local/LocalTransport.h"
#include <array>
#include <gtest/gtest.h>
#include <thread>
#include <utility>

using namespace k2c;
using namespace k2c::runtime;

namespace {

std::vector<int32_t> ranksOf(const Grid &grid, Axis axis, int32_t rank) {
  const Group group = grid.group(axis, rank);
  std::vector<int32_t> ranks;
  for (int32_t i = 0; i < group.size; ++i)
    ranks.push_back(group.rank(i));
  EXPECT_EQ(ranks[group.self], rank);
  return ranks;
}

using Ranks = std::vector<int32_t>;

/// The exchange of the one rank there is.
std::unique_ptr<Exchange> alone() {
  const auto maker = []() -> Expected<std::unique_ptr<Transport>> { return std::move(localTransports(1)[0]); };
  Expected<std::unique_ptr<Exchange>> exchange = test::openExchange(maker, Grid());
  EXPECT_TRUE(exchange) << exchange.error().text();
  return std::move(*exchange);
}

std::string said(const Status &status) { return status ? "" : status.error().text(); }

/// A transport whose thread, once, cannot run for a while, as that of a suspended process.
class Suspended : public Transport {
public:
  Suspended(std::unique_ptr<Transport> own, std::chrono::milliseconds time) : own(std::move(own)), time(time) {}
  int32_t rank() const override { return own->rank(); }
  int32_t ranks() const override { return own->ranks(); }
  Ticket send(int32_t peer, int32_t tag, const void *data, int64_t bytes) override {
    return own->send(peer, tag, data, bytes);
  }
  Ticket receive(int32_t peer, int32_t tag, void *data, int64_t capacity) override {
    isAwaited |= tag != controlTag;
    return own->receive(peer, tag, data, capacity);
  }
  Expected<bool> test(Ticket ticket) override {
    if (isAwaited)
      std::this_thread::sleep_for(std::exchange(time, std::chrono::milliseconds(0)));
    return own->test(ticket);
  }
  Doorbell &bell() override { return own->bell(); }
  std::chrono::microseconds nap(Pace pace) const override { return own->nap(pace); }
  Status close() override { return own->close(); }

private:
  std::unique_ptr<Transport> own;
  std::chrono::milliseconds time;
  bool isAwaited = false;
};

/// The exchange of a rank of two.
std::unique_ptr<Exchange> ofTwo(std::unique_ptr<Transport> transport, std::chrono::milliseconds deadline) {
  Grid grid;
  grid.dp = grid.ep = 2;
  const auto maker = [&]() -> Expected<std::unique_ptr<Transport>> { return std::move(transport); };
  return std::move(*test::openExchange(maker, grid, deadline));
}

Status gatherRank(Exchange &exchange) {
  const int64_t own = exchange.rank();
  std::array<int64_t, 2> all{};
  Collective gather{Op::allGather, Axis::world, 1};
  gather.source = &own;
  gather.result = all.data();
  gather.bytes = sizeof own;
  return exchange.run(gather);
}

} // namespace

// Two replicas of two stages of 4 ranks, on nodes of 2: rank 13 is in the second stage of the second replica.
TEST(Grid, GroupsFollowFromTheAxes) {
  const Grid grid{2, 2, 1, 4, 2, 2, 2};
  EXPECT_EQ(ranksOf(grid, Axis::tp, 13), (Ranks{12, 13}));
  EXPECT_EQ(ranksOf(grid, Axis::dp, 13), (Ranks{13, 15}));
  EXPECT_EQ(ranksOf(grid, Axis::etp, 13), (Ranks{13}));
  EXPECT_EQ(ranksOf(grid, Axis::ep, 13), (Ranks{12, 13, 14, 15}));
  EXPECT_EQ(ranksOf(grid, Axis::pp, 13), (Ranks{9, 13}));
  EXPECT_EQ(ranksOf(grid, Axis::replica, 13), (Ranks{5, 13}));
  EXPECT_EQ(ranksOf(grid, Axis::node, 13), (Ranks{12, 13}));
  EXPECT_EQ(ranksOf(grid, Axis::rail, 13), (Ranks{13, 15}));
  EXPECT_EQ(ranksOf(grid, Axis::stage, 13), (Ranks{12, 13, 14, 15}));
  EXPECT_EQ(grid.group(Axis::world, 13).size, 16);
}

// A stage of 8 ranks on nodes of 4, of which two next to each other have parts of the same experts.
TEST(Grid, RanksThatDivideExpertsHaveTheSamePart) {
  const Grid grid{1, 8, 2, 4, 1, 1, 4};
  EXPECT_EQ(ranksOf(grid, Axis::etp, 5), (Ranks{4, 5}));
  EXPECT_EQ(ranksOf(grid, Axis::ep, 5), (Ranks{1, 3, 5, 7}));
  EXPECT_EQ(ranksOf(grid, Axis::node, 5), (Ranks{5, 7}));
  EXPECT_EQ(ranksOf(grid, Axis::rail, 5), (Ranks{1, 5}));
}

TEST(Grid, ANodeOfSeveralStagesHasThatOfTheRank) {
  const Grid grid{1, 2, 1, 2, 4, 1, 4};
  EXPECT_EQ(ranksOf(grid, Axis::node, 3), (Ranks{2, 3}));
  EXPECT_EQ(ranksOf(grid, Axis::rail, 3), (Ranks{3}));
}

TEST(Grid, AxesThatDoNotFitAreRefused) {
  EXPECT_EQ(said((Grid{2, 2, 1, 4, 1, 1, 2}).check(4)), "");
  EXPECT_EQ(said((Grid{0, 2, 1, 1, 1, 1, 1}).check(1)), "layout: an axis has less than 1 rank");
  EXPECT_EQ(said((Grid{2, 2, 1, 3, 1, 1, 1}).check(4)),
            "layout: tp * dp are 4 ranks of a stage, etp * ep are 3; choose the same product for both");
  EXPECT_EQ(said((Grid{1, 6, 1, 6, 1, 1, 4}).check(6)),
            "layout: 4 ranks of a node and 6 of a stage do not divide one another; choose a layout whose stages fill "
            "nodes");
  EXPECT_EQ(said((Grid{1, 4, 2, 2, 1, 1, 1}).check(4)),
            "layout: 2 ranks that have parts of an expert do not divide the 1 of a stage on a node; choose an etp that "
            "does");
  EXPECT_EQ(said((Grid{1, 4, 1, 4, 2, 1, 1}).check(4)),
            "layout: 4 ranks were started, the program is for 8; start as many as its topology has");
}

TEST(TreeSum, NeighboursAreAddedFirst) {
  const float a = 1e8f, b = 3.25f, c = -1e8f, d = 7.5f, e = 1e-3f, f = 11.0f;
  std::vector<float> rows = {a, b, c, d, e, f};
  treeSum(rows.data(), 6, 1);
  EXPECT_EQ(rows[0], ((a + b) + (c + d)) + (e + f));
  EXPECT_NE(rows[0], ((((a + b) + c) + d) + e) + f) << "these values do not show the order";
  rows = {a, b, c, d, e};
  treeSum(rows.data(), 5, 1);
  EXPECT_EQ(rows[0], ((a + b) + (c + d)) + e);
}

TEST(Exchange, OneRankHasNobodyToWaitFor) {
  std::unique_ptr<Exchange> exchange = alone();
  const std::vector<int64_t> source = {3, -5};
  std::vector<int64_t> result(2), workspace(2);
  Collective c{Op::allReduceMax, Axis::world, 1};
  c.source = source.data();
  c.result = result.data();
  c.workspace = workspace.data();
  c.bytes = 16;
  EXPECT_EQ(said(exchange->run(c)), "");
  EXPECT_EQ(result, source);
  EXPECT_EQ(said(exchange->close()), "");
}

TEST(Exchange, RanksOtherThanTheProgramsAreRefused) {
  const auto maker = []() -> Expected<std::unique_ptr<Transport>> { return std::move(localTransports(3)[0]); };
  Expected<std::unique_ptr<Exchange>> exchange = test::openExchange(maker, Grid());
  ASSERT_FALSE(exchange);
  EXPECT_EQ(exchange.error().message, "3 ranks were started, the program is for 1");
}

TEST(Exchange, AThreadThatTheSystemRefusesIsNamed) {
  if (!k2c::test::canLimitMemory)
    GTEST_SKIP() << "a sanitizer takes memory itself";
  const std::string text = k2c::test::saidInChild([] {
    k2c::test::limitMoreMemory(1 << 20);
    const auto maker = []() -> Expected<std::unique_ptr<Transport>> { return std::move(localTransports(1)[0]); };
    std::vector<std::unique_ptr<Exchange>> several; // the first ones get the stacks of threads that have ended
    for (int i = 0; i < 64; ++i) {
      Expected<std::unique_ptr<Exchange>> exchange = test::openExchange(maker, Grid());
      if (!exchange)
        return exchange.error().text();
      several.push_back(std::move(*exchange));
    }
    return std::string("all were started");
  });
  EXPECT_EQ(text, "communication thread: cannot be started: Resource temporarily unavailable");
}

TEST(Exchange, AsManyAsThereMayBeAreInFlight) {
  std::unique_ptr<Exchange> exchange = alone();
  Collective c{Op::broadcast, Axis::world, 4};
  std::vector<RequestId> open;
  for (int32_t i = 0; i < Posts::maxInFlight; ++i)
    open.push_back(*exchange->start(c));
  Expected<RequestId> another = exchange->start(c);
  ASSERT_FALSE(another);
  EXPECT_EQ(another.error().text(), "site 4 (broadcast, group world, step 0): 32 collectives are in flight, as many as "
                                    "there may be; wait for one of them before the next start");
  EXPECT_TRUE(exchange->wait(open[5]));
  EXPECT_EQ(*exchange->start(c), open[5]);
}

TEST(Exchange, RowsThatARankKeepsMustFit) {
  std::unique_ptr<Exchange> exchange = alone();
  int64_t sent = 3, received = 2, offset = 0;
  Collective c{Op::allToAllRows, Axis::world, 9};
  c.rows = {&sent, &offset, &received, &offset, true};
  Expected<RequestId> request = exchange->start(c);
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().text(),
            "site 9 (all_to_all_rows, group world, step 0): this rank keeps 3 rows of its own and expects 2");
}

TEST(Exchange, AnInterruptEndsAWait) {
  std::vector<std::unique_ptr<Transport>> transports = localTransports(2);
  const auto maker = [&]() -> Expected<std::unique_ptr<Transport>> { return std::move(transports[0]); };
  Expected<std::unique_ptr<Exchange>> exchange = test::openExchange(maker, Grid{1, 2, 1, 2, 1, 1, 1});
  ASSERT_TRUE(exchange);
  char byte = 0;
  Collective c{Op::broadcast, Axis::world, 4};
  c.peer = 1; // which is not there
  c.result = &byte;
  c.bytes = 1;
  std::thread user([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    (*exchange)->interrupt();
  });
  const Status done = (*exchange)->run(c);
  user.join();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, K2RT_INTERRUPTED);
  EXPECT_EQ(done.error().text(), "rank 0: interrupted");
}

TEST(Exchange, ARankThatLeavesEndsTheOthers) {
  std::vector<std::unique_ptr<Transport>> transports = localTransports(2);
  std::string text;
  std::thread other([&] {
    const auto maker = [&]() -> Expected<std::unique_ptr<Transport>> { return std::move(transports[1]); };
    Expected<std::unique_ptr<Exchange>> exchange = test::openExchange(maker, Grid{1, 2, 1, 2, 1, 1, 1});
    text = said((*exchange)->close());
  });
  const auto maker = [&]() -> Expected<std::unique_ptr<Transport>> { return std::move(transports[0]); };
  (void)test::openExchange(maker, Grid{1, 2, 1, 2, 1, 1, 1});
  other.join();
  EXPECT_EQ(text, "rank 0: has ended the run: rank 0: has left the run before its end");
}

TEST(Header, AnotherFormatIsRefused) {
  const Collective c{Op::allGather, Axis::world, 5};
  Header own = headerOf(c, 1, 0, 0, 8), other = headerOf(c, 1, 0, 3, 8);
  EXPECT_TRUE(checkHeader(other, own, false, c));
  other.format = 7;
  const Status right = checkHeader(other, own, false, c);
  ASSERT_FALSE(right);
  EXPECT_EQ(right.error().text(), "site 5 (all_gather, group world, step 0): a message begins with 7, not with " +
                                      std::to_string(headerFormat) + "; start the same build of k2c on every host");
}

TEST(Header, BytesAreNeverNegative) {
  const Collective c{Op::allToAllRows, Axis::world, 5};
  const Header own = headerOf(c, 1, 0, 0, 8), other = headerOf(c, 1, 0, 3, -8);
  EXPECT_FALSE(checkHeader(other, own, true, c));
}

TEST(Inquiry, NamesTheFirstOfManyRanks) {
  EXPECT_EQ(rankList({4}), "rank 4");
  EXPECT_EQ(rankList({4, 5}), "ranks 4 and 5");
  EXPECT_EQ(rankList({1, 2, 3, 4, 5, 6, 7, 8, 9}), "ranks 1, 2, 3, 4, 5, 6, 7, 8 and 9");
  EXPECT_EQ(rankList({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), "ranks 1, 2, 3, 4, 5, 6, 7, 8 and 2 more");
}

// Rank 1 has a transport, but no thread that receives.
TEST(Inquiry, NamesAMessageThatIsNotTaken) {
  std::vector<std::unique_ptr<Transport>> transports = localTransports(2);
  Control control(*transports[0]);
  const std::vector<char> source(1000);
  Collective c{Op::send, Axis::pp, 8, 1, 2};
  c.source = source.data();
  c.bytes = 1000;
  c.peer = 1;
  CollectiveRequest request;
  request.begin(c, Group{Axis::pp, 0, 1, 2, 0}, 1, 0, 1);
  ASSERT_TRUE(request.advance(*transports[0]));
  EXPECT_EQ(Inquiry(request, control).error(std::chrono::seconds(30)).text(),
            "site 8 (send, layer 1, group pp, step 2): the deadline of 30 s has passed: rank 1 has not finished a "
            "message, 0 of 0 bytes were received; rank 1 does not answer; a longer deadline helps ranks that are slow");
}

TEST(Inquiry, HasPatienceForTimeInWhichNobodyCouldHear) {
  std::vector<std::unique_ptr<Transport>> transports = localTransports(2);
  Control control(*transports[0]);
  std::array<int64_t, 2> all{};
  Collective gather{Op::allGather, Axis::world, 1};
  gather.source = gather.result = all.data();
  gather.bytes = sizeof(int64_t);
  CollectiveRequest request;
  request.begin(gather, Group{Axis::world, 0, 1, 2, 0}, 1, 0, 1);
  ASSERT_TRUE(request.advance(*transports[0]));
  Inquiry inquiry(request, control);
  const Clock::time_point later = Clock::now() + 2 * Inquiry::answerTime;
  EXPECT_TRUE(inquiry.isOver(later));
  inquiry.forgive(2 * Inquiry::answerTime);
  EXPECT_FALSE(inquiry.isOver(later));
}

// Rank 0 is suspended for longer than its deadline; rank 1 comes a little later than it wakes.
TEST(Deadline, DoesNotCountTimeInWhichTheRankWasSuspended) {
  std::vector<std::unique_ptr<Transport>> transports = localTransports(2);
  const std::chrono::milliseconds deadline{600}, suspended{1000}, late{1300};
  auto first = ofTwo(std::make_unique<Suspended>(std::move(transports[0]), suspended), deadline);
  auto second = ofTwo(std::move(transports[1]), deadline);
  std::thread other([&] {
    std::this_thread::sleep_for(late);
    EXPECT_EQ(said(gatherRank(*second)), "");
    EXPECT_EQ(said(second->close()), "");
  });
  EXPECT_EQ(said(gatherRank(*first)), "");
  EXPECT_EQ(said(first->close()), "");
  other.join();
}

TEST(Control, AnotherFormatIsRefused) {
  std::vector<std::unique_ptr<Transport>> transports = localTransports(2);
  Control control(*transports[0]);
  ControlMessage message{9, ControlKind::question, 1, K2RT_OK, {}};
  transports[1]->send(0, controlTag, &message, sizeof message);
  const auto heard = control.poll();
  ASSERT_FALSE(heard);
  EXPECT_EQ(heard.error().text(), "rank 1: a control message begins with 9, not with " + std::to_string(controlFormat) +
                                      "; start the same build of k2c on every host");
}

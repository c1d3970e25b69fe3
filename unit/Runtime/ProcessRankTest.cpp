// Ranks that know nothing of one another but a transport: they agree on a bundle, or say what differs, and then run as
// ranks of one process do.
#include "device/cpu/ProcessRank.h"
#include "engine/Agreement.h"
#include "engine/Scheduler.h"
#include "fake/FakeBundle.h"
#include "transport/local/LocalTransport.h"
#include <gtest/gtest.h>
#include <thread>

using namespace k2c;
using namespace k2c::runtime;

namespace {

RankPresence presence(const std::string &host, uint64_t manifest = 1) {
  RankPresence one;
  one.hashes = {manifest, 2, 3, 4};
  std::copy(host.begin(), host.end(), one.host.begin());
  return one;
}

RankFacts ranksOn(int64_t count, int64_t nodes) {
  RankFacts ranks;
  ranks.count = count;
  ranks.nodes = nodes;
  return ranks;
}

std::string saidOf(const std::vector<RankPresence> &all, const RankFacts &ranks) {
  Expected<HostPlace> place = placeAmong(all, ranks, 0);
  return place ? "" : place.error().text();
}

/// A rank in a thread of its own, as its process would be.
class RankThread {
public:
  RankThread(std::unique_ptr<Transport> &transport, const std::string &folder)
      : thread([this, &transport, folder] {
          const auto maker = [&]() -> Expected<std::unique_ptr<Transport>> { return std::move(transport); };
          std::unique_ptr<ProcessRank> own = std::move(*ProcessRank::join(maker, defaultDeadline));
          CpuOptions onCpu;
          onCpu.threads = 1;
          const Status served = own->serve({folder, {}}, onCpu);
          text = served ? "" : served.error().text();
          failedRank = own->failedRank();
        }) {}
  /// What it says at its end.
  const std::string &said() {
    thread.join();
    return text;
  }

  int32_t failedRank = -1; ///< behind said()

private:
  std::string text;
  std::thread thread;
};

std::unique_ptr<ProcessRank> join(std::unique_ptr<Transport> &transport) {
  const auto maker = [&]() -> Expected<std::unique_ptr<Transport>> { return std::move(transport); };
  return std::move(*ProcessRank::join(maker, defaultDeadline));
}

} // namespace

TEST(Agreement, RanksOfAHostShareIt) {
  const std::vector<RankPresence> all = {presence("a"), presence("a"), presence("b"), presence("b")};
  for (int32_t rank = 0; rank < 4; ++rank) {
    Expected<HostPlace> place = placeAmong(all, ranksOn(4, 2), rank);
    ASSERT_TRUE(place) << place.error().text();
    EXPECT_EQ(place->index, rank % 2);
    EXPECT_EQ(place->ranks, 2);
  }
}

TEST(Agreement, AllNodesMayBeOnOneHost) {
  Expected<HostPlace> place = placeAmong(std::vector<RankPresence>(4, presence("a")), ranksOn(4, 2), 3);
  ASSERT_TRUE(place) << place.error().text();
  EXPECT_EQ(place->index, 3);
  EXPECT_EQ(place->ranks, 4);
}

TEST(Agreement, AnotherBundleIsNamed) {
  EXPECT_EQ(saidOf({presence("a"), presence("b", 7)}, ranksOn(2, 2)),
            "rank 1 (host b): manifest.json hashes to 0000000000000007, that of rank 0 (host a) to 0000000000000001; "
            "give every host the same bundle");
}

TEST(Agreement, HostsMayHaveTheWeightsOfTheirRanks) {
  std::vector<RankPresence> all = {presence("a"), presence("b"), presence("c")};
  const RankFacts ranks = ranksOn(3, 3);
  for (RankPresence &one : all)
    one.commonWeights = 6;
  all[1].allWeights = all[2].allWeights = 5; // those of the first are of its rank
  EXPECT_EQ(saidOf(all, ranks), "");
  all[2].allWeights = 7;
  EXPECT_EQ(saidOf(all, ranks),
            "rank 2 (host c): weights/index.json hashes to 0000000000000007, that of rank 1 (host b) "
            "to 0000000000000005; give every host the same bundle");
  all[2].commonWeights = 8;
  all[2].allWeights = 0;
  EXPECT_EQ(saidOf(all, ranks),
            "rank 2 (host c): what all ranks have of the weights hashes to 0000000000000008, that of "
            "rank 0 (host a) to 0000000000000006; pack all hosts from one checkpoint");
}

TEST(Agreement, AnotherNumberOfRanksIsRefused) {
  EXPECT_EQ(saidOf({presence("a"), presence("a")}, ranksOn(4, 2)),
            "ranks: 2 were started, the bundle has 4; start it with DIR/launch.sh");
}

TEST(Agreement, ANodeIsOnOneHost) {
  EXPECT_EQ(saidOf({presence("a"), presence("b"), presence("b"), presence("a")}, ranksOn(4, 2)),
            "rank 1 (host b): is on another host than rank 0 (host a), the plan has them on one node; name a host for "
            "each of the 2 nodes: DIR/launch.sh --hosts FILE");
  EXPECT_EQ(saidOf({presence("a"), presence("b"), presence("b"), presence("c")}, ranksOn(4, 4)),
            "rank 2 (host b): is on the host of rank 1 (host b), the plan has them on two nodes; name a host for each "
            "of the 4 nodes: DIR/launch.sh --hosts FILE");
}

TEST(ProcessRanks, GiveWhatOneRankGives) {
  const FakeBundle fake("fake_ranks2");
  std::vector<std::unique_ptr<Transport>> transports = localTransports(2);
  RankThread other(transports[1], fake.folder);
  std::vector<std::vector<int32_t>> tokens(2);
  {
    const std::unique_ptr<ProcessRank> own = join(transports[0]);
    CpuOptions onCpu;
    onCpu.threads = 1;
    Expected<Bundle> bundle = own->open({fake.folder, {}}, onCpu);
    ASSERT_TRUE(bundle) << bundle.error().text();
    Expected<CpuEngine> cpu = own->createEngine(*bundle, {});
    ASSERT_TRUE(cpu) << cpu.error().text();
    StepEvents events;
    events.token = [&](const Sequence &sequence, int32_t id, bool) {
      tokens[sequence.number].push_back(id);
      return true;
    };
    Scheduler scheduler(*cpu->engine, std::move(events));
    for (int32_t i = 0; i < 2; ++i) {
      Request request;
      request.prompt = fakePrompt(5 + i, i);
      request.maxNew = 4;
      request.ignoreEos = true;
      ASSERT_TRUE(scheduler.add(std::move(request)));
    }
    EXPECT_TRUE(scheduler.drain());
    EXPECT_TRUE(cpu->engine->finish());
  }
  EXPECT_EQ(other.said(), "");
  for (int32_t i = 0; i < 2; ++i)
    EXPECT_EQ(tokens[i], fakeContinuation(fakePrompt(5 + i, i), 4)) << i;
}

TEST(ProcessRanks, DifferingBundlesEndTheStartOfAll) {
  FakeBundle fake("fake_ranks2"), changed("fake_ranks2");
  changed.manifest["eos"] = {5};
  changed.write();
  std::vector<std::unique_ptr<Transport>> transports = localTransports(2);
  RankThread other(transports[1], changed.folder);
  const std::unique_ptr<ProcessRank> own = join(transports[0]);
  Expected<Bundle> bundle = own->open({fake.folder, {}}, {});
  ASSERT_FALSE(bundle);
  EXPECT_NE(bundle.error().text().find("manifest.json hashes to "), std::string::npos) << bundle.error().text();
  EXPECT_NE(other.said().find("manifest.json hashes to "), std::string::npos);
}

TEST(ProcessRanks, AgreeOnPlacements) {
  const FakeBundle fake("fake_ranks2");
  std::vector<std::unique_ptr<Transport>> transports = localTransports(2);
  RankThread other(transports[1], fake.folder);
  const std::unique_ptr<ProcessRank> own = join(transports[0]);
  Expected<Bundle> bundle = own->open({fake.folder, {{fake.path("placement.json"), 5}}}, {});
  ASSERT_FALSE(bundle);
  EXPECT_NE(bundle.error().text().find("what --placement names hashes to 0000000000000000, that of rank 0"),
            std::string::npos)
      << bundle.error().text();
  EXPECT_NE(other.said().find("what --placement names hashes to "), std::string::npos);
}

TEST(ProcessRanks, ABundleThatIsMissingOnAHostIsToldToTheOthers) {
  const FakeBundle fake("fake_ranks2");
  std::vector<std::unique_ptr<Transport>> transports = localTransports(2);
  RankThread other(transports[1], fake.path("nowhere"));
  const std::unique_ptr<ProcessRank> own = join(transports[0]);
  Expected<Bundle> bundle = own->open({fake.folder, {}}, {});
  ASSERT_FALSE(bundle);
  EXPECT_EQ(bundle.error().text(), "rank 1: has ended the run: " + other.said());
  EXPECT_EQ(own->failedRank(), 1);
  EXPECT_EQ(other.failedRank, -1) << "it is its own";
}

TEST(ProcessRanks, AFailureOfTheFirstHasItsNumber) {
  const FakeBundle fake("fake_ranks2");
  std::vector<std::unique_ptr<Transport>> transports = localTransports(2);
  RankThread other(transports[1], fake.folder);
  EXPECT_FALSE(join(transports[0])->open({fake.path("nowhere"), {}}, {}));
  EXPECT_EQ(other.said().substr(0, 27), "rank 0: has ended the run: ");
  EXPECT_EQ(other.failedRank, 0);
}

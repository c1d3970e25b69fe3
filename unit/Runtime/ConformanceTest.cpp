// The conformance suite over ranks that are threads of this process.
#include "conformance/Suite.h"
#include "fake/OpenExchange.h"
#include "transport/local/LocalTransport.h"
#include <gtest/gtest.h>
#include <thread>

using namespace k2c;
using namespace k2c::runtime;
using namespace k2c::test;

namespace {

/// Runs `work(exchange)` on every rank, each in a thread; texts by rank.
template <class Work, class Bounds>
std::vector<std::string> onRanks(int32_t ranks, const Bounds &bounds, const Work &work) {
  std::vector<std::unique_ptr<Transport>> transports = localTransports(ranks);
  std::vector<std::string> texts(ranks);
  std::vector<std::thread> team;
  for (int32_t rank = 0; rank < ranks; ++rank)
    team.emplace_back([&, rank] {
      const auto own = [&]() -> Expected<std::unique_ptr<Transport>> { return std::move(transports[rank]); };
      const Bound bound = bounds(rank);
      Expected<std::unique_ptr<Exchange>> exchange =
          openExchange(own, conformanceGrid(ranks), bound.deadline, bound.program, bound.spins);
      texts[rank] = exchange ? work(**exchange) : exchange.error().text();
    });
  for (std::thread &thread : team)
    thread.join();
  return texts;
}

class Conformance : public testing::TestWithParam<std::tuple<int32_t, size_t>> {};

} // namespace

TEST_P(Conformance, Local) {
  const auto [ranks, number] = GetParam();
  const Case &chosen = conformanceCases()[number];
  const auto bounds = [](int32_t) { return Bound(); };
  const std::vector<std::string> found = onRanks(ranks, bounds, [&](Exchange &exchange) {
    Rank rank{exchange};
    std::string text = chosen.run(rank);
    Status closed = exchange.close();
    return text + (closed ? "" : closed.error().text());
  });
  EXPECT_EQ(found, std::vector<std::string>(ranks));
}

INSTANTIATE_TEST_SUITE_P(, Conformance,
                         testing::Combine(testing::ValuesIn(conformanceSizes()),
                                          testing::Range<size_t>(0, conformanceCases().size())),
                         [](const auto &info) {
                           return conformanceCases()[std::get<1>(info.param)].name +
                                  std::to_string(std::get<0>(info.param));
                         });

namespace {

struct Fault {
  const char *scenario;
  std::vector<const char *> texts; ///< each rank's error has one of them; none: there is no error
};

class Faults : public testing::TestWithParam<Fault> {};

} // namespace

TEST_P(Faults, AreNamedOnEveryRank) {
  for (const Scenario &scenario : faultScenarios()) {
    if (std::string(scenario.name) != GetParam().scenario)
      continue;
    const auto bounds = [&](int32_t rank) { return scenarioBound(scenario.name, rank); };
    const auto said = onRanks(4, bounds, [&](Exchange &exchange) {
      Status done = scenario.run(exchange);
      return done ? "" : done.error().text();
    });
    for (const std::string &text : said) {
      bool isExpected = GetParam().texts.empty() ? text.empty() : false;
      for (const char *part : GetParam().texts)
        isExpected |= text.find(part) != std::string::npos;
      EXPECT_TRUE(isExpected) << text;
    }
    return;
  }
  FAIL() << "no scenario has this name";
}

static constexpr const char *paths = "the ranks took different paths through one program: report it with the bundle";

INSTANTIATE_TEST_SUITE_P(
    , Faults,
    testing::Values(
        Fault{"site", {"rank 1 is at site 13, this rank at site 12", " is at site 12, this rank at site 13"}},
        Fault{"bytes", {"rank 1 sends 999 bytes, this rank expects 1000", " sends 1000 bytes, this rank expects 999"}},
        Fault{"program",
              {"rank 1 runs program 0000000000000bad, this rank 000000000000600d",
               " runs program 000000000000600d, this rank 0000000000000bad; start the same bundle on every host"}},
        Fault{"op",
              {"rank 1 is in round 0 of all_to_all, this rank in round 0 of all_gather",
               " is in round 0 of all_gather, this rank in round 0 of all_to_all"}},
        Fault{"step", {"rank 1 is at step 8, this rank at step 7", " is at step 7, this rank at step 8"}},
        Fault{"rows", {"rank 1 sends 400 bytes, this rank expects at most 300"}},
        Fault{"silent",
              {"site 12 (all_gather, layer 3, group world, step 7): the deadline of 1 s has passed: rank 1 has not "
               "posted, 2000 of 3000 bytes were received; the communication thread of rank 1 answers: its workers hang "
               "behind site 11 (all_gather, layer 3, group world, step 7); a longer deadline helps ranks that are "
               "slow"}},
        Fault{"elsewhere",
              {"answers: its workers wait at site 12 (all_gather, layer 3, group dp, step 7) for rank 3",
               "answers: its workers wait at site 12 (all_gather, layer 3, group world, step 7) for rank 1"}},
        Fault{"slow", {}},
        Fault{"late", {"the communication thread of rank 1 answers: its workers hang before the first collective"}},
        Fault{"ended",
              {"the communication thread of rank 1 answers: its workers have ended the run",
               "has passed before ranks 0, 2 and 3 ended the run"}},
        Fault{"failed",
              {"rank 1: has ended the run: kernel attention: failed with 1 on worker 0",
               "kernel attention: failed with 1 on worker 0"}},
        Fault{"unended",
              {"end of the run: the deadline of 1 s has passed before rank 1 ended the run; a longer deadline"}}),
    [](const auto &info) { return info.param.scenario; });

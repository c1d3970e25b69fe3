//===- PlaceExpertsTest.cpp - Traffic of routes, and placements for them ------===//
#include "k2c/Planner/PlaceExperts.h"
#include "TestModels.h"
#include "k2c/Planner/CompileLayout.h"
#include <random>

using namespace k2c;
using namespace k2c::test;

namespace {

/// Ranks on two nodes that send messages of 10 bytes and get rows of 1 byte back, all by rank.
ExpertDivision division(int64_t experts, int64_t ranks, int64_t slotsOfRank) {
  ExpertDivision by;
  by.model = {"tiny", {3}, experts, ranks, slotsOfRank};
  by.nodes = 2;
  by.messageBytes = 10;
  by.rowBytes = 1;
  by.tiers = {"node", "network"};
  return by;
}

RouteStatistics tokens(const ExpertDivision &by, std::vector<SourcedChoice> prefill,
                       std::vector<SourcedChoice> decode = {}) {
  RouteStatistics statistics{"tiny", by.model.experts, by.model.ranks, {}, {}};
  statistics.layers[3] = {std::move(prefill), std::move(decode)};
  return statistics;
}

ExpertPlacement slots(const ExpertDivision &by, std::vector<int32_t> experts) {
  ExpertPlacement placement;
  placement.slotsOfRank = *by.model.slotsOfRank;
  placement.layers[3] = {experts, experts};
  return placement;
}

ExpertPlacement before(const ExpertDivision &by) { return placedInOrder(by.model, /*hasCopies=*/true); }

/// Sets of two experts of which e and e + half are chosen together, by tokens of all ranks.
RouteStatistics pairs(const ExpertDivision &by, int64_t tokensOfEach) {
  std::vector<SourcedChoice> choices;
  const int64_t half = by.model.experts / 2;
  for (int64_t source = 0; source < by.model.ranks; ++source)
    for (int32_t expert = 0; expert < half; ++expert)
      choices.push_back({source, {expert, static_cast<int32_t>(expert + half)}, tokensOfEach});
  return tokens(by, choices);
}

} // namespace

TEST(RouteTraffic, IsCountedByTierAndRank) {
  const ExpertDivision by = division(8, 4, 2);
  const RouteStatistics statistics = tokens(by, {{0, {0, 1}, 5}, {0, {2, 3, 7}, 2}}, {{3, {6}, 1}, {3, {0, 2}, 1}});
  const Expected<RouteTraffic> traffic = countTraffic(statistics, placedInOrder(by.model, /*hasCopies=*/true), by);
  ASSERT_TRUE(traffic) << traffic.error().text();
  EXPECT_EQ(traffic->tiers[0].messages.value(), 2 * 2) << "{2,3} are a subtree of rank 1";
  EXPECT_EQ(traffic->tiers[0].payloadBytes.value(), 2 * (10 + 1));
  EXPECT_EQ(traffic->tiers[1].messages.value(), 2 * 2 + 1 * 4);
  EXPECT_EQ(traffic->tiers[1].payloadBytes.value(), 2 * (10 + 1) + 2 * (10 + 1));
  EXPECT_DOUBLE_EQ(traffic->nodesMean, (5 * 1 + 2 * 2 + 1 + 1) / 9.0);
  EXPECT_EQ(traffic->nodesMost, 2);
  EXPECT_EQ(traffic->rankRows.at(3), (std::vector<int64_t>{11, 5, 0, 3}));
  EXPECT_DOUBLE_EQ(traffic->imbalance(3), 11 * 4 / 19.0);
}

TEST(RouteTraffic, OfAPhaseIsOfItsTokens) {
  const ExpertDivision by = division(8, 4, 2);
  const RouteStatistics statistics = tokens(by, {{0, {2}, 5}}, {{0, {4}, 3}});
  ExpertPlacement placement = placedInOrder(by.model, /*hasCopies=*/true);
  placement.layers[3].decode = {4, 5, 6, 7, 0, 1, 2, 3}; // generated tokens find expert 4 at home
  const auto messages = [&](RoutedPhase phase, size_t tier) {
    return countTraffic(statistics, placement, by, phase)->tiers[tier].messages.value();
  };
  EXPECT_EQ(messages(RoutedPhase::Prefill, 0), 10);
  EXPECT_EQ(messages(RoutedPhase::Decode, 0), 0);
  EXPECT_EQ(messages(RoutedPhase::Both, 0), 10);
  EXPECT_EQ(messages(RoutedPhase::Both, 1), 0);
}

TEST(RouteTraffic, OutputRowsAreOfAPhase) {
  ExpertDivision by = division(8, 4, 2);
  by.ofToken = {{{1, 10}, {2, 30}}};
  by.ofOutput = {{{2, 100}, {4, 300}}};
  RouteStatistics statistics = tokens(by, {{0, {0, 1}, 5}}, {{0, {0, 1}, 2}});
  statistics.outputs = {3, 20};
  const auto sent = [&](RoutedPhase phase) { return countTraffic(statistics, before(by), by, phase)->tiers; };
  EXPECT_EQ(sent(RoutedPhase::Prefill)[0].messages.value(), 5 * 1 + 3 * 2) << "experts of rank 0 send nothing";
  EXPECT_EQ(sent(RoutedPhase::Prefill)[0].payloadBytes.value(), 5 * 10 + 3 * 100);
  EXPECT_EQ(sent(RoutedPhase::Decode)[1].messages.value(), 2 * 2 + 20 * 4);
  EXPECT_EQ(sent(RoutedPhase::Decode)[1].payloadBytes.value(), 2 * 30 + 20 * 300);
  EXPECT_EQ(sent(RoutedPhase::Both)[1].payloadBytes.value(), 7 * 30 + 23 * 300);
  statistics.outputs.reset();
  Expected<RouteTraffic> unknown = countTraffic(statistics, before(by), by, RoutedPhase::Both);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().text(),
            "outputs: are not stated, and ranks that divide the head send each other rows and logits of these; count "
            "anew, with this build: --expert-stats");
  by.ofOutput = {};
  EXPECT_TRUE(countTraffic(statistics, before(by), by, RoutedPhase::Both)) << "whole on each rank";
}

TEST(RouteTraffic, RanksOfAStageExchangeForTheirVocabulary) {
  const ModelSpec kimi = published("kimi-k2");
  const auto divided = [&](const char *layout, DType compute) {
    const Topology topology = *loadTopology("cpu4x2");
    return expertDivision(kimi, topology, *parseCompileLayout(layout, kimi, topology), compute);
  };
  const ExpertDivision all = divided("ep=8,vocab=8", DType::BF16);
  EXPECT_EQ(all.ofToken[0].rows, 2) << "its id to the other rank of the node, and columns back";
  EXPECT_EQ(all.ofToken[0].bytes, 4 + 7168 / 8 * 2);
  EXPECT_EQ(all.ofToken[1].rows, 6 * 2);
  EXPECT_EQ(all.ofToken[1].bytes, 6 * (4 + 7168 / 8 * 2));
  EXPECT_EQ(all.ofOutput[0].rows, 2);
  EXPECT_EQ(all.ofOutput[1].bytes, 6 * (7168 * 2 + 163840 / 8 * 4));
  EXPECT_EQ(divided("ep=8,vocab=8", DType::F32).ofOutput[0].bytes, 7168 * 4 + 163840 / 8 * 4);
  EXPECT_EQ(divided("ep=8", DType::BF16).ofOutput[1].rows, 0) << "each rank has all of it";
  const ExpertDivision staged = divided("ep=2,dp=2,pp=4,vocab=2", DType::BF16);
  EXPECT_EQ(staged.ofToken[0].bytes, 4 + 7168 / 2 * 2) << "at the first stage alone";
  EXPECT_EQ(staged.ofToken[1].rows, 0) << "a stage is on one node";
}

// Four groups of two ranks that share two experts each. What goes to other groups is as without groups: of rank 1, of
// group 0, to groups 1 on its node and 3 on the other one, and back. In each of three groups one message goes to the
// other rank, which sends back a row for each of three choices.
TEST(RouteTraffic, GroupsSendOnWhatArrivesAndPartsOfTheirSums) {
  ExpertDivision by = division(8, 4, 2);
  by.etp = 2;
  by.partBytes = 4;
  EXPECT_EQ(by.sources(), 8);
  const auto sent = [&](const SourcedChoice &choice) { return *countTraffic(tokens(by, {choice}), before(by), by); };
  const RouteTraffic away = sent({1, {0, 2, 7}, 3});
  EXPECT_EQ(away.tiers[0].messages.value(), 3 * (1 + 1 + 3 + 3));
  EXPECT_EQ(away.tiers[0].payloadBytes.value(), 3 * (10 + 1 + 3 * 10 + 3 * 4));
  EXPECT_EQ(away.tiers[1].messages.value(), 3 * (1 + 1));
  EXPECT_EQ(away.tiers[1].payloadBytes.value(), 3 * (10 + 1));
  EXPECT_EQ(away.rankRows.at(3), (std::vector<int64_t>{3, 3, 0, 3}));
  const RouteTraffic home = sent({6, {6, 7}, 5});
  EXPECT_EQ(home.tiers[0].messages.value(), 5 * (1 + 2)) << "of its own group's experts, within it";
  EXPECT_EQ(home.tiers[0].payloadBytes.value(), 5 * (10 + 2 * 4));
  EXPECT_EQ(home.tiers[1].messages.value(), 0);
}

TEST(RouteTraffic, EachOtherRankOfAGroupHasAPart) {
  ExpertDivision by = division(8, 2, 4);
  by.partBytes = 4;
  const auto bytes = [&](int64_t etp, int64_t source) {
    by.etp = etp;
    return countTraffic(tokens(by, {{source, {0, 1}, 1}}), before(by), by)->tiers[0].payloadBytes.value();
  };
  EXPECT_EQ(bytes(1, 0), 0) << "at home";
  EXPECT_EQ(bytes(4, 3), 3 * (10 + 2 * 4));
  by.hops.resize(2); // rank 3 of the second replica
  EXPECT_EQ(bytes(4, 8 + 3), 3 * (10 + 2 * 4));
}

TEST(RouteTraffic, GroupsThatShareExpertsAreThoseOfTheLayout) {
  const ModelSpec kimi = published("kimi-k2");
  const auto divided = [&](const char *name, const char *layout) {
    const Topology topology = *loadTopology(name);
    return expertDivision(kimi, topology, *parseCompileLayout(layout, kimi, topology), DType::BF16);
  };
  const ExpertDivision pairs = divided("cpu4x2", "ep=4,etp=2");
  EXPECT_EQ(pairs.model.ranks, 4);
  EXPECT_EQ(pairs.slots(), 384);
  EXPECT_EQ(pairs.sources(), 8);
  EXPECT_EQ(pairs.partBytes, 7168 * 4) << "f32, whatever rows are";
  EXPECT_FALSE(pairs.isTwoHop) << "a group a node";
  EXPECT_TRUE(divided("cpu4x2", "ep=8").isTwoHop);
  EXPECT_TRUE(divided("cpu16x8", "ep=64,etp=2").isTwoHop) << "four groups a node";
}

TEST(RouteTraffic, TokensGoToTheNearestCopy) {
  const ExpertDivision by = division(4, 4, 2); // two whole copies, of two nodes
  const RouteStatistics statistics = tokens(by, {{0, {0, 1}, 5}, {3, {0, 1, 2}, 2}});
  const ExpertPlacement placement = slots(by, {0, 1, 2, 3, 0, 1, 2, 3});
  const Expected<RouteTraffic> traffic = countTraffic(statistics, placement, by);
  ASSERT_TRUE(traffic) << traffic.error().text();
  EXPECT_EQ(traffic->tiers[1].messages.value(), 0);
  EXPECT_EQ(traffic->tiers[0].messages.value(), 2 * 2) << "rank 3 asks rank 2 for 0 and 1, and gets their sum";
  EXPECT_EQ(traffic->rankRows.at(3), (std::vector<int64_t>{10, 0, 4, 2}));
}

TEST(RouteTraffic, NoticesOverflow) {
  ExpertDivision by = division(8, 4, 2);
  by.messageBytes = int64_t(1) << 62;
  const Expected<RouteTraffic> traffic =
      countTraffic(tokens(by, {{0, {7}, 2}}), placedInOrder(by.model, /*hasCopies=*/true), by);
  ASSERT_FALSE(traffic);
  EXPECT_EQ(traffic.error().text(), "traffic: is more than 2^63 bytes; count fewer tokens");
}

TEST(PlaceExperts, PutsExpertsThatAreChosenTogetherOnOneNode) {
  const ExpertDivision by = division(8, 4, 2);
  const RouteStatistics statistics = pairs(by, 3);
  const ExpertPlacement placed =
      placeExperts(statistics, by, before(by), {RoutedPhase::Both, PlacementObjective::Nodes});
  const Expected<PlacementFigures> before =
      placementFigures(statistics, placedInOrder(by.model, /*hasCopies=*/true), by, RoutedPhase::Both);
  const Expected<PlacementFigures> after = placementFigures(statistics, placed, by, RoutedPhase::Both);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(before->nodesPerToken, 2);
  EXPECT_EQ(after->nodesPerToken, 1);
  EXPECT_LE(after->loadMost, 1.15);
  EXPECT_LT(after->rowsBetweenNodes.value(), before->rowsBetweenNodes.value());
}

// Random sets of which the order in which experts are is as good as any, from one rank or from all.
TEST(PlaceExperts, ByNodesHasNoMoreRowsThanBefore) {
  ExpertDivision by = division(8, 4, 2);
  by.messageBytes = 1; // as of k2c place, which counts rows
  std::mt19937 random(7);
  int64_t even = 0;
  for (int64_t round = 0; round < 200; ++round) {
    std::vector<SourcedChoice> choices;
    for (int64_t i = 0; i < 100; ++i) {
      const auto one = static_cast<int32_t>(random() % 8), other = static_cast<int32_t>((one + 1 + random() % 7) % 8);
      choices.push_back({round % 2 ? 0 : int64_t(random() % 4),
                         {std::min(one, other), std::max(one, other)},
                         int64_t(20 + random() % 10)});
    }
    const RouteStatistics statistics = tokens(by, choices);
    const ExpertPlacement placed =
        placeExperts(statistics, by, before(by), {RoutedPhase::Both, PlacementObjective::Nodes});
    const PlacementFigures was = *placementFigures(statistics, before(by), by, RoutedPhase::Both);
    const PlacementFigures is = *placementFigures(statistics, placed, by, RoutedPhase::Both);
    if (was.loadMost <= maxLoadByNodes) {
      ++even;
      EXPECT_LE(is.loadMost, maxLoadByNodes) << round;
      EXPECT_LE(is.rowsBetweenNodes.value(), was.rowsBetweenNodes.value()) << round;
    }
  }
  EXPECT_GT(even, 50);
}

TEST(PlaceExperts, ByNodesEvensWhatIsMoreThanItAllows) {
  const ExpertDivision by = division(4, 2, 2);
  const RouteStatistics statistics = tokens(by, {{0, {0, 1}, 100}, {1, {2, 3}, 10}});
  const ExpertPlacement placed =
      placeExperts(statistics, by, before(by), {RoutedPhase::Both, PlacementObjective::Nodes});
  EXPECT_EQ(placementFigures(statistics, before(by), by, RoutedPhase::Both)->rowsBetweenNodes.value(), 0);
  const PlacementFigures is = *placementFigures(statistics, placed, by, RoutedPhase::Both);
  EXPECT_EQ(is.loadMost, 1);
  EXPECT_GT(is.rowsBetweenNodes.value(), 0);
}

// Expert 0 is on both nodes, and all tokens are of one rank, which has it.
TEST(PlaceExperts, FiguresAreOfTheRanksThatHadTheTokens) {
  const ExpertDivision by = division(2, 2, 2);
  const RouteStatistics statistics = tokens(by, {{0, {0}, 30}, {0, {1}, 10}});
  const PlacementFigures figures = *placementFigures(statistics, slots(by, {0, -1, 0, 1}), by, RoutedPhase::Both);
  EXPECT_EQ(figures.loadMost, 1.5) << "not 1.25, of copies that share evenly";
  EXPECT_EQ(figures.loadMost, countTraffic(statistics, slots(by, {0, -1, 0, 1}), by)->imbalanceMost());
  EXPECT_EQ(figures.rowsBetweenNodes.value(), 20);
}

TEST(PlaceExperts, EvensTheRowsOfRanks) {
  const ExpertDivision by = division(8, 4, 2);
  // Experts 0 and 1, of rank 0, have most.
  const RouteStatistics statistics = tokens(by, {{0, {0}, 40}, {1, {1}, 40}, {2, {2, 4}, 20}, {3, {3, 5}, 20}});
  const ExpertPlacement placed = placeExperts(statistics, by, before(by), {});
  const Expected<PlacementFigures> before =
      placementFigures(statistics, placedInOrder(by.model, /*hasCopies=*/true), by, RoutedPhase::Both);
  const Expected<PlacementFigures> after = placementFigures(statistics, placed, by, RoutedPhase::Both);
  EXPECT_EQ(before->loadMost, 2);
  EXPECT_EQ(after->loadMost, 1);
}

TEST(PlaceExperts, SpareSlotsHoldCopiesOfHotExperts) {
  const ExpertDivision by = division(8, 4, 3);
  const RouteStatistics statistics = tokens(
      by, {{0, {5}, 250}, {1, {1}, 60}, {1, {5}, 250}, {2, {2, 3}, 60}, {2, {5}, 250}, {3, {4, 7}, 60}, {3, {5}, 250}});
  const std::vector<int32_t> experts = placeExperts(statistics, by, before(by), {}).layers.at(3).prefill;
  EXPECT_GE(std::count(experts.begin(), experts.end(), 5), 3);
  for (int64_t rank = 0; rank < 4; ++rank)
    EXPECT_LE(std::count(experts.begin() + 3 * rank, experts.begin() + 3 * rank + 3, 5), 1) << "once a rank";
  for (int32_t expert = 0; expert < 8; ++expert)
    EXPECT_GE(std::count(experts.begin(), experts.end(), expert), 1) << expert;
  const Expected<PlacementFigures> after = placementFigures(statistics, slots(by, experts), by, RoutedPhase::Both);
  EXPECT_LE(after->loadMost, 1.15);
}

TEST(PlaceExperts, NobodysChoiceLeavesThemInOrder) {
  const ExpertDivision by = division(8, 4, 2);
  EXPECT_EQ(placeExperts(tokens(by, {}), by, before(by), {}).layers.at(3).decode,
            placedInOrder(by.model, /*hasCopies=*/true).layers.at(3).decode);
}

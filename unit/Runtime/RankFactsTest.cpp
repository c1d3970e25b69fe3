// What a bundle of several ranks says of them: refusals with place and both numbers, and the part of a host that a rank
// has.
#include "../LimitedChild.h"
#include "device/cpu/LocalRanks.h"
#include "fake/OpenBundle.h"
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::runtime;
using nlohmann::json;

namespace {

/// The same of a bundle of two ranks with another value in its manifest.
std::string manifestWith(const char *path, const json &value) {
  FakeBundle fake("fake_ranks2");
  fake.manifest[json::json_pointer(path)] = value;
  fake.write();
  return opening(fake);
}

/// A host of two nodes: processors 0 to 3 and 4 to 5.
Container twoNodes() {
  Container host;
  host.processors = {0, 1, 2, 3, 4, 5};
  host.nodes = {{0, {0, 1, 2, 3}, 0}, {1, {4, 5}, 1}};
  host.defaultThreads = 6;
  return host;
}

} // namespace

TEST(RankFacts, AreReadOfSeveralRanks) {
  const FakeBundle fake("fake_ranks3");
  const Manifest manifest = *readManifest(*readFileList(fake.folder));
  EXPECT_EQ(manifest.ranks.count, 3);
  EXPECT_EQ(manifest.ranks.placement.slots, 18);
  EXPECT_EQ(manifest.ranks.collectives[0].quotaRows, 48);
  EXPECT_EQ(manifest.ranks.each[2].weights, 7 * 4096);
}

TEST(RankFacts, GroupsOfRanksHaveOneStep) {
  RankFacts facts;
  facts.count = 16;
  facts.replicas = 2;
  facts.tp = 2;
  facts.stages.resize(2); // of four ranks each
  EXPECT_EQ(facts.sources(), 8);
  EXPECT_EQ(facts.dataRanks(), 4);
  EXPECT_EQ(facts.sourceOf(7), 3) << "of the second stage";
  EXPECT_EQ(facts.dataRankOf(7), 1);
  EXPECT_EQ(facts.dataRankOf(6), 1);
  EXPECT_EQ(facts.sliceOf(6), 0);
  EXPECT_EQ(facts.sliceOf(7), 1);
  EXPECT_EQ(facts.dataRankOf(9), 2) << "of the second replica";
  EXPECT_EQ(facts.rankOf(5, 1), 13);
}

TEST(RankFacts, OfOneRankMayBeLeftOutOrStated) {
  FakeBundle fake;
  fake.manifest["layout"] = "dp=1";
  fake.manifest["collectives"] = json::array();
  fake.manifest["ranks"] = json::array();
  fake.write();
  EXPECT_EQ(opening(fake), "accepted");
  EXPECT_FALSE(readManifest(*readFileList(fake.folder))->ranks.areSeveral());
}

TEST(RankFacts, CollectivesOfOneRankAreRefused) {
  FakeBundle fake;
  fake.manifest["collectives"] = {{{"site", 0}}};
  fake.write();
  EXPECT_EQ(opening(fake), "manifest.json: collectives: are of several ranks, topology.ranks is 1" + again);
}

TEST(RankFacts, LayoutsThatDoNotFitAreRefused) {
  EXPECT_EQ(manifestWith("/layout", "ep=2,dp=2,redundant=0"), "accepted");
  EXPECT_EQ(manifestWith("/layout", "ep=4,dp=4"),
            "manifest.json: layout: has ep=4, this runtime runs ep=2 on 2 ranks" + again);
  EXPECT_EQ(manifestWith("/layout", "ep=2,dp=2,tp=2"),
            "manifest.json: layout: has dp=2, this runtime runs dp=1 on 2 ranks" + again);
  EXPECT_EQ(manifestWith("/layout", "ep=2,tp=4"), "manifest.json: layout: has tp=4, which must divide the 2 ranks of a "
                                                  "stage and the 2 of a node" +
                                                      again);
  EXPECT_EQ(manifestWith("/layout", "ep=2,dp=2,replicas=2"),
            "manifest.json: layout: has ep=2, this runtime runs ep=1 on 2 ranks" + again);
  for (const char *replicas : {"0", "3", "4097"})
    EXPECT_EQ(manifestWith("/layout", std::string("replicas=") + replicas),
              std::string("manifest.json: layout: has replicas=") + replicas +
                  ", which with 1 stages must divide the 2 ranks and fill nodes, or divide these" + again);
  EXPECT_EQ(manifestWith("/layout", "ep=2,dp=2,cp=2"),
            "manifest.json: layout: has cp=2, this runtime runs cp=1 on 2 ranks" + again);
  EXPECT_EQ(manifestWith("/layout", "ep=2,dp=2,ep=2"),
            "manifest.json: layout: is \"ep=2,dp=2,ep=2\", which has ep twice" + again);
  for (const char *text : {"ep", "ep=2;dp=2", "ep=,dp=2", "ep=-2", "ep=99999999999999999999"})
    EXPECT_EQ(manifestWith("/layout", text),
              "manifest.json: layout: is \"" + std::string(text) + "\", must be a list such as ep=2,dp=2" + again);
}

TEST(RankFacts, NodesBeyondTheRanksAreRefused) {
  EXPECT_EQ(manifestWith("/topology/nodes", 3), "manifest.json: topology.nodes: is 3, must be within 1..2" + again);
}

TEST(RankFacts, NodesHaveAsManyRanksInTheirOrder) {
  FakeBundle three("fake_ranks3");
  three.manifest["topology"]["nodes"] = 2;
  three.write();
  EXPECT_EQ(opening(three),
            "manifest.json: topology.nodes: is 2, must divide the 3 ranks: each node has as many" + again);
  EXPECT_EQ(manifestWith("/ranks/1/node", 1), "manifest.json: ranks[1].node: is 1, must be 0" + again);
  EXPECT_EQ(manifestWith("/topology/nodes", 2), "manifest.json: ranks[1].node: is 0, must be 1" + again);
}

TEST(RankFacts, LinksHaveTwoNames) {
  const json names[] = {{"box", "wire", "air"}, {"box"}, {"box", "box"}};
  for (const json &tiers : names)
    EXPECT_NE(manifestWith("/topology/tiers", tiers), "") << tiers;
  EXPECT_EQ(manifestWith("/topology/tiers", names[2]),
            "manifest.json: topology.tiers: must be two names: of links within a node, and between nodes" + again);
}

TEST(RankFacts, TiersOfTheTopologyMayBeOne) {
  FakeBundle fake("fake_ranks2");
  fake.manifest["topology"]["folded"] = {{"network", {"leaf", "spine"}}};
  fake.write();
  const Manifest manifest = *readManifest(*readFileList(fake.folder));
  EXPECT_TRUE(manifest.ranks.foldedTiers[0].empty());
  EXPECT_EQ(manifest.ranks.foldedTiers[1], (std::vector<std::string>{"leaf", "spine"}));
  EXPECT_EQ(manifestWith("/topology/folded", {{"leaf", {"a", "b"}}}),
            "manifest.json: topology.folded.leaf: unknown key" + again);
  EXPECT_NE(manifestWith("/topology/folded", {{"node", std::vector<std::string>(9, "a")}}), "");
}

TEST(RankFacts, PlacementsThatDoNotFitAreRefused) {
  EXPECT_EQ(manifestWith("/placement/file", "../placement.json"),
            "manifest.json: placement.file: is not a path inside the bundle" + again);
  EXPECT_EQ(manifestWith("/placement/experts", 15),
            "manifest.json: placement.experts: is 15, the model has 16" + again);
  for (int slots : {17, 14})
    EXPECT_EQ(manifestWith("/placement/slots", slots), "manifest.json: placement.slots: is " + std::to_string(slots) +
                                                           ", must be a multiple of the 2 ranks and hold 16 experts" +
                                                           again);
}

TEST(RankFacts, CollectivesThatAreNotKnownAreRefused) {
  EXPECT_EQ(manifestWith("/collectives/1/op", "broadcast"),
            "manifest.json: collectives[1].op: is \"broadcast\", this runtime knows all_to_all_rows, gather_slices, "
            "scatter_slices, send and receive" +
                again);
  EXPECT_EQ(
      manifestWith("/collectives/1/group", "tp"),
      "manifest.json: collectives[1].group: is \"tp\", of all_to_all_rows this runtime knows ep, etp, node, rail, "
      "stage" +
          again);
  FakeBundle fake("fake_ranks2");
  fake.manifest["collectives"][1]["op"] = "send";
  fake.write();
  EXPECT_EQ(opening(fake), "manifest.json: collectives[1].group: is \"ep\", of send this runtime knows pp" + again);
  fake.manifest["collectives"][1]["op"] = "gather_slices";
  fake.write();
  EXPECT_EQ(opening(fake),
            "manifest.json: collectives[1].group: is \"ep\", of gather_slices this runtime knows tp" + again);
  EXPECT_EQ(manifestWith("/collectives/1/site", 2), "manifest.json: collectives[1].site: is 2, must be 1" + again);
}

/// Of two ranks and two layers, with these stages.
std::string stagesWith(const std::vector<json> &stages, const char *layout = "pp=2", int64_t weights = 0) {
  FakeBundle fake("fake_ranks2");
  fake.manifest["layout"] = layout;
  fake.manifest["stages"] = stages;
  fake.manifest["collectives"] = json::array();
  for (const int rank : {0, 1}) {
    fake.manifest["ranks"][rank]["stage"] = rank;
    fake.manifest["ranks"][rank]["weights"] = rank * weights;
    fake.manifest["ranks"][rank]["layers"] = {rank, rank + 1};
    fake.manifest["ranks"][rank]["slots"] = fake.manifest["model"]["experts"];
  }
  fake.write();
  return opening(fake);
}

/// With these layers of each of two planes.
json stageOf(const json &layers, const std::vector<json> &planes) { return {{"layers", layers}, {"cache", planes}}; }
json planeOf(int64_t first, int64_t end) { return {{"first", first}, {"end", end}}; }

TEST(RankFacts, StagesHaveLayersOneAfterAnother) {
  const json first = stageOf({0, 1}, {planeOf(0, 1), planeOf(0, 1)}),
             last = stageOf({1, 2}, {planeOf(1, 2), planeOf(1, 2)});
  EXPECT_EQ(stagesWith({first, last}, "ep=2,dp=2"),
            "manifest.json: layout: has ep=2, this runtime runs ep=1 on 2 ranks" + again);
  EXPECT_EQ(stagesWith({stageOf({0, 2}, {planeOf(0, 2), planeOf(0, 2)})}),
            "manifest.json: stages: are 1 up to layer 2, must be two or more with all 2 layers" + again);
  EXPECT_EQ(stagesWith({first, stageOf({0, 2}, {planeOf(1, 2), planeOf(1, 2)})}),
            "manifest.json: stages[1].layers: must be [1, end] with an end of at most 2" + again);
  EXPECT_EQ(stagesWith({first, stageOf({1, 2}, {})}),
            "manifest.json: stages: have 0 planes of the cache, \"cache\" 2" + again);
  EXPECT_EQ(stagesWith({first, stageOf({1, 2}, {planeOf(0, 2), planeOf(0, 2)})}),
            "manifest.json: stages: have layers 0 to 2 of a plane of 2 in stage 1, the stages before end with 1" +
                again);
}

TEST(RankFacts, NoStageHasMoreThanTheCertificate) {
  const json first = stageOf({0, 1}, {planeOf(0, 1), planeOf(0, 1)});
  const json last = stageOf({1, 2}, {planeOf(1, 2), planeOf(1, 2)});
  const std::string said = stagesWith({first, last}, "pp=2", /*weights=*/1 << 30);
  EXPECT_NE(said.find("manifest.json: memory.cache: is "), std::string::npos) << said;
  EXPECT_NE(said.find(" bytes beside "), std::string::npos) << said;
  EXPECT_NE(said.find(" of weights, rank 1 has "), std::string::npos) << said;
  EXPECT_NE(said.find(" of both; compile the bundle again"), std::string::npos) << said;
}

TEST(RankFacts, SlotsOfAnEndAreOfAStage) {
  FakeBundle fake;
  fake.manifest["shares"] = {{{"slots", 1}, {"stage", "middle"}}};
  fake.write();
  EXPECT_EQ(opening(fake), "manifest.json: shares[0].stage: is \"middle\", must be first or last" + again);
  fake.manifest["shares"] = {{{"slots", 1}, {"parts", 2}}};
  fake.write();
  EXPECT_EQ(opening(fake), "manifest.json: shares[0].parts: is 2, must be 1" + again);
  FakeBundle pair("fake_ranks2");
  pair.manifest["layout"] = "tp=2,ep=2";
  pair.manifest["model"]["heads"] = 3;
  pair.write();
  EXPECT_EQ(opening(pair), "manifest.json: layout: has tp=2, which does not divide the 3 heads of the model" + again);
  pair.manifest["model"]["heads"] = 4;
  pair.manifest["shares"] = {{{"slots", 3}, {"parts", 2}}};
  pair.write();
  EXPECT_EQ(opening(pair), "manifest.json: shares[0].parts: is 2, must divide the 3 slots of the run" + again);
}

TEST(RankFacts, TheVocabularyIsDividedByAllRanksOfAStage) {
  FakeBundle pair("fake_ranks2");
  pair.manifest["layout"] = "ep=2,dp=2,vocab=3";
  pair.write();
  EXPECT_EQ(opening(pair), "manifest.json: layout: has vocab=3, which must be 1 or the 2 ranks of a stage" + again);
  pair.manifest["layout"] = "ep=2,dp=2,vocab=2";
  pair.manifest["shares"] = {{{"slots", 2}, {"parts", 3}}};
  pair.write();
  EXPECT_EQ(opening(pair), "manifest.json: shares[0].parts: is 3, must be within 1..2" + again);
  const int64_t weights = pair.manifest["memory"]["weights"];
  const auto shares = [&](int64_t items) {
    pair.manifest["shares"] = {{{"slots", 8}, {"parts", 2}, {"items", items}, {"item_bytes", weights / 8}}};
    pair.write();
    return opening(pair);
  };
  EXPECT_EQ(shares(3),
            "manifest.json: shares: count more bytes than memory.weights, " + std::to_string(weights) + again);
  EXPECT_EQ(shares(2).find("manifest.json: shares"), std::string::npos) << "ranks have a half each";
  FakeBundle four("fake_ranks4");
  four.manifest["layout"] = "tp=2,ep=4,dp=2,vocab=4";
  four.manifest["model"]["heads"] = 4;
  four.manifest["shares"] = {{{"slots", 3}, {"parts", 3}}};
  four.write();
  EXPECT_EQ(opening(four),
            "manifest.json: shares[0].parts: is 3, must be 1, the tp=2 or the vocab=4 of the layout" + again);
}

TEST(RankFacts, PartsOfExpertsAreOfRanksNextToEachOther) {
  RankFacts facts;
  facts.count = 16;
  facts.replicas = 2;
  facts.etp = 2;
  facts.stages.resize(2); // of four ranks each
  EXPECT_EQ(facts.expertRanks(), 2);
  EXPECT_EQ(facts.expertRankOf(5), 0) << "of the second stage";
  EXPECT_EQ(facts.expertRankOf(15), 1) << "of the second replica";
  FakeBundle pair("fake_ranks2");
  const auto layout = [&](const char *text) {
    pair.manifest["layout"] = text;
    pair.write();
    return opening(pair);
  };
  EXPECT_EQ(layout("ep=2,etp=0,dp=2"),
            "manifest.json: layout: has etp=0, which must divide 2, the ranks of a stage on a node" + again);
  EXPECT_EQ(layout("ep=1,etp=4,dp=2"),
            "manifest.json: layout: has etp=4, which must divide 2, the ranks of a stage on a node" + again);
  EXPECT_EQ(layout("ep=2,etp=2,dp=2"), "manifest.json: layout: has ep=2, this runtime runs ep=1 on 2 ranks" + again);
  EXPECT_EQ(layout("ep=1,etp=2,dp=2"), "manifest.json: ranks[0].slots: is 8, must be 16" + again);
  for (int rank : {0, 1})
    pair.manifest["ranks"][rank]["slots"] = 16;
  EXPECT_EQ(layout("ep=1,etp=2,dp=2"),
            "manifest.json: shares[1].parts: is 1 of experts, must be the etp=2 of the layout" + again);
  FakeBundle dense;
  dense.repeat(2, "tp=2,etp=2");
  dense.manifest["model"]["experts"] = 0;
  dense.write();
  EXPECT_EQ(opening(dense), "manifest.json: layout: has etp=2, which must divide 1, as there are no experts" + again);
}

TEST(RankFacts, HalvesHoldTheLargestStep) {
  const auto halves = [](int64_t rows, int64_t from) {
    return manifestWith("/halves", {{"rows", rows}, {"from", from}});
  };
  EXPECT_EQ(halves(23, 1), "manifest.json: halves.rows: is 23, must be within 24..48" + again);
  EXPECT_EQ(halves(49, 1), "manifest.json: halves.rows: is 49, must be within 24..48" + again);
  EXPECT_EQ(halves(24, 0), "manifest.json: halves.from: is 0, must be within 1..25" + again);
  EXPECT_EQ(halves(24, 26), "manifest.json: halves.from: is 26, must be within 1..25" + again)
      << "a step of 25 rows is more than a half";
  EXPECT_EQ(halves(24, 25), "program.so: has no entry 'serve_halves'; compile the bundle again");
}

TEST(RankFacts, EachRankIsListed) {
  FakeBundle fake("fake_ranks2");
  fake.manifest["ranks"].erase(1);
  fake.write();
  EXPECT_EQ(opening(fake), "manifest.json: ranks: has 1 entries, topology.ranks is 2" + again);
  EXPECT_EQ(manifestWith("/ranks/1/layers", {0, 1}),
            "manifest.json: ranks[1].layers: must be [0, 2], as of all ranks of stage 0" + again);
  EXPECT_EQ(manifestWith("/ranks/1/slots", 7), "manifest.json: ranks[1].slots: is 7, must be 8" + again);
}

TEST(RankFacts, AreThoseOfTheProgram) {
  EXPECT_EQ(manifestWith("/collectives/0/quota_rows", 47), "program.so: collective 0 is another one than the manifest "
                                                           "says, 47 rows of 16 bytes to each of 2 ranks of group ep; "
                                                           "compile the bundle again");
  EXPECT_EQ(manifestWith("/collectives/1/group", "rail"), "program.so: collective 1 is another one than the manifest "
                                                          "says, 0 rows of 16 bytes to each of 1 ranks of group rail; "
                                                          "compile the bundle again");
  FakeBundle fake("fake_ranks2");
  fake.manifest["collectives"].erase(1);
  fake.write();
  EXPECT_EQ(opening(fake), "program.so: n_collectives is 2, the manifest says 1; compile the bundle again");
}

TEST(HostShare, ProcessorsAreDividedNodeByNode) {
  const Container host = twoNodes();
  const Container second = partOf(host, {1, 2});
  EXPECT_EQ(second.processors, (std::vector<int>{3, 4, 5}));
  ASSERT_EQ(second.nodes.size(), 2u);
  EXPECT_EQ(second.nodes[0].processors, std::vector<int>{3});
  EXPECT_EQ(second.nodes[1].number, 1);
  EXPECT_EQ(second.defaultThreads, 3);
  EXPECT_EQ(partOf(host, {0, 1}).processors, host.processors);
}

TEST(HostShare, MoreRanksThanProcessorsShareAll) {
  const Container host = twoNodes();
  const HostShare share{6, 7};
  EXPECT_FALSE(share.isApart(host));
  EXPECT_EQ(partOf(host, share).processors, host.processors);
  EXPECT_EQ(partOf(host, share).defaultThreads, 1);
  EXPECT_TRUE(share.isCrowded(host, 1));
  EXPECT_FALSE((HostShare{0, 2}).isCrowded(host, 3));
}

TEST(HostShare, AQuotaIsDivided) {
  Container host = twoNodes();
  host.defaultThreads = 3;
  EXPECT_EQ(partOf(host, {1, 2}).defaultThreads, 1);
}

TEST(HostShare, WorkersStayOnTheProcessorsOfARank) {
  const std::vector<Node> nodes = {{0, {3, 4, 5}, 0}};
  EXPECT_EQ(bindingsOfWorkers(nodes, 2, /*isApart=*/true)[1].processors, (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(bindingsOfWorkers(nodes, 2)[1].processors, std::vector<int>{});
}

TEST(LocalRanks, AProcessHasNotAsManyAsACluster) {
  const FakeBundle fake("fake_ranks2");
  Bundle bundle = std::move(*Bundle::open(fake.folder, 0));
  bundle.manifest.ranks.count = 257;
  Expected<std::unique_ptr<LocalRanks>> started = LocalRanks::start(bundle, {}, std::chrono::seconds(1));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().text(), "--transport local: the bundle has 257 ranks, one process has at most 256; "
                                    "compile for a smaller topology");
}

TEST(StepArrays, ARefusalOfMemoryIsNamed) {
  if (!k2c::test::canLimitMemory)
    GTEST_SKIP() << "a sanitizer takes memory itself";
  FakeBundle fake("fake_ranks2");
  Manifest manifest = *readManifest(*readFileList(fake.folder));
  manifest.limits.step_tokens = 1 << 24;
  const std::string text = k2c::test::saidInChild([&] {
    k2c::test::limitMoreMemory(1 << 20);
    const Expected<StepArrays> arrays = StepArrays::allocateOwn(manifest);
    return arrays ? std::string("was taken") : arrays.error().text();
  });
  EXPECT_EQ(text, "step arrays: the system refuses memory for those of another rank");
}

TEST(LocalRanks, AllMustFitTheMemory) {
  const FakeBundle fake("fake_ranks3");
  const Bundle bundle = std::move(*Bundle::open(fake.folder, 0));
  CpuOptions onCpu;
  onCpu.threads = 1;
  onCpu.container = twoNodes();
  onCpu.container->memorySource = "a test";
  onCpu.container->availableBytes = onCpu.container->memoryBytes = 3 * bundle.manifest.memory.anonymousBytes(1);
  Expected<std::unique_ptr<LocalRanks>> started = LocalRanks::start(bundle, onCpu, std::chrono::seconds(1));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, K2RT_OUT_OF_MEMORY);
  EXPECT_NE(started.error().message.find("3 ranks of the bundle need "), std::string::npos) << started.error().text();
}

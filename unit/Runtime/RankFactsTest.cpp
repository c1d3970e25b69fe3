// What a bundle of several ranks says of them: refusals with place and both numbers, what a rank maps, and its part of
// a host.
#include "../LimitedChild.h"
#include "device/cpu/LocalRanks.h"
#include "fake/FakeBundle.h"
#include "program/Bundle.h"
#include <fstream>
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::runtime;
using nlohmann::json;

namespace {

/// What opening `bundle` for a rank says after the folder's name.
std::string opening(const FakeBundle &bundle, int32_t rank = 0) {
  const Expected<Bundle> opened = Bundle::open(bundle.folder, rank);
  return opened ? "accepted" : opened.error().text().substr(bundle.folder.size() + 1);
}

const std::string again = "; compile the bundle again with this version of k2c";

/// The same of a bundle of two ranks with another value in its manifest.
std::string manifestWith(const char *path, const json &value) {
  FakeBundle fake("fake_ranks2");
  fake.manifest[json::json_pointer(path)] = value;
  fake.write();
  return opening(fake);
}

/// The same with another value in its placement.
std::string placementWith(const char *path, const json &value) {
  FakeBundle fake("fake_ranks2");
  fake.placement[json::json_pointer(path)] = value;
  fake.write();
  return opening(fake);
}

/// The experts in the slots of a rank, by what their weights say; -1: no address.
std::vector<int32_t> expertsOf(const Bundle &bundle, size_t number = 0) {
  std::vector<int32_t> experts;
  const auto *table = static_cast<const void *const *>(bundle.weights.slots(number)[1]);
  for (int slot = 0; slot < 6; ++slot)
    experts.push_back(table[slot] ? *static_cast<const int32_t *>(table[slot]) - 1000 : -1);
  return experts;
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
            "manifest.json: layout: has tp=2, this runtime runs tp=1 on 2 ranks" + again);
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
            "manifest.json: collectives[1].op: is \"broadcast\", this runtime knows all_to_all_rows" + again);
  EXPECT_EQ(manifestWith("/collectives/1/group", "tp"),
            "manifest.json: collectives[1].group: is \"tp\", this runtime knows ep, node and rail" + again);
  EXPECT_EQ(manifestWith("/collectives/1/site", 2), "manifest.json: collectives[1].site: is 2, must be 1" + again);
}

TEST(RankFacts, EachRankIsListed) {
  FakeBundle fake("fake_ranks2");
  fake.manifest["ranks"].erase(1);
  fake.write();
  EXPECT_EQ(opening(fake), "manifest.json: ranks: has 1 entries, topology.ranks is 2" + again);
  EXPECT_EQ(manifestWith("/ranks/1/layers", {0, 1}),
            "manifest.json: ranks[1].layers: must be [0, 2]: every rank has all layers" + again);
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

TEST(Placement, IsOfTheBundle) {
  const std::string place = "placement.json: ";
  EXPECT_EQ(placementWith("/model", "other"), place + "model: is other, the bundle's is fake" + again);
  EXPECT_EQ(placementWith("/experts", 8), place + "experts: is 8, must be 16" + again);
  EXPECT_EQ(placementWith("/ranks", 3), place + "ranks: is 3, must be 2" + again);
  EXPECT_EQ(placementWith("/layers/2", json::object()),
            place + "layers: has 2 entries, the model has 1 layers of experts" + again);
  EXPECT_EQ(placementWith("/layers", {{"2", json::object()}}), place + "layers.1: is missing" + again);
}

TEST(Placement, HasEachExpertInASlotAndOnARankOnce) {
  const std::string both = "placement.json: layers.1.both";
  EXPECT_EQ(placementWith("/layers/1/both/0/3", 2), both + ": has expert 2 twice on rank 0" + again);
  EXPECT_EQ(placementWith("/layers/1/both/0/3", nullptr), both + ": has no slot for expert 3" + again);
  EXPECT_EQ(placementWith("/layers/1/both/1/3", 16), both + "[1][3]: is 16, must be within 0..15" + again);
  EXPECT_EQ(placementWith("/layers/1/both/1/3", "3"),
            both + "[1][3]: is \"3\", must be an integer within 0..15" + again);
  EXPECT_EQ(placementWith("/layers/1/both/1", {8, 9}), both + ": has 2 slots of rank 1, the program has 8" + again);
  EXPECT_EQ(placementWith("/layers/1/both/1", 5), both + "[1]: is 5, must be a list of at most 8" + again);
  EXPECT_EQ(placementWith("/layers/1/both", json::array()),
            both + ": has the slots of 0 ranks, the program has 2" + again);
}

TEST(Placement, OfPhasesHasBoth) {
  const std::string layer = "placement.json: layers.1.";
  EXPECT_EQ(placementWith("/layers/1/prefill", json::array()),
            layer + "both: stands beside a phase's own; leave out one of them" + again);
  EXPECT_EQ(placementWith("/layers/1", {{"prefill", FakeBundle("fake_ranks2").placement["layers"]["1"]["both"]}}),
            layer + "decode: is missing" + again);
}

TEST(Placement, IsListedAndHashed) {
  const FakeBundle fake("fake_ranks2");
  std::string text = fake.placement.dump();
  text.back() = ' ';
  std::ofstream(fake.path("placement.json")) << text;
  EXPECT_NE(opening(fake).find("placement.json: hashes to "), std::string::npos) << opening(fake);
}

TEST(Placement, TablesAreThoseOfKernels) {
  const FakeBundle fake("fake_ranks3");
  const Bundle bundle = std::move(*Bundle::open(fake.folder, 1));
  const int32_t *table = bundle.placement.entries(0);
  EXPECT_EQ(table[7], 7);      // the expert in its slot
  EXPECT_EQ(table[17], -1);    // none
  EXPECT_EQ(table[18 + 3], 0); // experts 0 to 3 are of rank 0
  EXPECT_EQ(table[18 + 5], 4); // of 4 to 7 it has 4 and 5
  EXPECT_EQ(bundle.placement.expertsOf(0, 1)[0], 6);
  EXPECT_EQ(bundle.placement.expertsOf(0, 0), nullptr) << "a layer without experts";
}

TEST(Placement, HoldsFromItsStepOn) {
  FakeBundle fake("fake_ranks2");
  json later = fake.placement, phases = fake.placement;
  std::swap(later["layers"]["1"]["both"][0], later["layers"]["1"]["both"][1]);
  phases["layers"]["1"] = {{"prefill", fake.placement["layers"]["1"]["both"]},
                           {"decode", later["layers"]["1"]["both"]}};
  fake.writeFile("later.json", later.dump());
  fake.writeFile("phases.json", phases.dump());
  Expected<Bundle> bundle = Bundle::open(fake.folder, 1, {{fake.path("phases.json"), 7}, {fake.path("later.json"), 3}});
  ASSERT_TRUE(bundle) << bundle.error().text();
  const Placement &placement = bundle->placement;
  ASSERT_EQ(placement.count(), 4u);
  for (auto [step, isPrefill, table] :
       {std::tuple(0, false, 0u), {2, true, 0u}, {3, true, 1u}, {6, false, 1u}, {7, true, 2u}, {99, false, 3u}})
    EXPECT_EQ(placement.tableAt(step, isPrefill), table) << step;
  for (size_t table = 0; table < 4; ++table) {
    EXPECT_EQ(placement.expertsOf(table, 1)[0], table % 2 == 0 ? 8 : 0) << table;
    EXPECT_EQ(expertsOf(*bundle, table)[0], table % 2 == 0 ? 8 : 0) << table;
  }
  EXPECT_EQ(bundle->weights.bytes() - bundle->weights.firstBytes(), 8 * 4096) << "experts 0 to 7";
}

TEST(Placement, OnlyOneHoldsFromAStepOn) {
  const FakeBundle fake("fake_ranks2");
  const std::string own = fake.path("placement.json");
  Expected<Bundle> bundle = Bundle::open(fake.folder, 1, {{own, 3}, {own, 3}});
  ASSERT_FALSE(bundle);
  EXPECT_EQ(bundle.error().text(), "--placement: names " + own + " and " + own +
                                       " from step 3 on; name one, or another step: --placement FILE@STEP");
}

TEST(Placement, IsOfSeveralRanks) {
  const FakeBundle fake;
  Expected<Bundle> bundle = Bundle::open(fake.folder, 0, {{fake.path("manifest.json"), 0}});
  ASSERT_FALSE(bundle);
  EXPECT_EQ(bundle.error().text(),
            "--placement: says which rank has which experts, and the program has one rank; leave it out");
}

TEST(Weights, ARankMapsItsExperts) {
  FakeBundle fake("fake_ranks3");
  json &lists = fake.placement["layers"]["1"]["both"];
  std::swap(lists[2][0], lists[2][5]); // an empty slot before others
  fake.write();
  const std::vector<std::vector<int32_t>> wanted = {{0, 1, 2, 3, 4, 5}, {6, 7, 8, 9, 10, 11}, {-1, 13, 14, 15, -1, 12}};
  for (int32_t rank = 0; rank < 3; ++rank) {
    Expected<Bundle> bundle = Bundle::open(fake.folder, rank);
    ASSERT_TRUE(bundle) << bundle.error().text();
    EXPECT_EQ(expertsOf(*bundle), wanted[rank]) << rank;
    EXPECT_EQ(bundle->weights.bytes(), 4096 * (rank == 2 ? 5 : 7));
  }
}

TEST(Weights, AnAbsentExpertOfARankHasItsNumber) {
  FakeBundle fake("fake_ranks2");
  fake.index["slots"][1]["experts"][11] = nullptr;
  fake.write();
  const Outcome outcome =
      runBundle(fake, {"generate", "--prompt-ids", "11,27", "-n", "1", "--transport", "local", "--threads", "2"});
  EXPECT_EQ(outcome.exitCode, 3);
  EXPECT_EQ(outcome.err, "run: error: rank 1: has ended the run: layer 1: a token wants expert 11, which the bundle "
                         "leaves out of 'experts'; k2c pack with the checkpoint brings all experts in\n");
}

TEST(Weights, ATableOfOtherExpertsThanThePlacementsIsRefused) {
  FakeBundle fake("fake_ranks2");
  fake.index["slots"][1]["layer"] = 0;
  fake.write();
  EXPECT_EQ(opening(fake), "weights/index.json: slot 1 has 16 experts of layer 0, the placement has none; compile the "
                           "bundle again");
  fake.index["slots"][1]["layer"] = 1;
  fake.index["slots"][1]["experts"].erase(15);
  fake.write();
  EXPECT_EQ(opening(fake), "weights/index.json: slot 1 has 15 experts of layer 1, the placement has 16; compile the "
                           "bundle again");
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

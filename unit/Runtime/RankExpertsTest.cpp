// Which experts a rank has: refusals of placements and of weights that are elsewhere, with place and both numbers; the
// tables that follow, and what of the weights is mapped for them.
#include "fake/OpenBundle.h"
#include "k2rt/ExpertNodes.h"
#include <fstream>
#include <gtest/gtest.h>
#include <numeric>

using namespace k2c;
using namespace k2c::runtime;
using nlohmann::json;

namespace {

/// The same of a bundle of two ranks with another value in its placement.
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

/// With files of --placement.
Expected<Bundle> openWith(const FakeBundle &fake, const std::vector<PlacementFile> &files, int32_t rank = 1) {
  Expected<std::vector<PlacementText>> texts = readPlacementFiles(files);
  return texts ? Bundle::open(fake.folder, rank, std::move(*texts)) : texts.takeError();
}

} // namespace

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

// Experts of a bound router may change their slots, and not their nodes.
TEST(Placement, LeavesTheExpertsOfABoundRouterOnTheirNodes) {
  std::vector<int32_t> inOrder(16);
  std::iota(inOrder.begin(), inOrder.end(), 0);
  ExpertNodes nodes(16, 2);
  nodes.addLayer(inOrder.data(), 16);
  FakeBundle fake("fake_ranks2");
  json &numerics = fake.manifest["numerics"], &both = fake.placement["layers"]["1"]["both"];
  fake.manifest["topology"]["nodes"] = 2;
  fake.manifest["ranks"][1]["node"] = 1;
  numerics["expert_nodes"] = nodes.hash();
  numerics["id"] = "v2/f32/none/f32/m1-" + nodes.hash();
  std::swap(both[0][0], both[0][5]);
  fake.write();
  EXPECT_EQ(opening(fake), "accepted");
  std::swap(both[0][0], both[1][5]);
  fake.write();
  std::swap(inOrder[5], inOrder[13]); // in slot 0 was expert 5
  ExpertNodes others(16, 2);
  others.addLayer(inOrder.data(), 16);
  EXPECT_EQ(opening(fake),
            "placement.json: has experts on other nodes than the program's routers choose by: their hash is " +
                others.hash() + ", that of numerics v2/f32/none/f32/m1-" + nodes.hash() + " is " + nodes.hash() +
                "; leave every expert on its nodes, or compile the bundle without --route-limit and "
                "--locality-penalty");
  numerics["id"] = "v2/f32/none/f32";
  fake.write();
  EXPECT_EQ(opening(fake), "manifest.json: numerics.id: is \"v2/f32/none/f32\", and ends with the hash of the nodes of "
                           "experts, \"" +
                               nodes.hash() + "\"" + again);
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
  EXPECT_EQ(table[18 + 3], 3); // a part has no subtree
  const int32_t *ofRank = table + 18 + 16;
  EXPECT_EQ(ofRank[3], 0); // experts 0 to 3 are of rank 0
  EXPECT_EQ(ofRank[5], 4); // of 4 to 7 it has 4 and 5
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
  Expected<Bundle> bundle = openWith(fake, {{fake.path("phases.json"), 7}, {fake.path("later.json"), 3}});
  ASSERT_TRUE(bundle) << bundle.error().text();
  const Placement &placement = bundle->placement;
  ASSERT_EQ(placement.count(), 4u);
  for (auto [step, isPrefill, table] :
       {std::tuple(0, false, 0u), {2, true, 0u}, {3, true, 1u}, {6, false, 1u}, {7, true, 2u}, {99, false, 3u}})
    EXPECT_EQ(tableAt(placement.periods(), step, isPrefill), table) << step;
  for (size_t table = 0; table < 4; ++table) {
    EXPECT_EQ(placement.expertsOf(table, 1)[0], table % 2 == 0 ? 8 : 0) << table;
    EXPECT_EQ(expertsOf(*bundle, table)[0], table % 2 == 0 ? 8 : 0) << table;
  }
  EXPECT_EQ(bundle->weights.bytes() - bundle->weights.firstBytes(), 8 * 4096) << "experts 0 to 7";
}

TEST(Placement, OnlyOneHoldsFromAStepOn) {
  const FakeBundle fake("fake_ranks2");
  const std::string own = fake.path("placement.json");
  Expected<Bundle> bundle = openWith(fake, {{own, 3}, {own, 3}});
  ASSERT_FALSE(bundle);
  EXPECT_EQ(bundle.error().text(), "--placement: names " + own + " and " + own +
                                       " from step 3 on; name one, or another step: --placement FILE@STEP");
}

TEST(Placement, OfAFileNamesWhatMakesOne) {
  FakeBundle fake("fake_ranks2");
  json wrong = fake.placement;
  wrong["layers"]["1"]["both"][0][3] = 2;
  fake.writeFile("wrong.json", wrong.dump());
  EXPECT_EQ(openWith(fake, {{fake.path("wrong.json"), 3}}).error().text(),
            fake.path("wrong.json") +
                ": layers.1.both: has expert 2 twice on rank 0; make it with k2c place STATISTICS --bundle DIR");
  EXPECT_EQ(openWith(fake, {{"-", 0}}).error().text(),
            "--placement -: is standard input, and every rank reads the file; name a file");
}

TEST(Placement, ARunHasSoManyTables) {
  const FakeBundle fake("fake_ranks2");
  std::vector<PlacementFile> files;
  for (int64_t step = 0; step < 64; ++step)
    files.push_back({fake.path("placement.json"), step});
  EXPECT_TRUE(openWith(fake, files));
  files.push_back({fake.path("placement.json"), 64});
  EXPECT_EQ(openWith(fake, files).error().text(), "--placement: a run has at most 64 tables, number 65 is of " +
                                                      fake.path("placement.json") + "; give fewer files");
}

TEST(Placement, IsOfSeveralRanks) {
  const FakeBundle fake;
  Expected<Bundle> bundle = openWith(fake, {{fake.path("manifest.json"), 0}}, /*rank=*/0);
  ASSERT_FALSE(bundle);
  EXPECT_EQ(bundle.error().text(),
            "--placement: says which rank has which experts, and the program has one rank; leave it out");
  const FakeBundle several("fake_ranks2");
  EXPECT_EQ(runBundle(several, {"info", "--transport", "local", "--placement", several.path("placement.json")}).err,
            "run: error: --placement: info is of the bundle and its own placement; leave it out\n");
}

TEST(PackedRanks, SayWhoseWeightsAHostHas) {
  const FakeBundle fake("fake_ranks3");
  const auto opened = [&](const json &ranks, int32_t rank) -> std::string {
    fake.writeFile("weights/ranks.json", ranks.dump());
    Expected<Bundle> bundle = Bundle::open(fake.folder, rank);
    return bundle ? "accepted" : bundle.error().text().substr(fake.folder.size());
  };
  json packed = {{"format", 1}, {"ranks", {0, 2}}, {"common", "0123456789abcdef"}};
  EXPECT_EQ(opened(packed, 2), "accepted");
  EXPECT_EQ(opened(packed, 1), ": has the weights of ranks 0,2, and rank 1 runs here; run k2c pack DIR --checkpoint "
                               "FOLDER --ranks with all ranks of this host");
  packed["ranks"] = {2, 0};
  EXPECT_EQ(opened(packed, 2), "/weights/ranks.json: ranks: must be some ranks in their order; run k2c pack");
  packed["ranks"] = {3};
  EXPECT_EQ(opened(packed, 2), "/weights/ranks.json: ranks[0]: is 3, must be within 0..2" + again);
  packed.erase("ranks");
  EXPECT_EQ(opened(packed, 1), "accepted");
  packed["common"] = "none";
  EXPECT_EQ(opened(packed, 2), "/weights/ranks.json: common: must be a hash of 16 hex digits; run k2c pack");
}

TEST(Placement, WithoutWeightsIsLeftOutOrRefused) {
  FakeBundle fake("fake_ranks2");
  json later = fake.placement;
  std::swap(later["layers"]["1"]["both"][0], later["layers"]["1"]["both"][1]);
  fake.index["slots"][1]["experts"][11] = nullptr;
  fake.write();
  const std::string file = fake.path("later.json");
  fake.writeFile("later.json", later.dump());
  const auto run = [&](const std::string &placement) {
    return runBundle(fake, {"logits", "--prompt-ids", "1,2,3", "--chunk", "1", "--all", "--json", "--transport",
                            "local", "--placement", placement});
  };
  const Outcome kept = run(file + "@1");
  EXPECT_EQ(kept.exitCode, 0) << kept.err;
  EXPECT_NE(kept.err.find("run: note: " + file +
                          ": rank 0 has not the weights of all experts that it would have; steps "
                          "go on by the placement before\n"),
            std::string::npos)
      << kept.err;
  const Outcome refused = run(file);
  EXPECT_EQ(refused.exitCode, 1);
  EXPECT_EQ(refused.err, "run: error: " + file +
                             ": rank 0 has not the weights of all experts that it would have; give its host their "
                             "weights: k2c pack DIR --checkpoint FOLDER\n");
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

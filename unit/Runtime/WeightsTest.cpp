// Slots that share a blob: one mapping, and one size. Tables of experts: any order of ranges, and no others are mapped.
#include "program/Weights.h"
#include "fake/FakeBundle.h"
#include "program/Bundle.h"
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::runtime;
using nlohmann::json;

namespace {

/// A bundle whose slots 0 and 1 both name blob0.bin, of 4096 bytes; the second says it has `bytes`.
struct SharedBlob {
  explicit SharedBlob(int64_t bytes) {
    fake.index["slots"].push_back({{"slot", 1}, {"name", "v"}, {"layer", nullptr}, {"file", "blob0.bin"}});
    fake.index["slots"][1]["bytes"] = bytes;
    fake.write();
    if (bytes == 0)
      fake.index["slots"][1]["chunks"] = json::array();
  }
  Expected<Weights> map() const { return Weights::map(fake.folder, "weights/index.json", fake.index.dump(), 2, {}); }

  FakeBundle fake;
};

/// A bundle whose slot is a table of four experts, each a page of one file; the file's page p is full of 'a' + p.
struct Experts : FakeBundle {
  /// `pages`: of each expert, -1: it is left out. `count`: what the manifest says.
  explicit Experts(const std::vector<int> &pages, int64_t count = 4) : FakeBundle("fake_experts") {
    std::string blob;
    for (char letter : {'a', 'b', 'c', 'd'})
      blob += std::string(4096, letter);
    writeFile("weights/blob0.bin", blob);
    json experts = json::array();
    for (int page : pages)
      experts.push_back(page < 0 ? json() : json{{"file", "blob0.bin"}, {"offset", page * 4096}, {"bytes", 4096}});
    index["slots"][0] = {{"slot", 0}, {"name", "up"}, {"layer", 3}, {"experts", experts}};
    manifest["memory"]["weights"] = 16384;
    manifest["shares"] = {{{"slots", 1}, {"experts", count}, {"items", 1}, {"item_bytes", 4096}}};
    write();
  }
  Expected<Weights> map() const {
    return Weights::map(folder, "weights/index.json", index.dump(), 1, {{1, {4, 1, 4096}}});
  }
};

/// The first letter of each expert, '-' for one without address.
std::string lettersOf(const Weights &weights) {
  const auto *table = static_cast<const char *const *>(weights.slots()[0]);
  std::string letters;
  for (int expert = 0; expert < 4; ++expert)
    letters += table[expert] ? *table[expert] : '-';
  return letters;
}

/// Of two slots, the first of layer 0 and the second of no layer, whether each has an address.
std::string addressesOf(const RankPart &part, SlotStage stage) {
  FakeBundle fake;
  fake.index["slots"][0]["layer"] = 0;
  fake.index["slots"].push_back(fake.index["slots"][0]);
  fake.index["slots"][1]["slot"] = 1;
  fake.index["slots"][1]["layer"] = nullptr;
  const Expected<Weights> weights = Weights::map(fake.folder, "weights/index.json", fake.index.dump(), 2,
                                                 {{1, {}, SlotStage::all}, {1, {}, stage}}, {}, part);
  return std::string(weights->slots()[0] ? "layer " : "- ") + (weights->slots()[1] ? "end" : "-");
}

/// Bytes of `file` that this process has mapped.
int64_t mappedBytes(const std::string &file) {
  std::ifstream maps("/proc/self/maps");
  int64_t bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    uint64_t begin = 0, end = 0;
    if (line.find(file) != line.npos && std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2)
      bytes += static_cast<int64_t>(end - begin);
  }
  return bytes;
}

} // namespace

TEST(Weights, AStageHasThoseOfItsLayersAndEnds) {
  EXPECT_EQ(addressesOf({0, 1, true, false}, SlotStage::first), "layer end");
  EXPECT_EQ(addressesOf({1, 2, false, true}, SlotStage::first), "- -");
  EXPECT_EQ(addressesOf({1, 2, false, true}, SlotStage::last), "- end");
  EXPECT_EQ(addressesOf({1, 2, false, true}, SlotStage::all), "- end");
}

TEST(Weights, ARankHasItsPartOfEach) {
  FakeBundle fake;
  fake.index["slots"][0]["layer"] = 0;
  for (int slot = 1; slot < 5; ++slot) {
    fake.index["slots"].push_back(fake.index["slots"][0]);
    fake.index["slots"][slot]["slot"] = slot;
  }
  RankPart second;
  second.place = 1;
  const Expected<Weights> weights =
      Weights::map(fake.folder, "weights/index.json", fake.index.dump(), 5,
                   {{1, {}, SlotStage::all}, {4, {}, SlotStage::all, /*parts=*/2}}, {}, second);
  ASSERT_TRUE(weights) << weights.error().text();
  std::string has;
  for (int slot = 0; slot < 5; ++slot)
    has += weights->slots()[slot] ? 'x' : '-';
  EXPECT_EQ(has, "x-x-x");
}

TEST(Weights, AWeightThatTheProgramReadsAsAWholeIsNoPart) {
  FakeBundle fake;
  const std::vector<SlotShares> shares = {{1, {}, SlotStage::all, /*parts=*/2}};
  const Expected<Weights> weights =
      Weights::map(fake.folder, "weights/index.json", fake.index.dump(), 1, shares, {}, {});
  ASSERT_TRUE(weights) << weights.error().text();
  const int64_t bytes = 4096, experts = 0, whole = 1;
  k2rt_ir_program program = {};
  program.slot_bytes = const_cast<int64_t *>(&bytes);
  program.slot_experts = const_cast<int64_t *>(&experts);
  program.slot_parts = const_cast<int64_t *>(&whole);
  EXPECT_EQ(weights->checkFits(program, "index.json").error().text(),
            "index.json: slot 0 is one of 1 parts to the program, the manifest's shares say of 2; compile the bundle "
            "again");
}

TEST(Weights, ATableOfExpertsIsInAnyOrder) {
  for (const auto &[pages, letters] : {std::pair<std::vector<int>, std::string>{{0, 1, 2, 3}, "abcd"},
                                       {{2, 0, 3, 1}, "cadb"},
                                       {{1, 1, 0, 1}, "bbab"}}) {
    const Experts fake(pages);
    Expected<Weights> weights = fake.map();
    ASSERT_TRUE(weights) << weights.error().text();
    EXPECT_EQ(lettersOf(*weights), letters);
    EXPECT_EQ(weights->mappedFiles().size(), 1u) << letters;
  }
}

TEST(Weights, ExpertsThatAreLeftOutAreNotMapped) {
  const Experts fake({3, -1, 0, -1});
  Expected<Weights> weights = fake.map();
  ASSERT_TRUE(weights) << weights.error().text();
  EXPECT_EQ(lettersOf(*weights), "d-a-");
  EXPECT_EQ(weights->bytes(), 8192);
  EXPECT_EQ(mappedBytes(fake.path("weights/blob0.bin")), 8192);
}

TEST(Weights, ATokenOfAnExpertThatIsLeftOutEndsTheStep) {
  const Experts fake({0, 1, -1, 3});
  EXPECT_EQ(runBundle(fake, {"generate", "--prompt-ids", "4,5", "-n", "1", "--ignore-eos"}).exitCode, 0);
  const Outcome outcome = runBundle(fake, {"generate", "--prompt-ids", "4,6", "-n", "1", "--ignore-eos"});
  EXPECT_EQ(outcome.exitCode, 3);
  EXPECT_EQ(outcome.err, "run: error: layer 3: a token wants expert 2, which the bundle leaves out of 'up'; k2c pack "
                         "with the checkpoint brings all experts in\n");
}

TEST(Weights, TablesThatContradictTheManifestAreRefused) {
  const Experts fake({0, 1, 2});
  Expected<Weights> weights = fake.map();
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().text(), fake.folder +
                                        "/weights/index.json: slot 0 has 3 experts, the manifest's shares say "
                                        "4; compile the bundle again");
}

TEST(Weights, ARangeThatIsNotInItsFileIsRefused) {
  Experts behind({0, 1, 2, 3});
  behind.index["slots"][0]["experts"][3]["offset"] = 16384;
  Expected<Weights> weights = behind.map();
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().text(), behind.path("weights/blob0.bin") + ": has 16384 bytes, the index names 20480 of "
                                                                       "them; copy the file again or run k2c pack");
  Experts odd({0, 1, 2, 3});
  odd.index["slots"][0]["experts"][1]["offset"] = 100;
  weights = odd.map();
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().text(),
            odd.folder + "/weights/index.json: slots[0].experts[1].offset: is 100, of 4096 bytes: an expert is one or "
                         "more whole pages of 4096; run k2c pack");
  Experts empty({0, 1, 2, 3});
  empty.index["slots"][0]["experts"][1]["bytes"] = 0;
  empty.index["slots"][0]["experts"][1]["chunks"] = nlohmann::json::array();
  weights = empty.map();
  ASSERT_FALSE(weights);
  EXPECT_NE(weights.error().text().find("experts[1].offset: is 4096, of 0 bytes: an expert is one or more whole pages"),
            std::string::npos)
      << weights.error().text();
}

TEST(Weights, ARangeHasTheSameHashesWhereverItIsListed) {
  Experts fake({0, 1, 0, 3});
  fake.index["slots"][0]["experts"][2]["chunks"][0] = "0000000000000000";
  Expected<Weights> weights = fake.map();
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().text(), fake.folder +
                                        "/weights/index.json: slot 0 has other hashes for blob0.bin at 0 than "
                                        "an entry before it; run k2c pack");
}

TEST(Weights, ABlockThatASharesTableNamesIsRefused) {
  const FakeBundle fake;
  std::vector<SlotShares> shares;
  for (const auto &slot : fake.index["slots"])
    shares.push_back({1, {slot["slot"] == 0 ? 4 : 0, 0, 0}});
  Expected<Weights> weights =
      Weights::map(fake.folder, "weights/index.json", fake.index.dump(), int32_t(shares.size()), shares);
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().text(), fake.folder + "/weights/index.json: slot 0 is one block, the manifest's shares say "
                                                  "a table of experts; compile the bundle again");
}

TEST(Weights, ATableThatNoShareNamesIsRefused) {
  const Experts fake({0, 1, 2, 3});
  Expected<Weights> weights = Weights::map(fake.folder, "weights/index.json", fake.index.dump(), 1, {});
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().text(), fake.folder + "/weights/index.json: slot 0 is a table of experts, the manifest's "
                                                  "shares say one block; compile the bundle again");
}

/// What opening `bundle` says after the folder's name.
std::string opening(const FakeBundle &bundle) {
  const Expected<Bundle> opened = Bundle::open(bundle.folder);
  return opened ? "accepted" : opened.error().text().substr(bundle.folder.size() + 1);
}

TEST(Weights, ProgramSaysHowManyExpertsItReads) {
  EXPECT_EQ(opening(Experts({0, 1, 2, 3})), "accepted");
  Experts two({0, 1}, 2);
  EXPECT_EQ(opening(two), "weights/index.json: slot 0 has 2 experts, the program reads 4; compile the bundle again");
  FakeBundle block("fake_experts"); // index and manifest know no table
  EXPECT_EQ(opening(block), "weights/index.json: slot 0 has 0 experts, the program reads 4; compile the bundle again");
}

TEST(Weights, ProgramSaysHowManyBytesItReads) {
  FakeBundle empty;
  empty.index["slots"][0]["bytes"] = 0;
  empty.writeFile("weights/blob0.bin", "");
  empty.write();
  EXPECT_EQ(opening(empty),
            "weights/index.json: slot 0 has a range of 0 bytes, the program reads 4096; compile the bundle again");
}

TEST(Weights, EqualSlotsShareOneMapping) {
  Expected<Weights> weights = SharedBlob(4096).map();
  ASSERT_TRUE(weights) << weights.error().text();
  EXPECT_EQ(weights->bytes(), 4096);
  EXPECT_EQ(weights->slots()[0], weights->slots()[1]);
}

TEST(Weights, ASlotThatIsLeftOutIsOfOtherRanks) {
  SharedBlob shared(4096);
  shared.fake.index["slots"][1].erase("file");
  shared.fake.index["slots"][1]["layer"] = 5;
  Expected<Weights> weights = shared.map();
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().text(), shared.fake.folder +
                                        "/weights/index.json: slot 1 (v of layer 5) is left out, and this rank reads "
                                        "it; run k2c pack DIR --checkpoint FOLDER --ranks with all ranks of this host");
  RankPart others;
  others.endLayer = 5;
  EXPECT_TRUE(
      Weights::map(shared.fake.folder, "weights/index.json", shared.fake.index.dump(), 2, {{2, {}}}, {}, others));
}

TEST(Weights, ASlotOfAnotherSizeThanItsBlobIsRefused) {
  for (const int64_t bytes : {4097, 8192, 4095, 0}) {
    const SharedBlob shared(bytes);
    Expected<Weights> weights = shared.map();
    ASSERT_FALSE(weights) << bytes;
    EXPECT_EQ(weights.error().text(), shared.fake.folder + "/weights/index.json: slot 1 says " + std::to_string(bytes) +
                                          " bytes, file blob0.bin has 4096; run k2c pack");
  }
}

TEST(Weights, PiecesHaveTheSameHashesWhereverTheyAreListed) {
  FakeBundle fake;
  fake.writeFile("weights/checkpoint/a.safetensors", std::string(4096, 'a'));
  fake.index["files"] = {{{"file", "a.safetensors"}, {"bytes", 4096}}};
  json &slots = fake.index["slots"];
  slots[0].erase("file");
  slots[0]["pieces"] = {{0, 0, 4096, 0}};
  slots.push_back(slots[0]);
  slots[1]["slot"] = 1;
  fake.write();
  auto map = [&] { return Weights::map(fake.folder, "weights/index.json", fake.index.dump(), 2); };
  Expected<Weights> weights = map();
  ASSERT_TRUE(weights) << weights.error().text();
  EXPECT_TRUE(weights->arePieces());
  EXPECT_EQ(weights->ranges().size(), 1u) << "one range of device memory";
  EXPECT_EQ(weights->rangesOf(0), weights->rangesOf(1));
  slots[1]["chunks"][0] = "0000000000000000";
  weights = map();
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().text(), fake.folder + "/weights/index.json: slot 1 has other hashes for its pieces from "
                                                  "byte 0 on than an entry before it; run k2c pack");
}

TEST(Weights, PiecesThatAreNoPiecesAreRefused) {
  FakeBundle fake;
  fake.writeFile("weights/checkpoint/a.safetensors", std::string(100, 'a'));
  fake.index["files"] = {{{"file", "a.safetensors"}, {"bytes", 100}}};
  json &slot = fake.index["slots"][0];
  slot.erase("file");
  fake.write();
  auto message = [&](const json &pieces) {
    slot["pieces"] = pieces;
    Expected<Weights> weights = Weights::map(fake.folder, "weights/index.json", fake.index.dump(), 1);
    return weights ? "" : weights.error().text().substr(fake.folder.size() + 21);
  };
  EXPECT_EQ(message({{0, 0, 60, 0}, {0, 0, 40, 60}}), "");
  EXPECT_EQ(message({{0, 0, 101, 0}}), "slots[0].pieces[0]: is bytes 0 to 101 of a.safetensors, which has 100; "
                                       "compile the bundle again with this version of k2c");
  EXPECT_EQ(message(json::array()), "slots[0].pieces: is empty: a range has one or more; compile the bundle again with "
                                    "this version of k2c");
}

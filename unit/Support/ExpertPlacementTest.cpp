//===- ExpertPlacementTest.cpp - Which experts are in whose slots -------------===//
#include "base/ExpertPlacement.h"
#include <gtest/gtest.h>

using namespace k2c;

namespace {

/// Three experts in layers 1 and 4, on two ranks.
PlacedModel threeExperts(std::optional<int64_t> slotsOfRank) { return {"tiny", {1, 4}, 3, 2, slotsOfRank}; }

std::string textOf(const std::string &first, const std::string &fourth) {
  return R"({"format":1,"model":"tiny","experts":3,"ranks":2,"layers":{"1":)" + first + R"(,"4":)" + fourth + "}}";
}

std::string refusal(const std::string &text, std::optional<int64_t> slotsOfRank = std::nullopt) {
  Expected<ExpertPlacement> read = readExpertPlacement(text, "p.json", threeExperts(slotsOfRank), "mend it");
  return read ? "" : read.error().text();
}

} // namespace

TEST(ExpertPlacement, InOrderFillsSpareSlotsFromTheFirstExpert) {
  EXPECT_EQ(placedInOrder(threeExperts(2), true).layers.at(4).decode, (std::vector<int32_t>{0, 1, 2, 0}));
  EXPECT_EQ(placedInOrder(threeExperts(std::nullopt), true).slotsOfRank, 2);
  EXPECT_EQ(placedInOrder(threeExperts(2), /*hasCopies=*/false).layers.at(4).decode,
            (std::vector<int32_t>{0, 1, 2, -1}));
  // No rank has an expert twice, however many slots it has.
  EXPECT_EQ(placedInOrder(threeExperts(4), true).layers.at(1).prefill,
            (std::vector<int32_t>{0, 1, 2, -1, 1, 2, 0, -1}));
}

TEST(ExpertPlacement, IsReadAsItIsWritten) {
  ExpertPlacement placement;
  placement.slotsOfRank = 2;
  placement.layers[1] = {{0, 1, 2, -1}, {0, 1, 2, -1}};
  placement.layers[4] = {{2, 1, 0, 1}, {1, 0, 2, 1}};
  const std::string text = placementText(threeExperts(2), placement);
  Expected<ExpertPlacement> read = readExpertPlacement(text, "p.json", threeExperts(2), "mend it");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_TRUE(read->hasPhases());
  EXPECT_EQ(read->layers.at(1).prefill, placement.layers[1].decode);
  EXPECT_EQ(read->layers.at(4).prefill, placement.layers[4].prefill);
  EXPECT_EQ(read->layers.at(4).decode, placement.layers[4].decode);
}

TEST(ExpertPlacement, SaysItselfHowManySlotsARankHas) {
  const std::string both = R"({"both":[[0,1],[2,0]]})";
  Expected<ExpertPlacement> read =
      readExpertPlacement(textOf(both, both), "p.json", threeExperts(std::nullopt), "mend it");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->slotsOfRank, 2);
  EXPECT_FALSE(read->hasPhases());
}

TEST(ExpertPlacement, AllRanksAndLayersHaveAsManySlots) {
  const std::string both = R"({"both":[[0,1],[2,0]]})";
  EXPECT_EQ(refusal(textOf(both, R"({"both":[[0,1],[2]]})")),
            "p.json: layers.4.both: has 1 slots of rank 1, the program has 2; mend it");
  EXPECT_EQ(refusal(textOf(both, both), 3), "p.json: layers.1.both: has 2 slots of rank 0, the program has 3; mend it");
}

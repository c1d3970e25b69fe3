//===- IndexSetTest.cpp - Sets of layer or expert indices -------------------===//
#include "k2c/Support/IndexSet.h"
#include <gtest/gtest.h>

using namespace k2c;

namespace {

std::vector<int64_t> layers(int64_t count, bool (*isIn)(int64_t)) {
  std::vector<int64_t> members;
  for (int64_t layer = 0; layer < count; ++layer)
    if (isIn(layer))
      members.push_back(layer);
  return members;
}

TEST(IndexSet, AlternatingLayersAreFewRangesAtAnyDepth) {
  auto isDense = [](int64_t layer) { return layer < 3 || layer % 2 != 0; };
  EXPECT_EQ(indexSetOf(layers(9, isDense)), (IndexSet{{0, 4, 1}, {5, 8, 2}}));
  EXPECT_EQ(indexSetOf(layers(61, isDense)), (IndexSet{{0, 4, 1}, {5, 60, 2}}));
}

TEST(IndexSet, LongerPeriodsInterleave) {
  std::vector<int64_t> members{4, 5, 7, 8, 10, 11, 13};
  IndexSet set = indexSetOf(members);
  EXPECT_EQ(set, (IndexSet{{4, 11, 3}, {5, 12, 3}, {13, 14, 1}}));
  EXPECT_EQ(membersOf(set), members);
}

TEST(IndexSet, ConsecutiveAndSingle) {
  EXPECT_EQ(indexSetOf({}), IndexSet());
  EXPECT_EQ(indexSetOf({5}), (IndexSet{{5, 6, 1}}));
  EXPECT_EQ(indexSetOf({1, 2, 3}), (IndexSet{{1, 4, 1}}));
}

TEST(IndexRange, MembersBelow) {
  IndexRange odd{3, 8, 2}; // 3, 5, 7
  EXPECT_EQ(odd.size(), 3);
  EXPECT_EQ(odd.below(3), 0);
  EXPECT_EQ(odd.below(4), 1);
  EXPECT_EQ(odd.below(7), 2);
  EXPECT_EQ(odd.below(100), 3);
  EXPECT_TRUE(odd.contains(7));
  EXPECT_FALSE(odd.contains(4));
}

} // namespace

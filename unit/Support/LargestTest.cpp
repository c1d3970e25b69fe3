//===- LargestTest.cpp - The largest number that holds ------------------------===//
#include "k2c/Support/Largest.h"
#include <gtest/gtest.h>

using namespace k2c;

TEST(Largest, IsTheLastThatHolds) {
  for (int64_t last : {0, 1, 2, 3, 4, 7, 8, 9, 99, 100})
    EXPECT_EQ(largest(100, [&](int64_t n) { return n <= last; }), last);
}

TEST(Largest, IsNeverBeyondTheMostNorAsksThere) {
  int64_t asked = 0;
  auto holds = [&](int64_t n) {
    asked = std::max(asked, n);
    return true;
  };
  EXPECT_EQ(largest(100, holds), 100);
  EXPECT_EQ(asked, 100);
  EXPECT_EQ(largest(0, holds), 0);
}

//===- TimeLeftTest.cpp - How long work still takes ------------------------===//
#include "base/TimeLeft.h"
#include <gtest/gtest.h>

using namespace k2c;

namespace {

TEST(TimeLeft, IsInTheUnitThatPeopleWouldSay) {
  EXPECT_EQ(timeLeft(0, 1, 2, 0.4), ", about 0 s left");
  EXPECT_EQ(timeLeft(0, 50, 100, 89), ", about 89 s left");
  EXPECT_EQ(timeLeft(0, 50, 100, 90), ", about 2 min left");
  EXPECT_EQ(timeLeft(0, 50, 100, 5399), ", about 90 min left");
  EXPECT_EQ(timeLeft(0, 50, 100, 5400), ", about 2 h left");
}

TEST(TimeLeft, ReckonsWithTheWorkOfThisTimeAlone) { EXPECT_EQ(timeLeft(80, 90, 100, 10), ", about 10 s left"); }

TEST(TimeLeft, IsUnknownBeforeAnythingAndNoneAtTheEnd) {
  EXPECT_EQ(timeLeft(80, 80, 100, 10), "");
  EXPECT_EQ(timeLeft(0, 0, 0, 10), "");
  EXPECT_EQ(timeLeft(0, 100, 100, 10), "");
  EXPECT_EQ(timeLeft(0, 101, 100, 10), "");
}

} // namespace

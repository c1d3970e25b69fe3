//===- CheckedTest.cpp - Arithmetic that says when it overflowed --------------===//
#include "k2c/Planner/Checked.h"
#include <gtest/gtest.h>

using namespace k2c;

namespace {

constexpr Checked largest = INT64_MAX, least = INT64_MIN;

// Each compiler may evaluate the arguments of a call in its own order; no operation may depend on it.
TEST(Checked, ResultsOfEachOperation) {
  EXPECT_EQ((Checked(7) + 5).value(), 12);
  EXPECT_EQ((Checked(7) - 5).value(), 2);
  EXPECT_EQ((Checked(7) * 5).value(), 35);
  EXPECT_EQ((Checked(7) / 5).value(), 1);
  EXPECT_EQ(Checked(7).dividedUp(5).value(), 2);
  EXPECT_TRUE((Checked(7) * 5 + 1).isValid());
}

TEST(Checked, AnOverflowIsNeverForgotten) {
  for (const Checked &overflowed : {largest + 1, least - 1, largest * 2, Checked(1) / 0, least / -1}) {
    EXPECT_FALSE(overflowed.isValid());
    EXPECT_FALSE((overflowed - overflowed).isValid());
    EXPECT_FALSE((Checked(1) + overflowed).isValid());
    EXPECT_GT(overflowed.real(), 1e300);
  }
}

} // namespace

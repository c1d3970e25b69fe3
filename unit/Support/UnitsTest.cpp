//===- UnitsTest.cpp - printing of quantities -----------------------------===//

#include "k2c/Support/Units.h"
#include "base/Error.h"

#include <gtest/gtest.h>

using namespace k2c;

TEST(Units, BytesNameBothConventions) {
  EXPECT_EQ(format(Bytes(512)), "512 B");
  EXPECT_EQ(format(Bytes(1536)), "1.50 KiB (1.54 KB)");
  EXPECT_EQ(format(gibibytes(80)), "80.00 GiB (85.90 GB)");
  EXPECT_EQ(format(Bytes(int64_t(1) << 50)), "1.00 PiB (1.13 PB)");
  EXPECT_EQ(format(Bytes(int64_t(1) << 61)), "2048.00 PiB (2305.84 PB)"); // there is no larger unit
}

TEST(Units, FlopsSecondsAndBandwidth) {
  EXPECT_EQ(format(Flops(3.2e12)), "3.20 TFLOP");
  EXPECT_EQ(format(Seconds(1.25e-5)), "12.5 us");
  EXPECT_EQ(format(Seconds(0)), "0 s");
  EXPECT_EQ(format(Bandwidth(54.1e9)), "54.1 GB/s");
}

TEST(Units, TimeIsBytesOverBandwidth) { EXPECT_DOUBLE_EQ((Bytes(1000) / Bandwidth(500)).value, 2.0); }

TEST(Units, CountsHaveSeparators) {
  EXPECT_EQ(formatCount(671026404352), "671,026,404,352");
  EXPECT_EQ(formatCount(-1234), "-1,234");
  EXPECT_EQ(formatCount(12), "12");
}

TEST(Error, IsOneLine) {
  EXPECT_EQ((Error{"config.json:3:5", "unknown key 'x'", "remove it"}).text(),
            "config.json:3:5: unknown key 'x'; remove it");
  EXPECT_EQ((Error{"", "no place", ""}).text(), "no place");
}

TEST(Error, ExpectedHoldsOneOfTheTwo) {
  Expected<int> good = 3, bad = Error{"w", "m", "r"};
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, 3);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.takeError().message, "m");
  EXPECT_TRUE(Status::success());
  EXPECT_FALSE(Status(Error{"w", "m", ""}));
}

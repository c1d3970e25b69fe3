//===- LinksTest.cpp - Links of machines that are not this one ------------===//
#include "Links.h"
#include <gtest/gtest.h>

using namespace k2c;
using namespace k2c::calibration;

namespace {

/// A flag takes as many nanoseconds as the processors' numbers are apart; reads 1 ns a line more, writes 2.
class FakeProbe : public LinkProbe {
public:
  Expected<Seconds> latency(int first, int second) override {
    if (second == refused)
      return Error{"calibration", "this process may not run on processor " + std::to_string(second), ""};
    return Seconds(1e-9 * (second - first));
  }
  Expected<Seconds> transfer(int first, int second, Bytes bytes, Access access) override {
    sizes.push_back(bytes.value);
    double line = access == Access::Read ? 1e-9 : 2e-9;
    return Seconds(1e-9 * (second - first) + line * double(bytes.value) / 64);
  }
  std::vector<int64_t> sizes;
  int refused = -1;
};

} // namespace

TEST(Links, EveryTierIsMeasuredBetweenItsUnits) {
  FakeProbe probe;
  auto links = measureLinks({{"cache", 4, 0, 1}, {"node", 2, 0, 8}}, kibibytes(8), probe);
  ASSERT_TRUE(links);
  ASSERT_EQ(links->size(), 2u);
  EXPECT_EQ((*links)[0].name, "cache");
  EXPECT_EQ((*links)[0].count, 4);
  EXPECT_DOUBLE_EQ((*links)[0].latency.value, 1e-9);
  EXPECT_DOUBLE_EQ((*links)[1].latency.value, 8e-9);
  EXPECT_DOUBLE_EQ((*links)[1].read.front().rate.value, 64 / 9e-9);
  EXPECT_DOUBLE_EQ((*links)[1].write.front().rate.value, 64 / 10e-9);
}

TEST(Links, FromOneLineToTheLargest) {
  FakeProbe probe;
  ASSERT_TRUE(measureLinks({{"cache", 2, 0, 1}}, Bytes(5000), probe));
  EXPECT_EQ(probe.sizes, (std::vector<int64_t>{64, 512, 4096, 5000, 64, 512, 4096, 5000}));
}

TEST(Links, OneProcessorHasNone) {
  FakeProbe probe;
  auto links = measureLinks({}, kibibytes(8), probe);
  ASSERT_TRUE(links);
  EXPECT_TRUE(links->empty());
}

TEST(Links, AProcessorThatIsRefusedIsNamed) {
  FakeProbe probe;
  probe.refused = 8;
  auto links = measureLinks({{"cache", 4, 0, 1}, {"node", 2, 0, 8}}, kibibytes(8), probe);
  ASSERT_FALSE(links);
  EXPECT_EQ(links.error().text(), "calibration: this process may not run on processor 8");
}

TEST(Links, TheFasterNumbersStay) {
  std::vector<LinkRates> links;
  LinkRates one{"cache", 2, Seconds(3e-9), {{Bytes(64), Bandwidth(1)}}, {{Bytes(64), Bandwidth(5)}}};
  LinkRates other{"cache", 2, Seconds(2e-9), {{Bytes(64), Bandwidth(4)}}, {{Bytes(64), Bandwidth(2)}}};
  keepFastest(links, {one});
  keepFastest(links, {other});
  EXPECT_DOUBLE_EQ(links[0].latency.value, 2e-9);
  EXPECT_DOUBLE_EQ(links[0].read[0].rate.value, 4);
  EXPECT_DOUBLE_EQ(links[0].write[0].rate.value, 5);
}

// The real probe, on whatever this machine is: a processor that does not exist is refused by name.
TEST(Links, ThreadsArePinned) {
  ThreadLinkProbe probe(Seconds(1e-4));
  auto refused = probe.latency(0, 1023);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text(), "calibration: this process may not run on processor 1023");
}

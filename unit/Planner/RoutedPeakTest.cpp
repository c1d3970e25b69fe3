//===- RoutedPeakTest.cpp - The fullest rank's rows and bytes -------------===//
#include "k2c/Planner/RoutedPeak.h"
#include "k2c/Formulas/Query.h"

#include <gtest/gtest.h>
#include <numeric>

using namespace k2c;

namespace {

RoutedBatch batch(int64_t alignment) {
  RoutedBatch result;
  result.experts = result.slots = 8;
  result.topK = 2;
  result.ranks = 4;
  result.tokensPerRank = 3;
  result.alignment = alignment;
  return result;
}

/// Most padded rows over all ways in which `tokens` choose min(k, 2) of a rank's two experts, by trying them.
int64_t maxPadded(int64_t tokens, int64_t rows, int64_t alignment) {
  int64_t most = 0;
  for (int64_t first = 0; first <= std::min(tokens, rows); ++first)
    if (int64_t second = rows - first; second <= tokens)
      most = std::max(most, ((first + alignment - 1) / alignment + (second + alignment - 1) / alignment) * alignment);
  return most;
}

} // namespace

TEST(RoutedPeak, WorstIsEveryTokenOnOneRank) {
  for (int64_t alignment : {1, 2, 5, 16})
    for (int64_t topK : {1, 2, 4}) {
      RoutedBatch b = batch(alignment);
      b.topK = topK;
      RoutedRows rows = routedRows(b, Routing::Worst);
      EXPECT_EQ(rows.received.value(), 12);
      EXPECT_EQ(rows.rows.value(), 12 * std::min<int64_t>(topK, 2));
      EXPECT_EQ(rows.padded.value(), maxPadded(12, rows.rows.value(), alignment)) << alignment << " " << topK;
    }
}

TEST(RoutedPeak, MeanIsTheEvenShare) {
  RoutedRows rows = routedRows(batch(4), Routing::Mean);
  EXPECT_EQ(rows.rows.value(), 6);
  EXPECT_EQ(rows.padded.value(), 8);
  // A rank holds 2 of 8 experts: a token misses it with chance 6/8 * 5/7.
  EXPECT_EQ(rows.received.value(), 6);
}

TEST(RoutedPeak, MeasuredIsTheFullestRank) {
  ExpertLoad load = {1, 1, 1, 1, 4, 2, 1, 1};
  RoutedRows rows = measuredRows(batch(1), load, placeOnceInOrder(8));
  EXPECT_EQ(rows.rows.value(), 12);
  EXPECT_EQ(rows.received.value(), 12);
}

TEST(RoutedPeak, MeasuredLiesBetweenMeanAndWorst) {
  ExpertLoad load = {3, 1, 4, 1, 5, 1, 2, 6};
  for (int64_t alignment : {1, 8}) {
    RoutedBatch b = batch(alignment);
    RoutedRows mean = routedRows(b, Routing::Mean), worst = routedRows(b, Routing::Worst);
    RoutedRows measured = measuredRows(b, load, placeOnceInOrder(8));
    EXPECT_GE(measured.rows.value(), mean.rows.value());
    EXPECT_LE(measured.padded.value(), worst.padded.value());
  }
}

TEST(RoutedPeak, TheSecondBufferCountsOnce) {
  RoutedRows rows = {10, 20, 24};
  RowBytes bytes;
  bytes.dispatch = 1;
  bytes.combine = 2;
  bytes.compute = 100;
  bytes.inFlight = 3;
  bytes.secondBuffer = true;
  RoutedBytes sizes = routedBytes(rows, bytes);
  EXPECT_EQ(sizes.second, 30);
  EXPECT_EQ(sizes.padding, 1200);
  EXPECT_EQ(sizes.total(), 10 + 20 + 30 + 7200);
}

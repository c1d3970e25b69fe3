//===- RoutedPeak.cpp - The fullest rank --------------------------------------===//

#include "k2c/Planner/RoutedPeak.h"

#include "k2c/Planner/Experts.h"
#include <algorithm>
#include <cmath>
#include <numeric>

using namespace k2c;

static Checked least(Checked a, Checked b) { return a.real() <= b.real() ? a : b; }

/// Most rows after padding when `rows` fall on `experts` experts, at most `most` on one: one row on each expert pads
/// as much as a full tile, the rest fills tiles.
static Checked paddedAtMost(Checked rows, Checked experts, Checked most, Checked alignment) {
  Checked used = least(experts, rows);
  return least((used + (rows - used) / alignment) * alignment, experts * most.dividedUp(alignment) * alignment);
}

RoutedRows k2c::routedRows(const RoutedBatch &batch, Routing routing) {
  Checked tokens = Checked(batch.tokensPerRank) * batch.ranks;
  Checked owned = std::min(batch.slotsPerRank(), batch.experts);
  if (routing == Routing::Worst) {
    Checked rows = tokens * least(owned, batch.topK);
    return {tokens, rows, paddedAtMost(rows, owned, tokens, batch.alignment)};
  }
  Checked rows = (tokens * batch.topK).dividedUp(batch.ranks);
  int64_t holders = std::min(batch.ranks, batch.experts);
  double reached = distinctNodesMean(batch.experts, batch.topK, holders) / double(batch.ranks);
  Checked received = int64_t(std::ceil(std::min(1.0, reached) * double(batch.tokensPerRank) * double(batch.ranks)));
  Checked each = rows.dividedUp(batch.slotsPerRank());
  return {least(received, rows), rows, each.dividedUp(batch.alignment) * batch.alignment * batch.slotsPerRank()};
}

RoutedRows k2c::measuredRows(const RoutedBatch &batch, const ExpertLoad &load, const ReplicaPlacement &placement) {
  double sum = std::accumulate(load.begin(), load.end(), 0.0);
  Checked tokens = Checked(batch.tokensPerRank) * batch.ranks;
  double chosen = (tokens * batch.topK).real();
  RoutedRows fullest;
  for (int64_t rank = 0; rank < batch.ranks; ++rank) {
    RoutedRows rows;
    for (int64_t slot = rank * batch.slotsPerRank(); slot < (rank + 1) * batch.slotsPerRank(); ++slot) {
      int64_t expert = placement.expertOfSlot[slot];
      // An expert sees a token once: more than all tokens is a histogram of another top-k.
      double share = std::min(chosen * (double(load[expert]) / sum), tokens.real());
      Checked of = int64_t(std::ceil(share / double(placement.count(expert))));
      rows.rows += of;
      rows.padded += of.dividedUp(batch.alignment) * batch.alignment;
    }
    rows.received = least(tokens, rows.rows);
    if (rows.padded.real() > fullest.padded.real())
      fullest = rows;
  }
  return fullest;
}

RoutedBytes k2c::routedBytes(const RoutedRows &rows, const RowBytes &bytes) {
  RoutedBytes result;
  result.dispatch = rows.received.real() * bytes.dispatch;
  result.combine = rows.received.real() * bytes.combine;
  result.second = bytes.secondBuffer ? result.dispatch + result.combine : 0;
  result.compute = rows.padded.real() * bytes.compute * double(bytes.inFlight);
  result.padding = (rows.padded - rows.rows).real() * bytes.compute * double(bytes.inFlight);
  return result;
}

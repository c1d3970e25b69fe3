//===- HalfBatches.cpp - Two halves of a batch that take turns ----------------===//

#include "HalfBatches.h"

#include <algorithm>

using namespace k2c;
using namespace k2c::planner;

/// As long as the longer of the two. What moves uses memory, too, and lengthens what waits for it.
static double beside(const Turn &computing, const Turn &moving) {
  if (computing.seconds <= 0)
    return moving.seconds;
  const double meanwhile = std::min(1.0, computing.seconds / std::max(moving.seconds, 1e-12)) * moving.waiting;
  return std::max(computing.seconds + meanwhile * computing.waiting / computing.seconds, moving.seconds);
}

double planner::secondsOfPromptHalves(const LayerTurns &half) {
  Turn first = half.attention, last = half.experts;
  first += half.shared, last += half.shared;
  return 2 * half.alone + beside(first, half.combine) + beside(half.attention, half.dispatch) +
         beside(half.experts, half.dispatch) + beside(last, half.combine);
}

double planner::secondsOfTokenHalves(const LayerTurns &half) {
  Turn computing = half.attention, flight = half.dispatch;
  computing += half.shared, flight += half.combine;
  flight.seconds = std::max(0.0, flight.seconds - half.sendReceive);
  return 2 * (half.alone + half.experts.seconds + half.sendReceive + beside(computing, flight));
}

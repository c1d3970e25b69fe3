//===- Exchange.cpp - What workers read of each other ---------------------===//
#include "Exchange.h"

#include <algorithm>

namespace k2c::planner {

/// Seconds of `bytes`, on the lines through the measured sizes; beyond them in proportion, below them as the smallest.
static double secondsOf(const std::vector<ReadRate> &sizes, double bytes) {
  auto at = [&](size_t i) { return double(sizes[i].bytes.value) / sizes[i].rate.value; };
  size_t last = sizes.size() - 1;
  if (bytes <= double(sizes[0].bytes.value))
    return at(0);
  if (bytes >= double(sizes[last].bytes.value))
    return bytes / sizes[last].rate.value;
  size_t above = 1;
  while (double(sizes[above].bytes.value) < bytes)
    ++above;
  double from = double(sizes[above - 1].bytes.value), to = double(sizes[above].bytes.value);
  return at(above - 1) + (at(above) - at(above - 1)) * (bytes - from) / (to - from);
}

double Exchange::seconds(double read, double written) const {
  double workers = double(team.workers), inner = 1, outer = 1, seconds = 0;
  double near = team.read.front().rate.value / workers;
  for (const LinkRates &link : links) {
    inner = outer;
    outer = std::min(workers, inner * double(link.count));
    double share = (outer - inner) / workers;
    if (share <= 0)
      continue;
    double reading = read > 0 ? std::max(0.0, secondsOf(link.read, read * share) - read * share / near) : 0;
    double writing = written > 0 ? secondsOf(link.write, written * share) : 0;
    double first = read > 0 && written > 0 ? std::min({secondsOf(link.read, 0), secondsOf(link.write, 0), reading}) : 0;
    seconds += reading + writing - first;
  }
  return seconds;
}

} // namespace k2c::planner

//===- RateTable.cpp - Measured rates, read between the points ------------===//
#include "RateTable.h"

#include <algorithm>
#include <cmath>

namespace k2c::planner {

namespace {

/// On the line through two points.
double between(double x, double x0, double y0, double x1, double y1) { return y0 + (y1 - y0) * (x - x0) / (x1 - x0); }

/// Depth times rows over the rate, at `rows`: what is below the fewest rows measured takes as long as those; beyond the
/// most, in proportion.
double secondsAtRows(const KernelRates &kernel, double rows, bool fromMemory) {
  const std::vector<double> &rates = fromMemory && !kernel.memory.empty() ? kernel.memory : kernel.near;
  auto at = [&](size_t i) { return double(kernel.depth) * double(kernel.rows[i]) / rates[i]; };
  size_t last = kernel.rows.size() - 1;
  if (rows <= double(kernel.rows[0]))
    return at(0);
  if (rows >= double(kernel.rows[last]))
    return at(last) * rows / double(kernel.rows[last]);
  size_t above = 1;
  while (double(kernel.rows[above]) < rows)
    ++above;
  return between(rows, double(kernel.rows[above - 1]), at(above - 1), double(kernel.rows[above]), at(above));
}

} // namespace

double RateTable::seconds(const char *kind, DType x, DType w, double depth, double rows, bool fromMemory) {
  std::vector<const KernelRates *> measured;
  for (bool sameWeights : {true, false}) {
    for (const KernelRates &kernel : team.kernels)
      if (kernel.kind == kind && kernel.x == x && (!sameWeights || kernel.w == w))
        measured.push_back(&kernel);
    if (!measured.empty())
      break;
  }
  if (measured.empty()) {
    if (missing.empty())
      missing = std::string(kind) + " of " + std::string(name(x)) + " and " + std::string(name(w));
    return 0;
  }
  std::sort(measured.begin(), measured.end(), [](auto *a, auto *b) { return a->depth < b->depth; });
  auto at = [&](size_t i) { return secondsAtRows(*measured[i], rows, fromMemory); };
  size_t last = measured.size() - 1;
  if (depth >= double(measured[last]->depth))
    return at(last) * depth / double(measured[last]->depth);
  double inProportion = at(0) * depth / double(measured[0]->depth);
  if (last == 0)
    return inProportion;
  size_t above = 1;
  while (double(measured[above]->depth) < depth)
    ++above;
  double line =
      between(depth, double(measured[above - 1]->depth), at(above - 1), double(measured[above]->depth), at(above));
  return depth < double(measured[0]->depth) ? std::max(line, inProportion) : line;
}

double RateTable::readRate(double bytes) const {
  const std::vector<ReadRate> &read = team.read;
  if (bytes <= double(read.front().bytes.value))
    return read.front().rate.value;
  for (size_t i = 1; i < read.size(); ++i)
    if (bytes <= double(read[i].bytes.value)) {
      double slowness = between(std::log(bytes), std::log(double(read[i - 1].bytes.value)), 1 / read[i - 1].rate.value,
                                std::log(double(read[i].bytes.value)), 1 / read[i].rate.value);
      return 1 / slowness;
    }
  return read.back().rate.value;
}

double RateTable::memoryShare(double bytes) const {
  double near = 1 / team.read.front().rate.value, far = 1 / team.read.back().rate.value;
  return far > near ? std::clamp((1 / readRate(bytes) - near) / (far - near), 0.0, 1.0) : 0;
}

} // namespace k2c::planner

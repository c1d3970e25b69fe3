//===- LargestLoad.cpp - The fullest of many ranks ----------------------------===//

#include "LargestLoad.h"

#include <algorithm>
#include <cmath>

using namespace k2c;
using namespace k2c::planner;

double planner::largestOfNormals(int64_t count) {
  if (count <= 1)
    return 0;
  const double wanted = (double(count) - 0.375) / (double(count) + 0.25);
  double low = 0, high = 10;
  for (int i = 0; i < 50; ++i) {
    double middle = (low + high) / 2;
    (1 - std::erfc(middle / std::sqrt(2.0)) / 2 < wanted ? low : high) = middle;
  }
  return low;
}

double planner::largestShare(double mean, int64_t ranks) {
  if (mean <= 0 || ranks <= 1)
    return 1;
  return 1 + largestOfNormals(ranks) * std::sqrt((1 - 1 / double(ranks)) / mean);
}

ReplicaPlacement planner::placementOf(const ExpertLoad &load, const ParallelLayout &layout) {
  const int64_t slots = (int64_t(load.size()) + layout.redundantExperts + layout.ep - 1) / layout.ep * layout.ep;
  if (slots == int64_t(load.size()) && layout.redundantExperts == 0)
    return placeOnceInOrder(slots);
  return rebalanceExperts(load, {slots, 1, 1, layout.ep});
}

double planner::balancednessOf(const ExpertLoad &load, const ParallelLayout &layout) {
  return balancedness(gpuLoads(load, placementOf(load, layout), layout.ep));
}

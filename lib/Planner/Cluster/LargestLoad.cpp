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

RoutedLayer planner::routedLayer(const RequestModel &context, const ParallelLayout &layout, int64_t tokens,
                                 Routing routing) {
  const ModelSpec &spec = context.request.spec;
  const DeviceRates &rates = context.rates;
  const double hidden = double(spec.hidden);
  RoutedBatch batch;
  batch.experts = spec.moe->experts;
  batch.topK = spec.moe->topK;
  batch.ranks = layout.ep;
  batch.slots = slotsPerRank(spec, layout) * layout.ep;
  batch.tokensPerRank = tokens;
  batch.alignment = context.request.workload.alignment;
  RowBytes bytes;
  bytes.dispatch = layout.ep > 1 ? hidden * rates.dispatchBytes : 0;
  bytes.combine = layout.ep > 1 ? hidden * rates.combineBytes : 0;
  bytes.compute = (3 * double(spec.moe->inter) / double(layout.etp) + hidden) * rates.activationBytes;
  bytes.secondBuffer = layout.overlap;
  const ExpertLoad &load = context.request.workload.expertLoad;
  const RoutedRows peak =
      routing == Routing::Measured ? measuredRows(batch, load, placementOf(load, layout)) : routedRows(batch, routing);
  return {routedRows(batch, Routing::Mean), peak, routedBytes(peak, bytes)};
}

std::string planner::rankRange(int64_t first, int64_t count) {
  return std::to_string(first) + (count == 1 ? "" : "-" + std::to_string(first + count - 1));
}

double planner::balancednessOf(const ExpertLoad &load, const ParallelLayout &layout) {
  return balancedness(gpuLoads(load, placementOf(load, layout), layout.ep));
}

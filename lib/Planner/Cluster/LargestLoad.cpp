//===- LargestLoad.cpp - The fullest of many ranks ----------------------------===//

#include "LargestLoad.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace k2c;
using namespace k2c::planner;

static double computeLargestOfNormals(int64_t count) {
  const double wanted = (double(count) - 0.375) / (double(count) + 0.25);
  double low = 0, high = 10;
  for (int i = 0; i < 50; ++i) {
    double middle = (low + high) / 2;
    (1 - std::erfc(middle / std::sqrt(2.0)) / 2 < wanted ? low : high) = middle;
  }
  return low;
}

double planner::largestOfNormals(int64_t count) {
  if (count <= 1)
    return 0;
  // A search asks for the same few counts again and again.
  static thread_local std::map<int64_t, double> known;
  const auto [entry, isNew] = known.try_emplace(count, 0);
  if (isNew)
    entry->second = computeLargestOfNormals(count);
  return entry->second;
}

double planner::largestShare(double mean, int64_t ranks, double skew) {
  if (mean <= 0 || ranks <= 1)
    return 1;
  return 1 + largestOfNormals(ranks) * std::sqrt((1 - 1 / double(ranks)) / mean + skew * skew);
}

namespace {

// TensorRT-LLM's technical blog 4, "The effect of EP load balancer": DeepSeek R1, 8 experts on each of 32 ranks in the
// order of the checkpoint; 8 slots on each of 36 ranks placed by load. Rows of a rank, their mean and deviation over
// ranks, mean of all layers. A uniform router deviates by the root of the mean.
constexpr double measuredSlots = 8, meanRows = 1024, inOrder = 491.65, placed = 53.98;

/// A sum over fewer experts deviates more.
double skew(double deviation, int64_t slots) {
  return std::sqrt((deviation * deviation - meanRows) * measuredSlots / double(slots)) / meanRows;
}

} // namespace

double planner::skewOfPlaced(int64_t slots) { return skew(placed, slots); }

double planner::skewOfSequences(int64_t slots, double sequences) {
  return skew(inOrder, slots) / std::sqrt(std::max(1.0, sequences));
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
  bytes.dispatch = layout.dividesExperts() ? hidden * rates.dispatchBytes : 0;
  bytes.combine = layout.dividesExperts() ? hidden * rates.combineBytes : 0;
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

//===- Memory.h - The certificate, and what would fit --------------------------===//
#ifndef K2C_LIB_PLANNER_MEMORY_H
#define K2C_LIB_PLANNER_MEMORY_H

#include "Operands.h"
#include "k2c/Planner/Planner.h"

namespace k2c::planner {

/// Planes of the model's cache pools under `limits`, of all layers or of those in `range`.
/// Heads are divided among `tp` ranks.
std::vector<CachePlane> cachePlanes(const ModelSpec &spec, const Limits &limits, DType type, int64_t tp);
std::vector<CachePlane> cachePlanes(const ModelSpec &spec, const Limits &limits, DType type, int64_t tp,
                                    LayerRange range);

/// Error: limits whose bytes would not even fit 64 bits.
Status checkCountable(const ModelSpec &spec, const Limits &limits);

/// Everything the memory of one rank depends on, but the limits.
struct MemoryModel {
  const ModelSpec &spec;
  const Device &device;
  const MeasuredSizes &measured;
  DType cache;
  int64_t expandedFrom;
  int64_t ranks; ///< see Plan
  RankParts rank;
  std::vector<int64_t> stages; ///< stageBounds

  MemoryCertificate certify(const Limits &limits) const;
  /// Errors when `limits` do not fit the device, with both numbers and the largest limits that do.
  Status check(const Limits &limits) const;
};

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_MEMORY_H

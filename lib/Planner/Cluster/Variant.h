//===- Variant.h - A request with changes -------------------------------------===//
#ifndef K2C_LIB_PLANNER_CLUSTER_VARIANT_H
#define K2C_LIB_PLANNER_CLUSTER_VARIANT_H

#include "TrainingModel.h"
#include "k2c/Planner/RefusedPlan.h"

namespace k2c::planner {

/// What of a request may be changed.
struct Variant {
  Variant(const PlanRequest &asked, const ParallelLayout &layout)
      : workload(asked.workload), topology(asked.topology), weights(asked.weights), compute(asked.compute),
        cache(asked.cache), layout(layout) {}
  /// `asked` with these; it refers to this variant.
  PlanRequest of(const PlanRequest &asked) const {
    return {asked.spec, topology, workload, asked.phase, weights, compute, cache, false, asked.objective, true};
  }

  Workload workload;
  Topology topology;
  WeightFormat weights;
  DType compute, cache;
  ParallelLayout layout;
};

/// The variant's plan where it is accepted.
std::optional<ClusterPlan> accepted(const PlanRequest &asked, const Variant &variant);

/// Makes the variant one of the search space that is accepted, on at most `devices`: of these the nearest to its
/// layout, which has the fewest keys changed by the smallest factors. False: there is none.
bool moveToNearest(const PlanRequest &asked, Variant &variant, int64_t devices);

/// The cheapest change on the same topology that is accepted.
std::optional<Variant> cheapestChange(const PlanRequest &asked, const ParallelLayout &layout, LayoutOrigin origin);
/// The fewest devices of the topology, or of a larger one of its devices, that are accepted.
std::optional<Variant> fewestDevices(const PlanRequest &asked, const ParallelLayout &layout);
/// The target that every layout of the topology misses, and what the best of them takes when its load is least.
std::optional<UnmetTarget> unmetTarget(const PlanRequest &asked, PoolRole role);
} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_CLUSTER_VARIANT_H

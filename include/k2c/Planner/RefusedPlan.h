//===- RefusedPlan.h - Why a plan is refused, and what would help -----------------===//
//
// What evaluate(), evaluateDefault() or search() refused, with the plan as if it fitted and two ways out, each of which
// was planned: the cheapest change on the same machines, and the fewest devices of their kind.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_REFUSEDPLAN_H
#define K2C_PLANNER_REFUSEDPLAN_H

#include "k2c/Planner/Evaluate.h"
#include <utility>

namespace k2c {

/// Changes of a request under which it is accepted. What is not named stays as it was.
struct Remedy {
  using Entries = std::vector<std::pair<std::string, std::string>>;
  Entries flags;    ///< of `k2c plan`, in place of those of the same name: {"--layout", "ep=32,dp=32"}
  Entries workload; ///< keys of the workload file: {"routing", "mean"}
  Entries tiers;    ///< counts in the topology file, where no name says them: {"network", "6"}
  std::vector<std::string> inPlaceOf; ///< flags that are left out for these: --search, for a layout
  ClusterPlan plan;                   ///< what the request is then
};

/// How a layout came about.
enum class LayoutOrigin : uint8_t { Given, Default, Searched };

/// A target that no layout of the topology reaches, whatever the load.
struct UnmetTarget {
  bool isFirst = false; ///< of the first token of 95 % of the requests; else of each token after it
  Seconds asked, best;
  std::string layout; ///< of the best
};

/// A refused request.
struct RefusedPlan {
  Error error;
  /// With the memory that it would need; none where the model or the topology does not divide into the layout.
  std::optional<ClusterPlan> plan;
  std::optional<Remedy> remedy;     ///< on the same topology; none: nothing that is known helps
  std::optional<Remedy> fewest;     ///< devices that serve or train what was asked; none: no number of them does
  std::optional<UnmetTarget> unmet; ///< where neither helps, and a target alone refuses
  bool soughtFewest = false;        ///< whether `fewest` was looked for

  /// The largest part of the fullest rank where memory is what refuses, else null.
  const MemoryPart *tooLarge() const;
};

/// Explains `error`, with which `request` was refused under `layout`. Where it was not given, it is read only for what
/// is no way of dividing the model.
RefusedPlan explainRefused(const PlanRequest &request, const ParallelLayout &layout, LayoutOrigin origin, Error error);

/// What one rank of a compile was planned with.
struct HostRequest {
  const ModelSpec &spec;
  const Topology &topology;
  Limits limits;
  PlanOptions options;
  MeasuredSizes measured; ///< what only a compiler knows; zero without one
  bool holdsLeast = true; ///< whether it accepts one sequence of one token
};
/// Explains `error`, with which planHost refused `request`. The remedy is the largest limit that is accepted; where
/// none is, devices that serve the default workload are looked for.
RefusedPlan explainRefusedHost(const HostRequest &request, Error error);

} // namespace k2c

#endif // K2C_PLANNER_REFUSEDPLAN_H

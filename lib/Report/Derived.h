//===- Derived.h - What several renderings of a plan need -----------------===//
#ifndef K2C_LIB_REPORT_DERIVED_H
#define K2C_LIB_REPORT_DERIVED_H

#include "k2c/Report/Report.h"

namespace k2c::report {

/// A phase of a step: its parts in order. Where work and transfers overlap they are two lanes, else one.
struct PhaseParts {
  std::string phase;
  std::vector<const StepPart *> parts;
  bool overlaps = false;

  /// Time in which a device waits for others: of a pipeline's bubble.
  static bool isIdle(const StepPart &part) {
    return part.flops.value <= 0 && part.memoryBytes <= 0 && part.linkBytes <= 0;
  }
  static bool onLinks(const StepPart &part) { return part.bound == Bound::Link || part.bound == Bound::Latency; }
  /// Seconds of the parts on links, or of the others.
  double lane(bool links) const;
  /// Of the phase: lanes one after the other, or the longer of them.
  double seconds() const;
};

/// Phases in the order in which the plan lists them.
std::vector<PhaseParts> phasesOf(const ClusterPlan &plan);

/// A rank of the pipeline's timeline.
struct PipelineRank {
  int32_t rank = 0;
  double busy = 0, idle = 0; ///< seconds until the last rank ends
};
std::vector<PipelineRank> pipelineRanks(const ClusterPlan &plan);
/// From the first task's begin to the last one's end.
double pipelineSeconds(const ClusterPlan &plan);
/// Whether tasks of several lanes occur.
bool hasLanes(const ClusterPlan &plan);

/// A figure as people read it: "12.3 ms", "1,234 tokens/s", "3.1 GiB (3.3 GB)".
std::string printFigure(double value, const std::string &unit);
/// "79 %"; "0.4 %" below one.
std::string printShare(double share);

/// Well-formed UTF-8 without control characters; names come from files.
std::string cleanText(const std::string &text);

/// The two figures that plans of a phase are drawn by; either may be null.
struct Tradeoff {
  const Figure *rate = nullptr;    ///< more is better
  const Figure *latency = nullptr; ///< less is better
};
Tradeoff tradeoffOf(const ClusterPlan &plan);

} // namespace k2c::report

#endif // K2C_LIB_REPORT_DERIVED_H

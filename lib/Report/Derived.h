//===- Derived.h - What several renderings of a plan need -----------------===//
#ifndef K2C_LIB_REPORT_DERIVED_H
#define K2C_LIB_REPORT_DERIVED_H

#include "k2c/Report/Report.h"

#include <optional>

namespace k2c::report {

/// A phase of a step: its parts in order. Where work and transfers overlap they are two lanes, else one.
struct PhaseParts {
  std::string phase;
  std::vector<const StepPart *> parts;
  bool overlaps = false;
  double step = 0; ///< seconds that the plan states of it: halves of a batch wait for each other

  /// Time in which a device waits for others: of a pipeline's bubble.
  static bool isIdle(const StepPart &part) {
    return part.flops.value <= 0 && part.memoryBytes <= 0 && part.linkBytes <= 0;
  }
  static bool onLinks(const StepPart &part) { return part.bound == Bound::Link || part.bound == Bound::Latency; }
  /// Seconds of the parts on links, or of the others.
  double lane(bool links) const;
  /// Of the phase: lanes one after the other; overlapped, as the plan states, at least the longer of them.
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
/// The part of a pipeline's time in which every rank does the same again and again.
struct SteadyState {
  double begin = 0, seconds = 0; ///< of the first period
  int64_t count = 0;             ///< periods, one after another
  int32_t microbatches = 0;      ///< of a period
};
/// Nothing where no period was found.
std::optional<SteadyState> steadyStateOf(const ClusterPlan &plan);
/// Whether tasks of several lanes occur.
bool hasLanes(const ClusterPlan &plan);

/// One of the figures that people ask for first.
struct Headline {
  std::string label, value;    ///< "TTFT", "1.27 s"
  std::string beside;          ///< what else is said of it: "95th percentile 1.9 s"; may be empty
  std::string key;             ///< of the figure; empty for devices, head room and a cost without a price
  std::optional<double> exact; ///< of `value`, in the figure's unit
};
/// Devices, TTFT, TPOT, tokens/s per device, cost, head room; of training step time and MFU in place of TTFT and TPOT,
/// and the days of all tokens where the workload states them. What the plan does not have is left out, but for a cost
/// without a price, TPOT of one token, and what the other pool of a pool alone would give: these are "-".
std::vector<Headline> headlineOf(const PlanReport &report);
/// The figures that are not in the headline.
std::vector<Figure> otherFigures(const PlanReport &report);

/// What is too large, what would help: sentences of a refused plan. None where the error says all.
std::vector<std::string> refusedLines(const RefusedPlan &refused);

/// The table of memory by classes of ranks and parts; with a line for the host where the layout offloads.
std::string memoryText(const ClusterPlan &plan);
/// The JSON key `memory`.
nlohmann::ordered_json memoryJson(const ClusterPlan &plan);

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

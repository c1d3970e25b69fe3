//===- Report.h - A plan for people and for programs ----------------------===//
//
// Four renderings of one result: a table for the terminal, JSON, one self-contained HTML page, and a trace of the
// predicted step for Perfetto. They show what ClusterPlan.h holds and derive nothing but shares, units and the summary,
// so that all four say the same. docs/PlanOutput.md describes the JSON and the page.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_REPORT_REPORT_H
#define K2C_REPORT_REPORT_H

#include "k2c/Cluster/Topology.h"
#include "k2c/Planner/ClusterPlan.h"
#include "k2c/Planner/RefusedPlan.h"
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace k2c {

/// What is rendered; the objects outlive the call.
struct PlanReport {
  const ClusterPlan &plan;
  const Topology &topology;
  /// The search that chose `plan`; null when the layout was given.
  const PlanSearch *search = nullptr;
  /// Numbers of the model itself: key -> {"label", "value", "unit"}; null when they were not asked for.
  const nlohmann::ordered_json *counts = nullptr;
  /// Why `plan` is refused; null when it is accepted.
  const RefusedPlan *refused = nullptr;
};

/// The three questions of whoever reads a plan, answered in sentences.
struct PlanSummary {
  bool fits = false;
  std::string fit; ///< "fits: ranks 0-31 hold 59.1 GiB (63.5 GB) of 74.5 GiB (80.0 GB), 79 %"
  std::vector<std::string>
      bounds; ///< for each long phase: "decode is bound by memory; its longest part is experts: 3.1 ms, 41 % of 7.5 ms"
  std::vector<std::string> advice; ///< what would change that
};
PlanSummary summarize(const PlanReport &report);

/// The six figures that people ask for first, the summary, and tables of fixed columns. Sizes in GiB and GB.
std::string planTable(const PlanReport &report);

/// One object; base units (bytes, FLOP, seconds), numbers that read back exactly. docs/PlanOutput.md lists its keys.
nlohmann::ordered_json planJson(const PlanReport &report);

/// What is too large, what would help, the fewest devices that would do, and the memory table of what does not fit.
/// Empty where the error says all.
std::string refusedText(const RefusedPlan &refused);
/// The same as an object with the key `refused`.
nlohmann::ordered_json refusedJson(const RefusedPlan &refused);

/// One HTML file that needs no network and no script: memory of ranks, roofline, timeline, link traffic, frontier.
/// Every number of planJson is in it, as `data-value`.
std::string planHtml(const PlanReport &report);

/// Chrome's trace events, as the runtime's --trace writes them: one track for each pipeline rank; of a plan without a
/// pipeline, one track for each phase with its parts one after another.
std::string planTrace(const PlanReport &report);

/// "F2", "B0.3 (lane 0)": a task of the timeline, as schedules print it: work, lane where there are several, and
/// micro-batch.
std::string nameOf(const PipelineSpan &span, bool lanes);

} // namespace k2c

#endif // K2C_REPORT_REPORT_H

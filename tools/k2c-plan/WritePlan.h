//===- WritePlan.h - Where a plan goes ----------------------------------------===//
#ifndef K2C_TOOLS_K2C_PLAN_WRITEPLAN_H
#define K2C_TOOLS_K2C_PLAN_WRITEPLAN_H

#include "k2c/Report/Report.h"
#include <CLI/CLI.hpp>

namespace k2c {

/// Renderings asked for; a table without `json`. "-" is standard output, and then nothing else is printed there.
struct OutputFlags {
  bool json = false;
  std::string html, trace;
};

/// Declares the flags on `command`; `flags` is filled when it is parsed.
void declareOutput(CLI::App &command, OutputFlags &flags);

/// Error: two renderings would be mixed on standard output.
Status checkOutput(const OutputFlags &flags);

/// The page and the trace, where they were asked for. Error: a file that cannot be written.
Status writeFiles(const PlanReport &report, const OutputFlags &flags);
/// These, and the table or JSON on standard output. Error: a file that cannot be written.
Status writePlan(const PlanReport &report, const OutputFlags &flags);

/// Why there is no plan, on standard output: a page or a trace of the refused one where they were asked for, else text
/// or JSON. Error: a file that cannot be written.
Status writeRefused(const RefusedPlan &refused, const Topology &topology, const OutputFlags &flags);

/// The table of `counts`.
std::string countsText(const nlohmann::ordered_json &counts);

} // namespace k2c

#endif // K2C_TOOLS_K2C_PLAN_WRITEPLAN_H

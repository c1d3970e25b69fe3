//===- PlanCommand.h - The planner's command line -----------------------------===//
//
// One set of flags for `k2c plan` and for k2c-plan, which starts faster because it is linked without LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_TOOLS_K2C_PLAN_PLANCOMMAND_H
#define K2C_TOOLS_K2C_PLAN_PLANCOMMAND_H

#include <CLI/CLI.hpp>
#include <functional>

namespace k2c {

/// Declares the flags on `command`, whose name users type as `program`. The result runs what was asked and returns the
/// exit code.
std::function<int()> declarePlan(CLI::App &command, const std::string &program);

} // namespace k2c

#endif // K2C_TOOLS_K2C_PLAN_PLANCOMMAND_H

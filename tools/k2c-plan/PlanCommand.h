//===- PlanCommand.h - The planner's command line -----------------------------===//
//
// One set of flags for `k2c plan` and for k2c-plan, which starts faster because it is linked without LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_TOOLS_K2C_PLAN_PLANCOMMAND_H
#define K2C_TOOLS_K2C_PLAN_PLANCOMMAND_H

#include "ClusterCommand.h"

namespace k2c {

/// Declares the flags on `command`, whose name users type as `program`. The result runs what was asked and returns the
/// exit code. `compiler` certifies the memory of what compiles; null where it is not linked.
std::function<int()> declarePlan(CLI::App &command, const std::string &program, AskCompiler compiler = nullptr);

} // namespace k2c

#endif // K2C_TOOLS_K2C_PLAN_PLANCOMMAND_H

//===- ClusterCommand.h - k2c plan MODEL --topology T -------------------------===//
#ifndef K2C_TOOLS_K2C_PLAN_CLUSTERCOMMAND_H
#define K2C_TOOLS_K2C_PLAN_CLUSTERCOMMAND_H

#include "WritePlan.h"
#include "k2c/Planner/Evaluate.h"
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>

namespace k2c {

/// What a compile is asked for; the planner's own flags of the same names.
struct CompileFlags {
  std::string source, compute, cache, mla; ///< an empty one is the compile's default
  std::optional<int64_t> stepTokens, maxSequences, maxContext, outputRows;
  std::string topology = "host";
};

/// Sizes of arena and scratch that only the compiler knows; null where it is not linked.
using AskCompiler = std::function<Expected<Plan>(const CompileFlags &)>;

/// Flags of a plan of a cluster.
struct ClusterFlags {
  CompileFlags compile;
  std::string topology, workload, layout, objective, weights; ///< empty: the default
  std::string stats, placement;                               ///< files; empty: none
  int64_t routeLimit = 0;                                     ///< of the program of `stats`; 0: none
  bool train = false, search = false;
  OutputFlags output;
};

/// Declares the flags on `command`; `flags` is filled when it is parsed.
void declareCluster(CLI::App &command, const std::shared_ptr<ClusterFlags> &flags);

/// Plans and prints. Returns the exit code.
int planCluster(const ClusterFlags &flags, const AskCompiler &compiler);

} // namespace k2c

#endif // K2C_TOOLS_K2C_PLAN_CLUSTERCOMMAND_H

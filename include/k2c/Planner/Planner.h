//===- Planner.h - From a model and a machine to a plan -------------------------===//
//
// Pure and fast: no weights, no files, no clock. The same call prints `k2c plan`, fills attach-plan, and certifies the
// memory at the end, when the compiler has measured its arena and its scratch (MeasuredSizes); weights, cache and
// logits follow from the model.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_PLANNER_H
#define K2C_PLANNER_PLANNER_H

#include "k2c/Cluster/Topology.h"
#include "k2c/Planner/CompileLayout.h"
#include "k2c/Planner/Plan.h"
#include <optional>

namespace k2c {

/// What the user chose.
struct PlanOptions {
  DType compute = DType::F32;
  std::string computeReason;  ///< why (ComputeType.h); "" leaves no remark
  std::optional<DType> cache; ///< as compute by default
  MlaForms mla = MlaForms::Phased;
  WeightLayout weights{}; ///< in which kernels read matrices
  /// One that compiles (CompileLayout.h): the default is that of one rank.
  ParallelLayout layout;
  /// Refuse what the device cannot hold. A shape-only compile looks at models no single device holds: false.
  bool mustFit = true;
};

/// Sizes that only the compiled program tells; zero before.
struct MeasuredSizes {
  Bytes arena;
  Bytes scratchPerWorker;
  int64_t workers = 0; ///< that have it; 0: the cores of a processor
  Bytes tokenizerFile; ///< its size, for the reserve
};

/// The limits of a compile that names none: step-tokens 2048, max-sequences 16, max-context
/// min(max_position_embeddings, 8192).
Limits defaultLimits(const ModelSpec &spec);

/// Plans the ranks of a program, each on one CPU device of the topology; limits are those of one rank, memory that of
/// the fullest. Errors: limits that are not positive or exceed the model's positions; a layout that does not compile;
/// memory that does not fit, with both numbers and the largest limits that would.
Expected<Plan> planHost(const ModelSpec &spec, const Topology &topology, const Limits &limits,
                        const PlanOptions &options = {}, const MeasuredSizes &measured = {});

} // namespace k2c

#endif // K2C_PLANNER_PLANNER_H

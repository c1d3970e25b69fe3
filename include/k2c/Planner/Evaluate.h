//===- Evaluate.h - One layout predicted, and the best of all -----------------===//
//
// The functions behind `k2c plan MODEL --topology T`. Results are described in ClusterPlan.h.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_EVALUATE_H
#define K2C_PLANNER_EVALUATE_H

#include "k2c/Cluster/Topology.h"
#include "k2c/Model/ModelSpec.h"
#include "k2c/Planner/ClusterPlan.h"
#include "k2c/Planner/Planner.h"
#include "k2c/Planner/RouteBound.h"
#include "k2c/Planner/Workload.h"

namespace k2c {

/// How weights are stored in memory.
enum class WeightFormat : uint8_t { Published, Bf16, F32 };
/// "as published", "bf16", "f32".
const char *nameOf(WeightFormat format);
/// The format that `--weights` spells "published", "bf16" or "f32", or nothing.
std::optional<WeightFormat> parseWeightFormat(std::string_view word);

/// What is planned. The referenced objects outlive the request.
struct PlanRequest {
  const ModelSpec &spec;
  const Topology &topology;
  const Workload &workload;
  PlanPhase phase = PlanPhase::Serve;
  WeightFormat weights = WeightFormat::Published; ///< of serving; training's are Workload::train.bytes
  DType compute = DType::BF16;                    ///< f32 or bf16; FP8 weights compute in FP8 where the device can
  DType cache = DType::BF16;                      ///< element type of the cache; serving
  bool withTimeline = false;                      ///< training: also when each task of the pipeline runs
  /// What the number of sequences is chosen for: Latency takes one for each data-parallel rank, others as many as fit.
  Objective objective = Objective::Throughput;
  /// Refuse a plan that does not fit or misses its targets; else it is returned with a note.
  bool mustFit = true;
};

/// Predicts `layout`. Errors: a layout that the model or the topology does not divide into, memory or targets that do
/// not hold; each names the key of the layout (or the rank) and both numbers.
Expected<ClusterPlan> evaluate(const PlanRequest &request, const ParallelLayout &layout);

/// The one rank that `k2c compile` would make: memory is `plan`'s certificate, predictions are for one sequence.
ClusterPlan describeHostPlan(const ModelSpec &spec, const Topology &topology, const Plan &plan);

/// The fewest new tokens of a data-parallel rank's prompts from which on a step in two halves, of which one's rows
/// cross as the other computes, is predicted to take less time than a whole one, of `most`, its half, its quarter, ..;
/// 0: it takes no less time at `most`. The layout is one that compiles.
int64_t overlapsFrom(const PlanRequest &request, const ParallelLayout &layout, int64_t most);

/// Whether `k2c compile` accepts a plan today, by reason; empty: it does. Families of models/families/compile.yaml,
/// serving, what checkCompiles of k2c/Planner/CompileLayout.h accepts.
std::string whyNotCompiled(const PlanRequest &request, const ParallelLayout &layout);

/// The layout to start from: replicas of the fewest devices that hold the model and leave the fewest idle.
Expected<ClusterPlan> evaluateDefault(const PlanRequest &request);
/// The layout whose error is evaluateDefault's: the one on most devices.
ParallelLayout largestDefault(const PlanRequest &request);

/// Reads "ep=8,dp=8,pp=1" (keys as format(ParallelLayout) prints them). Errors name the entry.
Expected<ParallelLayout> parseLayout(const std::string &text, PlanPhase phase);

/// Evaluates every layout of the search space (docs/Planner.md). Error: none fits, with the reasons and one layout of
/// each.
/// What is best is `request.objective`.
Expected<PlanSearch> search(const PlanRequest &request);

/// The layouts of a program.
struct CompileSearch {
  std::vector<ClusterPlan> holding; ///< of those whose memory holds, without the arena; the most tokens/s first
  int64_t candidates = 0;           ///< layouts looked at
  int64_t compiling = 0;            ///< of these, the ones that k2c compile accepts, and that the bound binds
  ParallelLayout smallest;          ///< of these, the one whose fullest rank needs least
};

/// Evaluates every layout of search(), and compileLayout's in every number of stages, that `k2c compile` accepts: with
/// the steps and sequences of `limits`, under the default lengths. The layout of `options` is not read. Errors: limits
/// or a model that planHost refuses under any layout; a bound that binds nothing under any (checkBinds). At least one
/// compiles where compileLayout's does.
Expected<CompileSearch> searchCompiled(const ModelSpec &spec, const Topology &topology, const Limits &limits,
                                       const PlanOptions &options, const RouteBound &bound = {});

/// Default lengths, shortened to the model's positions.
Workload defaultWorkload(const ModelSpec &spec);
/// Likewise, to sequences of `maxContext` tokens.
Workload defaultWorkload(const ModelSpec &spec, int64_t maxContext);

} // namespace k2c

#endif // K2C_PLANNER_EVALUATE_H

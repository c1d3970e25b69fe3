//===- KernelTime.h - Seconds of a compiled program's step ----------------===//
//
// The step of a program is its kernels one after the other. With rates of this machine (Cluster/Calibration.h) a kernel
// takes
//
//   launch  +  the largest share of the grid that a worker has  x  the time of its items  +  exchange
//
//   launch       only where a barrier ends it: once in a group of kernels. The last worker has a largest share of each
//                grid, so the largest shares of a group add up.
//   linear       an item's panel is passed by tiles of rows: the first reads it from where the weights live, the others
//                from the caches of the core. Weights live in memory as far as the set that a step reads exceeds the
//                caches (the curve of `read` says how far). Experts have as many rows as a uniform router gives them,
//                of the ranks that share them as many of each.
//   attention    pairs of query and key at the rate of that many queries on the same keys, but no faster than the
//                cached keys are read; expanded keys are linears before it
//   the others   bytes of a row, at the rate of that many rows a worker
//   exchange     activations that other workers wrote, over the links between the processors
//
// Rates are interpolated as times: linearly in rows and in depth, and in proportion beyond the largest. Left out: host
// code between launches, waiting for a colder clock, other processes.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_KERNELTIME_H
#define K2C_PLANNER_KERNELTIME_H

#include "base/Error.h"
#include "k2c/Cluster/Calibration.h"
#include "k2c/Kernels/TileConfig.h"
#include "k2c/Planner/StepCost.h"
#include <string>
#include <vector>

namespace k2c {

/// A kernel of a compiled program and how often a step launches it.
struct ProgramKernel {
  KernelDesc desc;
  TileConfig tile;      ///< that the program has it in
  int64_t launches = 1; ///< of one step
  int64_t nowait = 0;   ///< of these, so many end without a barrier
};

/// What a prediction depends on besides the kernels.
struct StepOptions {
  StepShape shape;
  bool expanded = false;  ///< the form of latent attention that the step's rows run in
  int64_t outputRows = 1; ///< rows whose logits are computed and sampled
  int64_t vocab = 0;
  int64_t etp = 1; ///< ranks that share each expert, whose rows each of them computes with its part
  /// Experts of a layer that the step's tokens go to, a mean over layers, as `run routes` shows them: their rows are
  /// shared evenly. 0: all experts are as likely.
  double expertsHit = 0;
};

/// One kernel of a step, all its launches together.
struct KernelTime {
  std::string name;
  int64_t launches = 0;
  Seconds seconds; ///< launches and barriers included
};

/// A step by the rates of a machine.
struct StepTime {
  std::vector<KernelTime> kernels; ///< in the program's order; the last one is the sampler
  Bytes workingSet;                ///< weights and cache that the step reads
  Seconds seconds;                 ///< of the step: the sum
};

/// A step of `shape`: each sequence wants the logits of its last row, and runs in the form that as many new tokens get.
StepOptions stepOptions(const ModelSpec &spec, const Plan &plan, const StepShape &shape);

/// `links`: of the processors that the team runs on; none: what workers exchange takes no time. Error: `team` lacks the
/// rate of a kernel; names it and the remedy.
Expected<StepTime> timeStep(const std::vector<ProgramKernel> &program, const TeamRates &team,
                            const std::vector<LinkRates> &links, const StepOptions &options);

} // namespace k2c

#endif // K2C_PLANNER_KERNELTIME_H

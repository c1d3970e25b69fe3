//===- PlanDevice.h - A program's step on one GPU -----------------------------===//
//
// A step is one graph, whose kernels run one after the other. Each takes a launch and, at least, the longest of what
// the units of the device take for it:
//
//   issue    its multiply-adds at the rate of f32: that is what kernels multiply in, whatever type their weights have
//   L2       all that it reads and writes, at the bandwidth between L2 and the multiprocessors
//   memory   weights and cache, at the bandwidth of the device's memory
//
// These are bounds from below, and no prediction of a measurement. Left out: instructions that are no multiply-adds;
// shared memory, as no formula says what a kernel keeps there; grids that do not fill the device.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_PLANDEVICE_H
#define K2C_PLANNER_PLANDEVICE_H

#include "k2c/Kernels/Cost.h"
#include "k2c/Planner/KernelTime.h"
#include "k2c/Planner/Planner.h"

namespace k2c {

/// Rows and keys of a launch of `kernel` in a step of one sequence; no rows: the step does not launch it.
Load loadOf(const ProgramKernel &kernel, const Plan &plan, const Prediction &step);

/// One kernel of a step, all its launches together.
struct DeviceKernelTime {
  std::string name;
  int64_t launches = 0;
  Seconds issue, l2, memory; ///< of each unit, if nothing else held it up
  Seconds launch;            ///< of all launches

  /// The longest of the units, and the launches.
  Seconds seconds() const;
  /// Which takes the longest: "issue", "L2", "memory" or "launches".
  const char *bound() const;
};

/// What a GPU takes for a step, at least.
struct DeviceStepTime {
  std::vector<DeviceKernelTime> kernels; ///< of the program, in its order, as far as the step launches them
  int64_t launches = 0;
  Seconds seconds;
};

DeviceStepTime timeOnDevice(const std::vector<ProgramKernel> &program, const Plan &plan, const Prediction &step,
                            const Device &device);

/// Between L2 and the multiprocessors; where the topology does not state it, the source says what is assumed.
Sourced<Bandwidth> l2Bandwidth(const Device &device);

/// As planHost, of one GPU: what is decided and what memory is needed are the same, steps take what timeOnDevice says.
/// Before there are kernels (`program` is empty) launches are left out, and kinds of kernels stand for kernels. Remarks
/// name the source of each constant, whether measured, of a datasheet or assumed, and what bounds each kernel.
Expected<Plan> planDevice(const ModelSpec &spec, const Topology &topology, const Limits &limits,
                          const PlanOptions &options = {}, const MeasuredSizes &measured = {},
                          const std::vector<ProgramKernel> &program = {});

} // namespace k2c

#endif // K2C_PLANNER_PLANDEVICE_H

// A step function as it was recorded: a graph, and what its launches are, by which messages and traces name them.
#ifndef K2RT_DEVICE_CUDA_RECORDEDSTEP_H
#define K2RT_DEVICE_CUDA_RECORDEDSTEP_H

#include "base/GpuHandles.h"
#include "engine/Trace.h"
#include "k2rt/program.h"
#include "program/Bundle.h"
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace k2c::runtime {

struct RecordedLaunch {
  int32_t kernel = 0;
  int64_t layer = -1; ///< of the model; -1: none
  k2rt_ir_grid grid = {};
  int64_t ctas = 0;
  int32_t branch = 0, group = 0; ///< launches of one group may run at once

  /// Of `step`; -1: it does not depend on rows.
  int64_t rows(const k2rt_ir_step &step) const;
  int64_t items(const k2rt_ir_step &step) const;
};

/// Of a step that is traced, what each run of the graph records.
struct StepTimes {
  Event begin;                                  ///< of the step
  std::vector<std::pair<Event, Event>> kernels; ///< begin and end of each launch
};

struct RecordedStep {
  GraphExecutable graph;
  std::vector<RecordedLaunch> launches; ///< number n is launches[n - 1]
  StepTimes times;

  /// Of numbers that launches have left, those of the latest group: what is under way, or has ended last.
  std::vector<const RecordedLaunch *> latest(const std::array<int32_t, K2RT_GPU_BRANCHES> &begun) const;
  /// Puts what a run of `step`, which began at `beginNs`, has recorded into rings of `trace`: one a branch.
  Status trace(const Driver &driver, const k2rt_ir_step &step, int64_t number, int64_t beginNs, Trace &trace) const;
};

/// "kernel linear_a (layer 4, 9 rows)", of a launch in `step`.
std::string textOf(const RecordedLaunch &launch, const k2rt_ir_step &step, const Program &program);

/// Of launches that may run at once, those that read alike once: "kernel linear_a (9 rows) or kernel linear_b (9
/// rows)".
std::string textOf(const std::vector<const RecordedLaunch *> &launches, const char *separator, const k2rt_ir_step &step,
                   const Program &program);

/// " in layer 4, row 7": what `worker` of a launch had of `step`, of workersPerCta in each CTA.
std::string placeOf(const RecordedLaunch &launch, int32_t worker, int64_t workersPerCta, const k2rt_ir_step &step);

} // namespace k2c::runtime

#endif

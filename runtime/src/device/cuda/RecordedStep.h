// A step function as it was recorded: a graph, and what its launches are, by which messages name them.
#ifndef K2RT_DEVICE_CUDA_RECORDEDSTEP_H
#define K2RT_DEVICE_CUDA_RECORDEDSTEP_H

#include "device/cuda/Driver.h"
#include "k2rt/program.h"
#include "program/Bundle.h"
#include <array>
#include <string>
#include <vector>

namespace k2c::runtime {

struct RecordedLaunch {
  int32_t kernel = 0;
  int64_t layer = -1; ///< of the model; -1: none
  k2rt_ir_grid grid = {};
  int64_t ctas = 0;
  int32_t group = 0; ///< launches of one may run at once
};

struct RecordedStep {
  GraphExecutable graph;
  std::vector<RecordedLaunch> launches; ///< number n is launches[n - 1]

  /// Of numbers that launches have left, those of the latest group: what is under way, or has ended last.
  std::vector<const RecordedLaunch *> latest(const std::array<int32_t, K2RT_GPU_BRANCHES> &begun) const;
};

/// "kernel linear_a (layer 4, 9 rows)", of a launch in `step`.
std::string textOf(const RecordedLaunch &launch, const k2rt_ir_step &step, const Program &program);

/// " in layer 4, row 7": what `worker` of a launch had of `step`, of workersPerCta in each CTA.
std::string placeOf(const RecordedLaunch &launch, int32_t worker, int64_t workersPerCta, const k2rt_ir_step &step);

} // namespace k2c::runtime

#endif

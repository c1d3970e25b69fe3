// Records a program's step function as a graph: what it enqueues becomes nodes, in order but for those of a group
// (Branches.h).
//
//   copy of the step -> kernel -> kernel -> ... -> copy of status and samples
#ifndef K2RT_DEVICE_CUDA_RECORDER_H
#define K2RT_DEVICE_CUDA_RECORDER_H

#include "device/cuda/Branches.h"
#include "device/cuda/Modules.h"
#include "device/cuda/RecordedStep.h"
#include "device/cuda/StepMirror.h"
#include "engine/Device.h"
#include "program/Bundle.h"
#include <optional>

namespace k2c::runtime {

/// Where kernels of a step find what all of them have.
struct LaunchMemory {
  CUdeviceptr scratch = 0;              ///< of all workers
  const void *const *weights = nullptr; ///< of the device, by slot
  const RankMemory *rank = nullptr;
};

class Recorder {
public:
  /// All that it refers to outlives it.
  /// `isTraced`: graphs record when each launch begins and ends.
  Recorder(const Driver &driver, const Bundle &bundle, const Modules &modules, const StepMirror &mirror,
           const LaunchMemory &memory, bool isTraced);

  /// Runs `entry` on one worker, for steps of at most `rows` rows. Refuses what a program of processors asks for, and
  /// launches that are not as the manifest says.
  Expected<RecordedStep> record(k2rt_ir_step_fn entry, int64_t rows, CUstream on);

private:
  static int32_t launch(k2rt_ir_worker *worker, int32_t kernel, k2rt_ir_kernel_fn function, int64_t grid,
                        void *const *args);
  static int32_t barrier(k2rt_ir_worker *worker);
  static int32_t sample(k2rt_ir_worker *worker);
  static int32_t collectiveStart(k2rt_ir_worker *worker, int32_t site, int64_t layer, void *const *buffers);
  static int32_t collectiveWait(k2rt_ir_worker *worker, int32_t site);
  static int32_t enqueue(k2rt_ir_worker *worker, int32_t kernel, const k2rt_ir_grid *grid, int64_t layer,
                         void *const *args, int32_t count, int32_t nowait);
  Status enqueued(RecordedLaunch launch, void *const *args, int32_t count, bool isOpen);
  Status addNode(const RecordedLaunch &launch, const Branches::Place &place, void *const *args, int32_t count);
  Status checkArguments(int32_t kernel, int32_t count) const;
  Expected<int64_t> itemsOf(int32_t kernel, const k2rt_ir_grid &grid) const;
  k2rt_ir_gpu_launch parameterOf(const k2rt_ir_grid &grid, const Branches::Place &place) const;
  int32_t refuse(const char *call);
  k2rt_ir_worker worker();
  Status capture(k2rt_ir_step_fn entry, int64_t rows);
  Status mark(Event &event, CUstream on);

  const Driver &driver;
  const Bundle &bundle;
  const DeviceFacts &device;
  const Modules &modules;
  const StepMirror &mirror;
  const LaunchMemory memory;
  const bool isTraced;
  k2rt_ir_api api = {};
  CUstream stream = nullptr;
  std::optional<Branches> branches;
  std::vector<RecordedLaunch> launches;
  StepTimes times;
  k2rt_ir_step step = {};      ///< as the program sees it
  std::optional<Error> failed; ///< the first
};

} // namespace k2c::runtime

#endif

// Runs a program's step function on all workers: the runtime's side of k2rt_ir_api.
#ifndef K2RT_DEVICE_CPU_EXECUTOR_H
#define K2RT_DEVICE_CPU_EXECUTOR_H

#include "device/cpu/Collectives.h"
#include "engine/Device.h"
#include "k2rt/Sampler.h"
#include "k2rt/WorkerPool.h"
#include "k2rt/program.h"
#include "program/Bundle.h"
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

namespace k2c::runtime {

class Executor {
public:
  /// `scratch`: one base per worker. `trace` may be null. Everything referred to outlives the executor.
  Executor(const Bundle &bundle, WorkerPool &pool, const RankMemory &memory, const std::vector<void *> &scratch,
           Trace *trace);
  Executor(const Executor &) = delete;
  Executor &operator=(const Executor &) = delete;

  /// Between steps: workers read these weights.
  void use(const void *const *weights);
  /// The step that run() is for; where it has a second half, that is kept, too.
  void upload(const k2rt_ir_step &next);
  /// One step on all workers. Fails with the name of the kernel that failed, with what ended the run among ranks, or
  /// K2RT_INTERRUPTED.
  Status run(k2rt_ir_step_fn entry);
  StepResults results() const;

  /// Ends the running or next step early. Safe in a signal handler.
  void interrupt() { interrupted.store(true, std::memory_order_relaxed); }

private:
  /// What a worker's `context` points to. Its own cache lines.
  struct alignas(128) Worker {
    k2rt_ir_worker ir;
    Executor *executor;
  };
  struct Failure {
    int32_t kernel = -1, result = 0, worker = 0;
    const void *absent = nullptr; ///< as in k2rt_ir_worker
  };

  static int32_t launch(k2rt_ir_worker *worker, int32_t kernel, k2rt_ir_kernel_fn function, int64_t grid,
                        void *const *args);
  static int32_t launchNowait(k2rt_ir_worker *worker, int32_t kernel, k2rt_ir_kernel_fn function, int64_t grid,
                              void *const *args);
  static int32_t barrier(k2rt_ir_worker *worker);
  static int32_t sample(k2rt_ir_worker *worker);
  static int32_t collectiveStart(k2rt_ir_worker *worker, int32_t site, int64_t layer, void *const *buffers);
  static int32_t collectiveWait(k2rt_ir_worker *worker, int32_t site);
  Half halfOf(const k2rt_ir_worker &worker) const { return worker.step == &second ? Half::second : Half::first; }
  void runShare(k2rt_ir_worker &worker, int32_t kernel, k2rt_ir_kernel_fn function, int64_t grid, void *const *args);
  int32_t waitAtBarrier(k2rt_ir_worker &worker);
  void traceStep(int64_t begin);
  void fail(const Failure &failure);
  void fail(Error error);
  Status outcome(const std::vector<int32_t> &results) const;

  const Bundle &bundle;
  WorkerPool &pool;
  Trace *trace;
  k2rt_ir_api api = {};
  std::vector<Worker> workers;
  std::vector<Sampler> samplers;
  Barrier launchBarrier;
  Collectives collectives;
  void *const arena;
  k2rt_ir_step step = {}, second = {};
  int64_t steps = 0;

  std::atomic<bool> interrupted{false};
  std::atomic<bool> failing{false}; ///< whoever sets it writes `first` or `ofExchange`
  Failure first;
  std::optional<Error> ofExchange;
  int32_t stop = 0; ///< written by the last to arrive at `launchBarrier`, read by all after it: same for every worker
};

} // namespace k2c::runtime

#endif

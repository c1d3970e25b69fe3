//===- Team.h - Workers that launch kernels as a program does -------------===//
#ifndef K2C_LIB_CALIBRATE_TEAM_H
#define K2C_LIB_CALIBRATE_TEAM_H

#include "base/Error.h"
#include "k2c/Support/Units.h"
#include "k2rt/WorkerPool.h"
#include "k2rt/program.h"
#include <cstdint>
#include <memory>
#include <vector>

namespace k2c::calibration {

/// A kernel's launch over `items` grid items; without a function, only the barrier that ends it.
struct Launch {
  k2rt_ir_kernel_fn function = nullptr;
  int64_t items = 0;
  std::vector<void *> args;
  const k2rt_ir_step *step = nullptr; ///< null: that of all launches
};

/// Error: this process may not use so many processors.
Status checkWorkers(int64_t workers);

/// The runtime's workers and barrier, timed.
class Team {
public:
  /// Error: threads do not start.
  static Expected<Team> start(int64_t workers, int64_t scratchBytes);

  int64_t workers() const { return pool->count(); }
  /// The fastest of several runs of each launch, and the mean of these over `launches`; its barrier included. Runs all
  /// of them in order, at least twice and for `budget`. A single launch that is too short for the clock is
  /// run sixteen times in a row.
  Expected<Seconds> time(const std::vector<Launch> &launches, const k2rt_ir_step &step, Seconds budget);
  /// Likewise, but of the fastest run of all of them; each launch has its step: no clock is read between two, so that a
  /// worker that comes late is waited for as in a program.
  Expected<Seconds> timeTogether(const std::vector<Launch> &launches, Seconds budget);

private:
  Team() = default;
  k2rt_ir_worker workerOf(int32_t index) const;
  /// One launch on one worker, and the barrier. False: the kernel failed.
  bool run(k2rt_ir_worker &worker, const Launch &launch, const k2rt_ir_step &step);
  std::unique_ptr<runtime::WorkerPool> pool;
  std::unique_ptr<runtime::Barrier> launchBarrier;
  std::vector<std::unique_ptr<char[]>> scratch;
  int64_t scratchBytes = 0;
};

} // namespace k2c::calibration

#endif // K2C_LIB_CALIBRATE_TEAM_H

//===- Team.h - Workers that launch kernels as a program does -------------===//
#ifndef K2C_LIB_CALIBRATE_TEAM_H
#define K2C_LIB_CALIBRATE_TEAM_H

#include "host/WorkerPool.h"
#include "k2c/Support/Error.h"
#include "k2c/Support/Units.h"
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
  /// of them in order, at least three times and for `budget`. A single launch that is too short for the clock is
  /// run sixteen times in a row.
  Expected<Seconds> time(const std::vector<Launch> &launches, const k2rt_ir_step &step, Seconds budget);

private:
  Team() = default;
  std::unique_ptr<k2rt::WorkerPool> pool;
  std::unique_ptr<k2rt::Barrier> meeting;
  std::vector<std::unique_ptr<char[]>> scratch;
  int64_t scratchBytes = 0;
};

} // namespace k2c::calibration

#endif // K2C_LIB_CALIBRATE_TEAM_H

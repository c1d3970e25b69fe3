//===- GpuMeasurement.h - Graphs of launches on a GPU, timed ---------------===//
#ifndef K2C_LIB_CALIBRATE_GPUMEASUREMENT_H
#define K2C_LIB_CALIBRATE_GPUMEASUREMENT_H

#include "GpuKernels.h"
#include "k2c/Cluster/Topology.h"
#include <functional>
#include <optional>
#include <vector>

namespace k2c::calibration {

/// Seconds of a graph, or of a copy, run after run.
struct GpuTiming {
  std::vector<double> runs;

  double least() const;
  /// By how much the median exceeds it: 0.02 is 2 %.
  double spread() const;
};

/// What runs. Launches follow each other in a graph.
struct GpuTimings {
  static constexpr int64_t manyLaunches = 1001, nearLaunches = 64, rowsLaunches = 4;
  static constexpr int64_t rowCount = 256;

  GpuTiming one, many; ///< one launch without rows, and `manyLaunches`, of a CTA for each that runs at once
  GpuTiming streamed;  ///< one launch of one row
  GpuTiming near;      ///< `nearLaunches` of one row; no runs where the weights do not fit L2
  GpuTiming rows;      ///< `rowsLaunches` of `rowCount` rows through the same weights
  GpuTiming copy;      ///< of `copied`, from pinned memory of the host
  Bytes copied;
};

/// What a device does in a second.
struct GpuRates {
  Seconds launch;
  Bandwidth memoryRead;
  std::optional<Bandwidth> l2Read; ///< none: of weights that do not fit L2
  FlopRate f32;
  Bandwidth fromHost;
  double spread = 0; ///< the largest of the timings
};

/// Rates of the least times. A launch beyond its work is what an empty one takes. Error: launches that work take no
/// longer than these.
Expected<GpuRates> ratesOf(const GpuTimings &timings, const GpuKernels &kernels);

struct MeasureOptions {
  Seconds budget;
  std::optional<Seconds> deadline;       ///< of each graph and copy; none: it may take for ever
  std::function<void(int64_t)> progress; ///< called with the percentage that is done; null: not wanted
};

/// Runs everything on the device in rounds, three at least and for the budget. Errors: a call that fails; a kernel that
/// computed something else; what does not end within the deadline, and the driver is abandoned.
Expected<GpuTimings> measureGpu(const Driver &driver, const GpuFacts &gpu, const GpuKernels &kernels,
                                const MeasureOptions &options);

} // namespace k2c::calibration

#endif // K2C_LIB_CALIBRATE_GPUMEASUREMENT_H

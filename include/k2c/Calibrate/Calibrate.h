//===- Calibrate.h - Measures this machine with the compiler's own kernels -===//
#ifndef K2C_CALIBRATE_CALIBRATE_H
#define K2C_CALIBRATE_CALIBRATE_H

#include "k2c/Cluster/Topology.h"
#include <functional>

namespace k2c {

class Driver;

struct CalibrateOptions {
  /// Sizes of teams to measure; empty: one worker, and one for each core.
  std::vector<int64_t> workers;
  int64_t ranks = 1;       ///< what the machine will be split into (Cluster/SplitHost.h); checked before measuring
  bool quick = false;      ///< fewer kernels, shorter measurements
  std::string tool;        ///< written into the file
  std::string cacheFolder; ///< kernel objects; empty: $XDG_CACHE_HOME/k2c
  /// Called with (stage, done, total) now and then; null: silent.
  std::function<void(const std::string &, int64_t, int64_t)> progress;
  /// Receives what the user should know and is no error; may be null.
  std::function<void(const std::string &)> note;
};

/// The host's topology (Topology.h) with measured rates. Compiles kernels for this CPU, maps about three times its
/// caches, and takes the fastest of several runs of everything. Errors: a CPU that k2c cannot compile for; no linker;
/// more workers than processors; ranks that do not fit
/// the processors; too little memory.
Expected<Topology> calibrate(const CalibrateOptions &options);

/// What calibrateGpu found.
struct GpuCalibration {
  Topology topology;  ///< `gpu`, whose sources say what was measured
  Bandwidth fromHost; ///< of copies from pinned memory
  int64_t runs = 0;   ///< of everything; the least times count
  double spread = 0;  ///< the most by which a median exceeds its least time: 0.02 is 2 %
};

/// Likewise of an NVIDIA GPU, device number `device` of the driver: of memory, L2, arithmetic in f32, launches, and the
/// link to the host where the topology has one; not of an L2 that is too small, which `note` is told. Workers, ranks
/// and `quick` are of processors. An emulated device's sources say that nothing was measured. Errors: no such device,
/// or one that k2c has no code for; ptxas fails; a call of the driver fails; a graph or copy that has
/// not ended within a minute, and `driver` is abandoned.
Expected<GpuCalibration> calibrateGpu(const Driver &driver, int32_t device, const CalibrateOptions &options);

} // namespace k2c

#endif // K2C_CALIBRATE_CALIBRATE_H

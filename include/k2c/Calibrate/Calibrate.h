//===- Calibrate.h - Measures this machine with the compiler's own kernels -===//
#ifndef K2C_CALIBRATE_CALIBRATE_H
#define K2C_CALIBRATE_CALIBRATE_H

#include "k2c/Cluster/Topology.h"
#include <functional>

namespace k2c {

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

} // namespace k2c

#endif // K2C_CALIBRATE_CALIBRATE_H

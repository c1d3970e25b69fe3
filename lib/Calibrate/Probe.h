//===- Probe.h - A kernel, and how it is timed ----------------------------===//
//
// A probe is one emitted kernel of a class (Cluster/Calibration.h) at one depth. For each row count it makes trials: a
// step, arguments, and the work that the busiest worker of a team does in a launch.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_CALIBRATE_PROBE_H
#define K2C_LIB_CALIBRATE_PROBE_H

#include "Memory.h"
#include "Team.h"
#include "k2c/Cluster/Calibration.h"
#include "k2c/Kernels/TileConfig.h"
#include <functional>

namespace k2c::calibration {

/// What probes may use: buffers, and memory whose parts no cache holds.
struct Bench {
  const TargetInfo &target;
  Buffers &buffers;    ///< cleared between trials
  const Memory &large; ///< several times the caches
};

/// Launches of one row count.
struct Trial {
  std::unique_ptr<ProbeStep> step;
  std::vector<Launch> launches; ///< none: the buffers were too small
  double work = 0;              ///< FLOP, or bytes of activations, of the busiest worker in one launch
  std::unique_ptr<Trial> less;  ///< not null: its time is not part of the work
};

struct Probe {
  KernelDesc desc;
  TileConfig tile;
  KernelRates rates;         ///< kind, types and depth; measured rates are added
  std::vector<int64_t> rows; ///< to be measured
  bool near = true;          ///< measured with operands in the nearest caches
  bool memory = false;       ///< with weights or keys from memory; a probe of its own has the rows of the near one
  /// `function` is the compiled kernel.
  std::function<Trial(const Probe &probe, const Bench &bench, k2rt_ir_kernel_fn function, int64_t workers, int64_t rows,
                      bool fromMemory)>
      prepare;
};

/// Linears of every pair of types, at several depths.
std::vector<Probe> linearProbes(const TargetInfo &target, bool quick, int64_t maxWorkers);
/// Attentions over cached keys.
std::vector<Probe> attentionProbes(const TargetInfo &target, int64_t maxWorkers);
/// Everything that works row by row.
std::vector<Probe> rowProbes(const TargetInfo &target);

/// Rows of `width` dense elements.
inline Rows denseRows(int64_t width, DType type, RowSpace space = RowSpace::Token) {
  return {space, width, width, type};
}

} // namespace k2c::calibration

#endif // K2C_LIB_CALIBRATE_PROBE_H

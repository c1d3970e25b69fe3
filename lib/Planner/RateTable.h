//===- RateTable.h - Measured rates, read between the points --------------===//
#ifndef K2C_LIB_PLANNER_RATETABLE_H
#define K2C_LIB_PLANNER_RATETABLE_H

#include "base/Error.h"
#include "k2c/Cluster/Calibration.h"
#include <optional>

namespace k2c::planner {

/// The rates of one team as times.
class RateTable {
public:
  explicit RateTable(const TeamRates &team) : team(team) {}

  /// Seconds of a unit of work (a FLOP pair or a byte) times `depth` times `rows`; operands near, or from memory. The
  /// class of the same kind and types, else of the same kind and activations. Nothing was measured: `missing` names it.
  double seconds(const char *kind, DType x, DType w, double depth, double rows, bool fromMemory = false);

  /// Likewise of one row among as many as were measured.
  double secondsOfMany(const char *kind, DType x, DType w, double depth) {
    constexpr double many = 1 << 20;
    return seconds(kind, x, w, depth, many) / many;
  }

  /// Bytes a second of the whole team over a set of `bytes`.
  double readRate(double bytes) const;
  /// 0: a set of `bytes` stays in the nearest caches; 1: all of it comes from memory.
  double memoryShare(double bytes) const;

  double launch() const { return team.launch.value; }
  int64_t workers() const { return team.workers; }
  /// The first class that was asked for and not measured; empty: none.
  std::string missing;

private:
  const TeamRates &team;
};

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_RATETABLE_H

// Where a rank is among the others: its place on the axes of the layout, and the groups that follow from it.
//
// Ranks are numbered tp first, then dp, pp, replicas, as the planner numbers devices. The tp * dp ranks of a stage also
// hold its experts, numbered etp first, then ep; and they lie on nodes, perNode one after another. So each group is an
// arithmetic progression: nothing is listed, and a group of a thousand ranks is three numbers.
#ifndef K2RT_EXCHANGE_GRID_H
#define K2RT_EXCHANGE_GRID_H

#include "base/Error.h"
#include <cstdint>

namespace k2c::runtime {

/// What the members of a group differ in. Of a stage's ranks, `node` has those of one node that have the same part of
/// an expert, `rail` those with the same place in each node, and `stage` all.
enum class Axis : uint8_t { world, tp, dp, etp, ep, pp, replica, node, rail, stage };
inline constexpr int32_t axisCount = 10;

/// As messages name it.
const char *nameOf(Axis axis);

/// The ranks base, base + stride, ..., of which `self` is the index of the one it was made for.
struct Group {
  Axis axis;
  int32_t base;
  int32_t stride;
  int32_t size;
  int32_t self;

  int32_t rank(int32_t member) const { return base + member * stride; }
};

struct Grid {
  int32_t tp = 1, dp = 1;
  int32_t etp = 1, ep = 1;
  int32_t pp = 1, replicas = 1;
  int32_t perNode = 1; ///< ranks

  int32_t stageRanks() const { return tp * dp; }
  int32_t ranks() const { return tp * dp * pp * replicas; }
  /// Whether the axes fit together, and `started` ranks are as many as they make.
  Status check(int32_t started) const;
  Group group(Axis axis, int32_t rank) const;
};

} // namespace k2c::runtime

#endif

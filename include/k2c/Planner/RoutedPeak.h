//===- RoutedPeak.h - Rows and bytes that routing may bring to one rank -------===//
//
// Memory must hold the worst step, not the mean one. Rows of a rank under mean, measured or worst-case routing, padded
// for each expert to the kernels' alignment; the buffers that carry them, twice when two batches overlap.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_ROUTEDPEAK_H
#define K2C_PLANNER_ROUTEDPEAK_H

#include "k2c/Planner/Checked.h"
#include "k2c/Planner/Placement.h"

namespace k2c {

/// Mean: every rank gets its even share. Measured: the fullest rank under a load histogram. Worst: every token chooses
/// as many of one rank's experts as it can.
enum class Routing : uint8_t { Mean, Measured, Worst };

/// One MoE layer's batch over an expert-parallel group.
struct RoutedBatch {
  int64_t experts = 1; ///< logical
  int64_t topK = 1;
  int64_t ranks = 1;
  int64_t slots = 1;         ///< physical, of all ranks; a multiple of ranks
  int64_t tokensPerRank = 1; ///< of one micro-batch
  int64_t alignment = 1;     ///< rows of an expert are padded to a multiple

  int64_t slotsPerRank() const { return slots / ranks; }
};

/// Rows of the fullest rank.
struct RoutedRows {
  Checked received; ///< tokens, one copy a rank (numerics N5)
  Checked rows;     ///< one for each expert of the rank that a token chose
  Checked padded;   ///< rows, each expert's padded to the alignment
};

/// The even share of a rank, or the most that can happen to it.
RoutedRows routedRows(const RoutedBatch &batch, Routing meanOrWorst);
/// The rank with most padded rows when experts are chosen in proportion to `load`; `load` is not all zero.
RoutedRows measuredRows(const RoutedBatch &batch, const ExpertLoad &load, const ReplicaPlacement &placement);

/// Sizes of a row on its way and while it is computed with.
struct RowBytes {
  double dispatch = 0;  ///< received token
  double combine = 0;   ///< partial sum sent back
  double compute = 0;   ///< padded row: what a layer keeps of it
  int64_t inFlight = 1; ///< layers and micro-batches whose rows are kept at once
  bool secondBuffer = false;
};

struct RoutedBytes {
  double dispatch = 0, combine = 0;
  double second = 0;  ///< another dispatch and combine buffer for the overlapped batch
  double compute = 0; ///< padding included
  double padding = 0;
  double total() const { return dispatch + combine + second + compute; }
};
RoutedBytes routedBytes(const RoutedRows &rows, const RowBytes &bytes);

} // namespace k2c

#endif // K2C_PLANNER_ROUTEDPEAK_H

// A part of the rows of a step as a step: what each rank of a tensor-parallel group carries of it.
#ifndef K2RT_ENGINE_STEPROWS_H
#define K2RT_ENGINE_STEPROWS_H

#include "k2rt/program.h"
#include "program/Manifest.h"
#include <vector>

namespace k2c::runtime {

/// Rows [begin, end) of a step.
struct RowRange {
  int64_t begin, end;

  int64_t rows() const { return end - begin; }
};

/// Slice `slice` of `slices` of `rows` rows: they differ by a row at most.
RowRange sliceOf(int64_t rows, int64_t slice, int64_t slices);

/// The rows of a slice of a step of `rows` rows, in their order: one range, or one of each half.
std::vector<RowRange> rowsOfSlice(int64_t rows, int64_t slice, int64_t slices, bool inHalves);
/// How many rows the first half of a step has.
inline int64_t firstHalf(int64_t rows) { return (rows + 1) / 2; }

/// Lets `step` begin `rows` rows, and `outputs` output rows, later: all arrays that have an entry for each.
void skipRows(k2rt_ir_step &step, const Manifest &manifest, int64_t rows, int64_t outputs);

/// Takes a slice of `whole`, once: a step that refers to it as `gathered` and to its arrays, and has its sequences. The
/// whole gives its output rows away, whose numbers become those of the slice.
k2rt_ir_step takeSlice(k2rt_ir_step &whole, const Manifest &manifest, int64_t slice, int64_t slices);

} // namespace k2c::runtime

#endif

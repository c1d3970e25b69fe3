//===- IndexSet.h - Sets of layer or expert indices -------------------------===//
//
// Layers of one kind are a few ranges with a step, whatever the model's depth: of 61 layers whose even ones above 2 are
// routed, the others are 0 to 4, then 5 to 61 step 2. Ranges of a set share no index; they may interleave.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_SUPPORT_INDEXSET_H
#define K2C_SUPPORT_INDEXSET_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace k2c {

/// Indices from, from + step, ... below to.
struct IndexRange {
  int64_t from = 0;
  int64_t to = 1;
  int64_t step = 1;

  int64_t size() const { return (to - from + step - 1) / step; }
  bool contains(int64_t index) const { return index >= from && index < to && (index - from) % step == 0; }
  /// Members smaller than `index`.
  int64_t below(int64_t index) const { return index <= from ? 0 : std::min((index - from + step - 1) / step, size()); }
  bool operator==(const IndexRange &o) const { return from == o.from && to == o.to && step == o.step; }
};

/// Disjoint ranges.
using IndexSet = std::vector<IndexRange>;

/// The set of `members`, which ascend, in few ranges: a period that repeats becomes a step.
IndexSet indexSetOf(const std::vector<int64_t> &members);

/// All indices of `set`, ascending.
std::vector<int64_t> membersOf(const IndexSet &set);

} // namespace k2c

#endif // K2C_SUPPORT_INDEXSET_H

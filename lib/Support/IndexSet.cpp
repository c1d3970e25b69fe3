//===- IndexSet.cpp - Sets of layer or expert indices -----------------------===//
//
// Members become intervals without gaps; intervals of one length L at one distance D become L ranges of step D:
//
//   4, 5, 7, 8, 10, 11   =   [4, 6) [7, 9) [10, 12)   =   4 to 11 step 3 and 5 to 12 step 3
//
//===----------------------------------------------------------------------===//
#include "k2c/Support/IndexSet.h"

namespace k2c {

/// The intervals of `members`, as ranges of step 1.
static std::vector<IndexRange> intervalsOf(const std::vector<int64_t> &members) {
  std::vector<IndexRange> intervals;
  for (int64_t member : members) {
    if (!intervals.empty() && intervals.back().to == member)
      ++intervals.back().to;
    else
      intervals.push_back({member, member + 1, 1});
  }
  return intervals;
}

IndexSet indexSetOf(const std::vector<int64_t> &members) {
  std::vector<IndexRange> intervals = intervalsOf(members);
  IndexSet set;
  for (size_t first = 0, last; first < intervals.size(); first = last + 1) {
    int64_t length = intervals[first].size();
    last = first;
    while (last + 1 < intervals.size() && intervals[last + 1].size() == length &&
           intervals[last + 1].from - intervals[last].from == intervals[first + 1].from - intervals[first].from)
      ++last;
    if (last == first) {
      set.push_back(intervals[first]);
      continue;
    }
    int64_t step = intervals[first + 1].from - intervals[first].from;
    for (int64_t i = 0; i < length; ++i)
      set.push_back({intervals[first].from + i, intervals[last].from + i + 1, step});
  }
  return set;
}

std::vector<int64_t> membersOf(const IndexSet &set) {
  std::vector<int64_t> members;
  for (const IndexRange &range : set)
    for (int64_t index = range.from; index < range.to; index += range.step)
      members.push_back(index);
  std::sort(members.begin(), members.end());
  return members;
}

} // namespace k2c

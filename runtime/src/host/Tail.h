// What a worker leaves to whoever is free.
//
// A launch gives worker w of T the items [w*n/T, (w+1)*n/T). In a helped launch it does not take them all at once: the
// last eighth of them, its tail, is cut into two parts, and whoever is free claims a part: the worker itself when it
// gets there, or before that a neighbour with nothing left to do. So a worker that was held up, by an odd item, by a
// launch of one row before this one, by pages that lie badly or by another process, is waited for an eighth less, and
// nobody counts in advance what holds a worker up. Which worker runs an item changes no bit of what it computes.
//
// Neighbours are the workers of a block of four: they share a NUMA node, mostly a cache, and looking for work takes
// three lines of other cores at most.
#ifndef K2RT_HOST_TAIL_H
#define K2RT_HOST_TAIL_H

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace k2rt {

/// The last items of a worker's share: `parts` parts of `items` items each, from item `begin` to the share's end.
struct Tail {
  int64_t begin, items, parts;
};

/// The tail of the share [begin, end).
inline Tail tailOf(int64_t begin, int64_t end) {
  constexpr int64_t mostParts = 2, partsOfShare = 16;
  const int64_t share = end - begin, items = (share + partsOfShare - 1) / partsOfShare;
  const int64_t parts = items > 0 ? std::min(mostParts, share / items) : 0;
  return {end - parts * items, items, parts};
}

/// Which parts of one worker's tail are claimed. Launches are numbered alike by all workers, rising from 1, and no
/// worker claims of a launch when any is in one of another number; so nothing is reset between launches.
class TailClaims {
public:
  /// A part that nobody has claimed in launch `number`, and the caller has now; `parts` when there is none.
  int64_t next(uint64_t number, int64_t parts) {
    uint64_t seen = word.load(std::memory_order_relaxed);
    for (;;) {
      const uint64_t claimed = seen >> countBits == number ? seen % (uint64_t(1) << countBits) : 0;
      if (claimed >= static_cast<uint64_t>(parts))
        return parts;
      if (word.compare_exchange_weak(seen, (number << countBits) + claimed + 1, std::memory_order_relaxed))
        return static_cast<int64_t>(claimed);
    }
  }

private:
  static constexpr int countBits = 8;
  std::atomic<uint64_t> word{0}; ///< the launch's number above the parts claimed in it
};

/// The workers that `worker` of `count` looks at for work, itself first: those of its block of four.
template <class Visit> void visitNeighbours(int32_t worker, int32_t count, Visit visit) {
  for (int32_t distance = 0; distance < 4; ++distance)
    if (const int32_t neighbour = worker ^ distance; neighbour < count)
      visit(neighbour);
}

} // namespace k2rt

#endif

//===- Largest.h - The largest or smallest number that holds --------------===//
#ifndef K2C_SUPPORT_LARGEST_H
#define K2C_SUPPORT_LARGEST_H

#include <algorithm>
#include <cstdint>

namespace k2c {

/// The largest number in [1, most] that `holds`, which is true up to some number and false beyond it; 0 where it is
/// true of none. Asks about 2 log2 of the answer numbers: small ones first, since large ones may cost most to ask of.
template <class Holds> int64_t largest(int64_t most, const Holds &holds) {
  int64_t good = 0, bad = 1;
  while (bad <= most && holds(bad)) {
    good = bad;
    bad *= 2;
  }
  bad = std::min(bad, most + 1);
  while (bad - good > 1) {
    int64_t middle = good + (bad - good) / 2;
    (holds(middle) ? good : bad) = middle;
  }
  return good;
}

/// The smallest number in [1, most] from which on `holds` is true; `most` where it holds of none below. Asks about log2
/// of `most` numbers.
template <class Holds> int64_t smallest(int64_t most, const Holds &holds) {
  int64_t low = 0, high = most;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    (holds(middle) ? high : low) = middle;
  }
  return high;
}

} // namespace k2c

#endif // K2C_SUPPORT_LARGEST_H

// The order in which partial sums of several ranks are added: the balanced tree of numerics N1, for any number of them.
// Neighbours are added, then neighbouring pairs, and so on; a part without neighbour moves up as it is:
//
//   6 ranks: ((0 + 1) + (2 + 3)) + (4 + 5)
//
// For a power of two that is N1's tree over leaves: as many ranks as divide the leaves give one rank's bits. Every part
// of a sum is added on one rank, in this order, so all ranks have the same bits, whatever came first.
#ifndef K2RT_EXCHANGE_TREESUM_H
#define K2RT_EXCHANGE_TREESUM_H

#include <cstdint>

namespace k2c::runtime {

/// Adds up rows [0, rows) of `data`, each of `count` values, into the first; the others hold partial sums afterwards.
inline void treeSum(float *data, int32_t rows, int64_t count) {
  for (int32_t stride = 1; stride < rows; stride *= 2)
    for (int32_t row = 0; row + stride < rows; row += 2 * stride) {
      float *left = data + row * count;
      const float *right = data + (row + stride) * count;
      for (int64_t i = 0; i < count; ++i)
        left[i] += right[i];
    }
}

} // namespace k2c::runtime

#endif

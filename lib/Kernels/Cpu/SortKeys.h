//===- SortKeys.h - Floats as integers that sort like them ----------------===//
//
// The order "larger first, NaN last, then the lower index" becomes integers: a float's bits, negative ones mirrored,
// sort as the float does; NaN is the second smallest integer and "not to be chosen" the smallest.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_KERNELS_CPU_SORTKEYS_H
#define K2C_LIB_KERNELS_CPU_SORTKEYS_H

#include "Builder.h"
#include <limits>

namespace k2c::emit {

inline constexpr int32_t noChoice = std::numeric_limits<int32_t>::min(), nanKey = noChoice + 1;

/// Ordered as the floats are; both zeros have one key.
Value keyOf(KernelBuilder &b, Value floats);

/// Of keys that were looked at: the largest, and its index, i32.
struct Best {
  Value key, index;
};
/// The better of `best` and `key` in each lane, which keeps what it has among equals.
Best better(KernelBuilder &b, const Best &best, Value key, Value index);
/// The best of all lanes; among equals that of the lowest index.
Best bestLane(KernelBuilder &b, const Best &best);

} // namespace k2c::emit

#endif // K2C_LIB_KERNELS_CPU_SORTKEYS_H

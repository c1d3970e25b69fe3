//===- Units.h - What one multiply-add takes of a row -------------------------------------===//
//
// A unit is 4 bytes: an f32 element, or a pair of bf16 elements, the earlier one in the low half (N6). Vectors of units
// are i32. Attention turns rows of units into columns and back, and interleaves rows of bf16 to pairs.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_KERNELS_CPU_UNITS_H
#define K2C_LIB_KERNELS_CPU_UNITS_H

#include "Builder.h"

namespace k2c::emit {

/// Bytes of a unit.
inline constexpr int64_t unitBytes = 4;

/// `count` units from the elements of `type` at `address`, of which there are `elements`; zeros follow them. `pairs`:
/// units are pairs, and so is `type`; else elements widen to f32.
Value loadUnits(KernelBuilder &b, Value address, DType type, bool pairs, int64_t count, int64_t elements);

/// The first `elements` elements of `type` that the units hold.
void storeUnits(KernelBuilder &b, Value units, Value address, DType type, int64_t elements);

/// Transposes n vectors of n lanes, n a power of two: lane j of vector i becomes lane i of vector j.
Values transpose(KernelBuilder &b, Values rows);

/// Vectors of f32 rounded to bf16: `even` in the low halves, `odd` above. `odd` null: zeros.
Value roundToPairs(KernelBuilder &b, Value even, Value odd);

/// Elements i of two rows of bf16 as unit i of `count`; `elements` of them are there, zeros follow.
Value interleave(KernelBuilder &b, Value even, Value odd, int64_t count, int64_t elements);

/// Pairs whose odd element is zero.
Value evenOnly(KernelBuilder &b, Value pairs);

/// The pair (1, 1) on `lanes` lanes.
Value pairOfOnes(KernelBuilder &b, int64_t lanes);

} // namespace k2c::emit

#endif // K2C_LIB_KERNELS_CPU_UNITS_H

//===- SortKeys.cpp - Floats as integers that sort like them --------------===//
#include "SortKeys.h"

namespace k2c::emit {

Value keyOf(KernelBuilder &b, Value floats) {
  Value bits = b.bitsOf(b.fadd(floats, b.constantFloat(floats.getType(), 0.0f)));
  Value mirrored = b.bitXor(bits, b.bitAnd(b.sar(bits, 31), b.constant(bits.getType(), 0x7fffffff)));
  return b.select(b.unordered(floats, floats), b.constant(bits.getType(), nanKey), mirrored);
}

Best better(KernelBuilder &b, const Best &best, Value key, Value index) {
  Value isBetter = b.compare(Compare::Gt, key, best.key);
  return {b.select(isBetter, key, best.key), b.select(isBetter, index, best.index)};
}

Best bestLane(KernelBuilder &b, const Best &best) {
  Value key = b.largestLane(best.key), isBest = b.compare(Compare::Eq, best.key, b.splat(key, b.lanes()));
  Value beyond = b.constant(best.index.getType(), std::numeric_limits<int32_t>::max());
  return {key, b.smallestLane(b.select(isBest, best.index, beyond))};
}

} // namespace k2c::emit

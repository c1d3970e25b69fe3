//===- Units.cpp - Loads, stores and turns of units -----------------------------------------===//
#include "Units.h"

namespace k2c::emit {

static Value maskOf(KernelBuilder &b, int64_t lanes, int64_t elements) {
  return elements < lanes ? b.laneMask(lanes, 0, elements) : Value();
}

Value loadUnits(KernelBuilder &b, Value address, DType type, bool pairs, int64_t count, int64_t elements) {
  if (!pairs)
    return b.bitsOf(b.loadFloats(address, type, count, maskOf(b, count, elements)));
  Type halves = b.vec(storageType(b.builder().getContext(), type), 2 * count);
  return b.reinterpret(b.load(halves, address, type, maskOf(b, 2 * count, elements)), b.vec(b.i32(), count));
}

void storeUnits(KernelBuilder &b, Value units, Value address, DType type, int64_t elements) {
  int64_t lanes = mlir::cast<mlir::VectorType>(units.getType()).getNumElements() * unitBytes / byteWidth(type);
  Type stored = b.vec(storageType(b.builder().getContext(), type), lanes);
  b.store(b.reinterpret(units, stored), address, type, maskOf(b, lanes, elements));
}

Values transpose(KernelBuilder &b, Values rows) {
  int64_t n = rows.size();
  for (int64_t distance = 1; distance < n; distance *= 2) {
    // Blocks of `distance` x `distance` change places with those across the diagonal.
    llvm::SmallVector<int64_t> upper, lower;
    for (int64_t lane = 0; lane < n; ++lane) {
      bool across = lane & distance;
      upper.push_back(across ? n + lane - distance : lane);
      lower.push_back(across ? n + lane : lane + distance);
    }
    for (int64_t i = 0; i < n; ++i)
      if (!(i & distance)) {
        Value first = rows[i], second = rows[i + distance];
        rows[i] = b.shuffle(first, second, upper);
        rows[i + distance] = b.shuffle(first, second, lower);
      }
  }
  return rows;
}

Value roundToPairs(KernelBuilder &b, Value even, Value odd) {
  Value low = b.shr(b.bitsOf(b.rounded(even, DType::BF16)), 16);
  return odd ? b.bitOr(low, b.bitsOf(b.rounded(odd, DType::BF16))) : low;
}

Value interleave(KernelBuilder &b, Value even, Value odd, int64_t count, int64_t elements) {
  Value mask = maskOf(b, count, elements);
  Value low = b.bitsOf(b.loadFloats(even, DType::BF16, count, mask));
  Value high = b.bitsOf(b.loadFloats(odd, DType::BF16, count, mask));
  return b.bitOr(b.shr(low, 16), high);
}

Value evenOnly(KernelBuilder &b, Value pairs) { return b.bitAnd(pairs, b.constant(pairs.getType(), 0xffff)); }

Value pairOfOnes(KernelBuilder &b, int64_t lanes) { return b.constant(b.vec(b.i32(), lanes), 0x3f803f80); }

} // namespace k2c::emit

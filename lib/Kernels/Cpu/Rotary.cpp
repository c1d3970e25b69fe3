//===- Rotary.cpp - Rotary position embedding ------------------------------------------===//
//
// A pair (a, b) becomes (fma(a, cos, -(b * sin)), fma(b, cos, a * sin)). Pairs (j, j + count / 2) are two loads; pairs
// (2j, 2j + 1) are one load of twice the lanes, split by shuffles. y may be x: both halves are loaded before a store.
//
//===----------------------------------------------------------------------===//
#include "Emitters.h"

namespace k2c::emit {

namespace {

struct Pair {
  Value a, b;
};

Pair rotate(KernelBuilder &b, Pair pair, Value cosine, Value sine) {
  return {b.fma(pair.a, cosine, b.fneg(b.fmul(pair.b, sine))), b.fma(pair.b, cosine, b.fmul(pair.a, sine))};
}

/// Lanes start, start + 2, ... of the 2n lanes of a vector.
Value everySecond(KernelBuilder &b, Value vector, int64_t n, int64_t start) {
  llvm::SmallVector<int64_t> lanes;
  for (int64_t i = 0; i < n; ++i)
    lanes.push_back(2 * i + start);
  return b.shuffle(vector, vector, lanes);
}

Value interleave(KernelBuilder &b, Pair pair, int64_t n) {
  llvm::SmallVector<int64_t> lanes;
  for (int64_t i = 0; i < n; ++i)
    lanes.append({i, n + i});
  return b.shuffle(pair.a, pair.b, lanes);
}

/// Rotates the `count` elements at x into y.
void rotateHead(KernelBuilder &b, const RotaryDesc &d, Value x, Value y, Value cosines, Value sines) {
  int64_t half = d.count / 2;
  b.columns(half, [&](const Chunk &chunk) {
    Value cosine = b.loadFloats(cosines, DType::F32, chunk), sine = b.loadFloats(sines, DType::F32, chunk);
    if (!d.interleaved) {
      Value xUpper = b.at(x, half, d.x.type), yUpper = b.at(y, half, d.y.type);
      Pair pair = rotate(b, {b.loadFloats(x, d.x.type, chunk), b.loadFloats(xUpper, d.x.type, chunk)}, cosine, sine);
      b.storeFloats(pair.a, y, d.y.type, chunk);
      b.storeFloats(pair.b, yUpper, d.y.type, chunk);
      return;
    }
    Chunk both{b.mul(chunk.column, 2), 2 * chunk.lanes, Value()};
    if (chunk.mask)
      both.mask = b.laneMask(both.lanes, 0, 2 * (half % chunk.lanes));
    Value elements = b.loadFloats(x, d.x.type, both);
    Pair pair{everySecond(b, elements, chunk.lanes, 0), everySecond(b, elements, chunk.lanes, 1)};
    b.storeFloats(interleave(b, rotate(b, pair, cosine, sine), chunk.lanes), y, d.y.type, both);
  });
}

} // namespace

void emitBody(KernelBuilder &b, const RotaryDesc &d, const TileConfig &) {
  Value x = b.argument(0), table = b.argument(1), y = b.argument(3);
  Value positions = b.stepField(abi::step::positions);
  auto copy = [&](Value from, Value to, int64_t first, int64_t last) {
    Value source = b.at(from, first, d.x.type), target = b.at(to, first, d.y.type);
    copyRow(b, source, d.x.type, target, d.y.type, last - first);
  };
  b.items([&](Value row) {
    Value position = b.extend(b.loadI32(positions, row));
    Value valid = b.bitAnd(b.compare(Compare::Ge, position, 0), b.compare(Compare::Lt, position, d.positions));
    b.fail(b.bitNot(valid), 1);
    b.when(valid, [&] {
      Value cosines = b.at(table, b.mul(position, d.count), DType::F32), sines = b.at(cosines, d.count / 2, DType::F32);
      b.loop(0, d.heads, 1, [&](Value head) {
        Value offset = b.mul(head, d.headDim);
        Value from = b.at(b.row(x, d.x, row), offset, d.x.type), to = b.at(b.row(y, d.y, row), offset, d.y.type);
        copy(from, to, 0, d.first);
        rotateHead(b, d, b.at(from, d.first, d.x.type), b.at(to, d.first, d.y.type), cosines, sines);
        copy(from, to, d.first + d.count, d.headDim);
      });
    });
  });
}

} // namespace k2c::emit

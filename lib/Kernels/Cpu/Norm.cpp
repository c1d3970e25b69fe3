//===- Norm.cpp - RMS norm -------------------------------------------------------------===//
//
// The sum of squares has 64 interleaved chains: 64 / lanes accumulators hold them all, and merging by halving is vector
// adds down to one vector, then shuffles. A masked tail adds fma(0, 0, c), which leaves a chain's non-negative sum
// alone.
//
//===----------------------------------------------------------------------===//
#include "Emitters.h"

namespace k2c::emit {

static constexpr int64_t chains = 64;

static Value sumOfSquares(KernelBuilder &b, const NormRow &row) {
  int64_t lanes = b.lanes(), full = row.width / chains * chains;
  Values acc(chains / lanes, b.zeros(lanes));
  auto square = [&](Value sum, const Chunk &chunk) {
    Value x = b.loadFloats(row.x, row.xType, chunk);
    return b.fma(x, x, sum);
  };
  if (full > 0)
    acc = b.loop(0, full, chains, acc, [&](Value column, ValueRange carried) {
      Values next(carried);
      for (auto [i, sum] : llvm::enumerate(next))
        sum = square(sum, {b.add(column, int64_t(i) * lanes), lanes, Value()});
      return next;
    });
  for (auto [i, sum] : llvm::enumerate(acc)) {
    int64_t first = full + int64_t(i) * lanes, count = std::min(row.width - first, lanes);
    if (count > 0)
      sum = square(sum, {b.constant(first), lanes, count < lanes ? b.laneMask(lanes, 0, count) : Value()});
  }
  for (size_t half = acc.size() / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i)
      acc[i] = b.fadd(acc[i], acc[i + half]);
  Value sum = acc[0];
  for (int64_t half = lanes / 2; half > 0; half /= 2)
    sum = b.fadd(sum, b.rotate(sum, half));
  return b.lane(sum, 0);
}

void emitNormRow(KernelBuilder &b, const NormRow &row) {
  Value mean = b.fdiv(sumOfSquares(b, row), b.number(float(row.width)));
  Value scale = b.fdiv(b.number(1.0f), b.sqrt(b.fadd(mean, b.number(float(row.eps)))));
  Value scales = b.splat(scale);
  b.columns(row.width, [&](const Chunk &chunk) {
    Value x = b.loadFloats(row.x, row.xType, chunk), weight = b.loadFloats(row.weight, row.weightType, chunk);
    b.storeFloats(b.fmul(weight, b.fmul(x, scales)), row.y, row.yType, chunk);
  });
}

void emitBody(KernelBuilder &b, const RmsNormDesc &d, const TileConfig &) {
  Value x = b.argument(0), weight = b.argument(1), y = b.argument(2);
  b.items([&](Value row) {
    b.loop(0, d.heads, 1, [&](Value head) {
      Value offset = b.mul(head, d.width());
      Value from = b.at(b.row(x, d.x, row), offset, d.x.type), to = b.at(b.row(y, d.y, row), offset, d.y.type);
      emitNormRow(b, {from, weight, to, d.x.type, d.weight, d.y.type, d.width(), d.eps});
    });
  });
}

} // namespace k2c::emit

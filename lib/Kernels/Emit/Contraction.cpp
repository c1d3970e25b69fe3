//===- Contraction.cpp - Rows x one panel of 32 columns --------------------------------===//
#include "Contraction.h"
#include "Vocabulary.h"

namespace k2c::emit {

/// One or two rows load as fast as a core can: there the hardware's prefetcher is enough, and ours takes load slots.
constexpr int64_t minPrefetchRows = 3;

PanelContraction::PanelContraction(KernelBuilder &b, const Rows &x, const PanelLayout &w, const Contraction &order,
                                   const TileConfig &tile, bool gated)
    : b(b), x(x), w(w), tile(tile), k(order.k), leaves(order.leaves), length(leafLength(order.k, order.leaves)),
      gated(gated), pairs(x.type == DType::BF16 && w.type == DType::BF16),
      tileBytes(tile.mr * tile.nrVectors * tile.lanes * byteWidth(DType::F32)) {
  fresh = b.stack(tileBytes * 4);
  int64_t depth = 1;
  while ((int64_t(1) << depth) <= leaves)
    ++depth;
  stackTiles = leaves == 1 ? fresh : b.stack(tileBytes * depth);
}

int64_t PanelContraction::columnOffset(int64_t v) const {
  int64_t half = tile.nrVectors / 2;
  return gated && v >= half ? PanelLayout::columns / 2 + (v - half) * tile.lanes : v * tile.lanes;
}

Value PanelContraction::column(Value pass, int64_t v) const {
  int64_t width = tile.nrVectors * tile.lanes / (gated ? 2 : 1);
  return b.add(b.mul(pass, width), columnOffset(v));
}

/// Few rows are a few chains, bound by the latency of FMA: independent leaves fill the pipes. At most 4 streams.
int64_t PanelContraction::leavesAtOnce(int64_t rows) const {
  if (leaves * length != k)
    return 1;
  int64_t group = std::min<int64_t>(leaves, 4);
  while (group > 1 && (rows * group * tile.nrVectors > 16 || rows * group > tile.mr * 2))
    group /= 2;
  return group;
}

Value PanelContraction::tileAddress(Value base, Value tileIndex, Value vector) const {
  Value bytes = b.add(b.mul(tileIndex, tileBytes), b.mul(vector, tile.lanes * byteWidth(DType::F32)));
  return b.atBytes(base, bytes);
}

Value PanelContraction::sum(Value row, int64_t v) const {
  Value index = b.add(b.mul(row, tile.nrVectors), v);
  return b.loadFloats(tileAddress(stackTiles, b.constant(0), index), DType::F32, tile.lanes);
}

void PanelContraction::run(Value xRow, Value rows, Value panel, Value pass) {
  firstColumn = column(pass, 0);
  if (w.isScaled())
    scaleTable = b.at(panel, w.panelElements(), w.type);
  runFrom(1, xRow, rows, b.at(panel, b.mul(firstColumn, w.kStep()), w.type));
}

/// Row counts from `from` on. Those that take as many leaves at once share a loop over leaves.
void PanelContraction::runFrom(int64_t from, Value xRow, Value rows, Value panel) {
  int64_t group = leavesAtOnce(from), to = from;
  while (to < tile.mr && leavesAtOnce(to + 1) == group)
    ++to;
  auto loopOverLeaves = [&] {
    b.loop(0, leaves, group, [&](Value leaf) {
      b.switchOn(rows, from, to, [&](int64_t count) { leafBody(xRow, panel, leaf, count, group); });
      for (int64_t i = 0; i < group && leaves > 1; ++i)
        push(b.add(leaf, i), i, b.mul(rows, tile.nrVectors));
    });
  };
  if (to == tile.mr)
    return loopOverLeaves();
  b.choose(b.compare(Compare::Le, rows, to), loopOverLeaves, [&] { runFrom(to + 1, xRow, rows, panel); });
}

/// Leaf tile `i` of this round is leaf number `leaf`: adds it to the tiles of the leaves before it. Before leaf n the
/// stack holds one tile for every set bit of n; n's trailing ones are the tiles that it completes.
void PanelContraction::push(Value leaf, int64_t i, Value vectors) {
  Value depth = b.ones(leaf), merges = b.trailingOnes(leaf);
  b.loop(b.constant(0), vectors, 1, [&](Value vector) {
    Value value = b.loadFloats(tileAddress(fresh, b.constant(i), vector), DType::F32, tile.lanes);
    value = b.loop(b.constant(0), merges, 1, value, [&](Value merge, ValueRange acc) {
      Value slot = b.sub(b.sub(depth, 1), merge);
      return Values{b.fadd(b.loadFloats(tileAddress(stackTiles, slot, vector), DType::F32, tile.lanes), acc[0])};
    })[0];
    b.storeFloats(value, tileAddress(stackTiles, b.sub(depth, merges), vector), DType::F32);
  });
}

/// The chains of `group` leaves from `leaf` on, for `rows` rows: straight into the fresh tiles.
void PanelContraction::leafBody(Value xRow, Value panel, Value leaf, int64_t rows, int64_t group) {
  Values acc(rows * group * tile.nrVectors, b.zeros(tile.lanes));
  Value begin = b.mul(leaf, length);
  Value end = leaves == 1            ? b.constant(k)
              : leaves * length == k ? b.add(begin, length)
                                     : b.min(b.add(begin, length), k);
  bool odd = k % w.kStep() != 0;
  Value whole = odd ? b.sub(end, b.bitAnd(end, b.constant(1))) : end;
  if (w.isScaled())
    acc = b.loop(begin, end, w.scaleRows, acc, [&](Value at, ValueRange carried) {
      Value last = b.min(b.add(at, w.scaleRows), end);
      return chain(carried, xRow, panel, at, last, rows, group, loadScales(at, group));
    });
  else
    acc = chain(acc, xRow, panel, begin, whole, rows, group, {});
  if (odd) {
    llvm::SmallVector<Type> vectorTypes(acc.size(), b.vec(b.f32(), tile.lanes));
    Value last = b.bitAnd(b.compare(Compare::Lt, whole, end), b.compare(Compare::Lt, begin, end));
    acc = b.choose(
        last, vectorTypes, [&] { return step(acc, xRow, panel, whole, rows, group, {}, /*half=*/true); },
        [&] { return acc; });
  }
  for (int64_t i = 0, e = acc.size(), tileVectors = rows * tile.nrVectors; i < e; ++i)
    b.storeFloats(acc[i], tileAddress(fresh, b.constant(i / tileVectors), b.constant(i % tileVectors)), DType::F32);
}

/// The elements [first, last) of every chain.
Values PanelContraction::chain(ValueRange acc, Value xRow, Value panel, Value first, Value last, int64_t rows,
                               int64_t group, ValueRange scales) {
  int64_t unit = w.kStep() * unrolled(rows * group);
  return b.loop(first, last, unit, acc, [&](Value at, ValueRange carried) {
    Values next(carried);
    for (int64_t i = 0; i < unit; i += w.kStep())
      next = step(next, xRow, panel, b.add(at, i), rows, group, scales, /*half=*/false);
    return next;
  });
}

/// For each leaf of the group and each vector: the scales of its columns at element `first` of the leaf.
Values PanelContraction::loadScales(Value first, int64_t group) {
  Values scales;
  for (int64_t leaf = 0; leaf < group; ++leaf) {
    Value scaleRow = b.div(b.add(first, leaf * length), w.scaleRows);
    Value table = b.at(scaleTable, b.mul(scaleRow, PanelLayout::columns / w.scaleColumns), DType::F32);
    for (int64_t v = 0; v < tile.nrVectors; ++v) {
      Value vector;
      for (int64_t lane = 0; lane < tile.lanes; lane += w.scaleColumns) {
        Value index = b.div(b.add(firstColumn, columnOffset(v) + lane), w.scaleColumns);
        Value scale = b.splat(b.loadFloats(b.at(table, index, DType::F32), DType::F32, 0), tile.lanes);
        vector = vector ? b.select(b.laneMask(tile.lanes, lane, tile.lanes), scale, vector) : scale;
      }
      scales.push_back(panelScale(b, vector));
    }
  }
  return scales;
}

/// Steps of a loop iteration: short bodies are unrolled as far as the contraction's length divides.
int64_t PanelContraction::unrolled(int64_t chains) const {
  int64_t steps = chains >= 8 ? 1 : chains >= 4 ? 2 : 4;
  auto divides = [&](int64_t whole) { return whole % (steps * w.kStep()) == 0; };
  while (steps > 1 && !(divides(k) && divides(length) && (!w.isScaled() || divides(w.scaleRows))))
    steps /= 2;
  return steps;
}

/// One panel step: kStep elements of every chain, in the order of N1; `half`: only the first of the pair exists.
Values PanelContraction::step(ValueRange acc, Value xRow, Value panel, Value at, int64_t rows, int64_t group,
                              ValueRange scales, bool half) {
  Values next(acc);
  for (int64_t leaf = 0; leaf < group; ++leaf) {
    Value here = b.add(at, leaf * length);
    Value columns = b.at(panel, b.mul(here, PanelLayout::columns), w.type);
    llvm::SmallVector<PanelVector> weights;
    for (int64_t v = 0; v < tile.nrVectors; ++v) {
      Value address = b.at(columns, columnOffset(v) * w.kStep(), w.type);
      weights.push_back(w.isScaled() ? loadScaledVector(b, address, scales[leaf * tile.nrVectors + v], tile.lanes)
                                     : loadPanelVector(b, address, w.type, tile.lanes));
      if (tile.prefetch > 0 && rows >= minPrefetchRows && columnOffset(v) * w.kStep() * byteWidth(w.type) % 64 == 0)
        b.prefetch(b.at(address, tile.prefetch * w.kStep() * PanelLayout::columns, w.type));
    }
    for (int64_t row = 0; row < rows; ++row) {
      PanelFactor factor =
          loadFactor(b, b.at(xRow, b.add(here, row * x.stride), x.type), x.type, w.type, tile.lanes, half);
      for (int64_t v = 0; v < tile.nrVectors; ++v) {
        Value &sum = next[(leaf * rows + row) * tile.nrVectors + v];
        sum = multiplyAdd(b, tile.vocabulary, factor, weights[v], sum);
      }
    }
  }
  return next;
}

} // namespace k2c::emit

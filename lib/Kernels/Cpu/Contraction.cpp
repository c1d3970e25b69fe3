//===- Contraction.cpp - Rows x one panel of 32 columns --------------------------------===//
//
// Contraction.h has the loop nest; this file decides how much of it runs side by side, without touching the order of
// sums (N1). An FMA chain waits for its own latency, so a tile needs about 16 chains: with few rows, leaves of one
// panel run together, a power of two of them, if all leaves are equally long; a contraction of one leaf takes two
// panels instead.
//
// Leaves merge as a binary counter does. Before round n the stack holds one tile for every set bit of n, and n's
// trailing ones are the subtrees that it completes:
//
//   n = 5 = 101b    stack: leaves 0-3, leaf 4    ->    leaf 4 + leaf 5 on top of leaves 0-3
//
// A tile of four or more rows prefetches its own panel or a part of the next. The body is straight-line code for each
// row count, unrolled only as far as the steps divide every leaf and scale block.
//
//===----------------------------------------------------------------------===//
#include "Contraction.h"
#include "Cta.h"
#include "InstructionSet.h"

namespace k2c::emit {

/// One to three rows load as fast as a core can: there the hardware's prefetcher is enough, and ours takes load slots.
constexpr int64_t minPrefetchRows = 4;
/// Chains that hide the latency of an FMA, if the registers hold them.
constexpr int64_t enoughChains = 16;
constexpr int64_t cacheLine = 64; // bytes

PanelContraction::PanelContraction(KernelBuilder &b, const Rows &x, const Matrix &w, const Contraction &order,
                                   const TileConfig &tile, bool gated, Value warp)
    : b(b), x(x), w(w), tile(tile), k(order.k), leaves(order.leaves), length(leafLength(order.k, order.leaves)),
      gated(gated), pairs(x.type == DType::BF16 && w.type == DType::BF16),
      tileBytes(tile.mr * tile.nrVectors * tile.lanes * byteWidth(DType::F32)),
      reader(MatrixReader::create(b, w, tile)), warp(warp), warps(warp ? ctaWarps : 1) {
  warpBytes = tileBytes * tilesOnStack();
  tiles = warps == 1 ? b.stack(warpBytes) : b.atBytes(stackOfCta(b, warpBytes * warps), b.mul(warp, warpBytes));
  if (pairs && tile.instructionSet == InstructionSet::Avx512)
    b.roundByInstruction();
}

/// A tile for each bit of a round's number (merge). Of warps, which have half of the leaves each where they need more
/// than one tile, tiles are of two panels.
int64_t PanelContraction::tilesOnStack() const {
  int64_t depth = pairedRows() > 0 ? 2 : 1;
  const int64_t rounds = warps == 1 ? leaves : leaves / 4;
  while ((int64_t(1) << (depth - 1)) < rounds)
    ++depth;
  return warps == 1 ? depth : 2 * depth;
}

int64_t PanelContraction::columnOffset(int64_t v) const {
  int64_t half = std::max<int64_t>(tile.nrVectors / 2, 1); // one vector holds gate and up
  return gated && v >= half ? panelColumns / 2 + (v - half) * tile.lanes : v * tile.lanes;
}

Columns PanelContraction::columnsOf(int64_t v) const {
  int64_t offset = columnOffset(v), width = panelColumns / w.parts;
  return {offset / width, b.add(column(pass, 0), offset % width)};
}

Value PanelContraction::column(Value pass, int64_t v) const {
  int64_t width = tile.nrVectors * tile.lanes / (gated ? 2 : 1);
  return b.add(b.mul(pass, width), columnOffset(v));
}

int64_t PanelContraction::chainsAtMost() const { return std::min(enoughChains, tile.mr * tile.nrVectors); }

int64_t PanelContraction::leavesAtOnce(int64_t rows) const {
  if (leaves * length != k)
    return 1;
  int64_t group = std::min<int64_t>(leaves / partsAtMost(), 4);
  while (group > 1 && rows * group * tile.nrVectors > chainsAtMost())
    group /= 2;
  return group;
}

int64_t PanelContraction::pairedRows() const {
  return leaves == 1 && warps == 1 ? chainsAtMost() / (2 * tile.nrVectors) : 0;
}

Value PanelContraction::tileAddress(Value tileIndex, int64_t vector) const {
  return b.atBytes(b.atBytes(tiles, b.mul(tileIndex, tileBytes)),
                   b.constant(vector * tile.lanes * byteWidth(DType::F32)));
}

/// Parts are the leaves of a balanced tree, as those within them are.
Value PanelContraction::sum(Value row, int64_t v, Value ofPair) const {
  Value own = b.atBytes(tileAddress(ofPair, v), b.mul(row, tile.nrVectors * tile.lanes * byteWidth(DType::F32)));
  if (!joined.count)
    return b.loadFloats(own, DType::F32, tile.lanes);
  auto ofPart = [&](int64_t part) {
    Value distance = b.sub(b.add(joined.firstWarp, b.mul(joined.stride, part)), warp);
    return b.loadFloats(b.atBytes(own, b.mul(distance, warpBytes)), DType::F32, tile.lanes);
  };
  Value sum = ofPart(0);
  auto withNext = [&](int64_t parts, llvm::function_ref<Value()> next) {
    if (parts > partsAtMost())
      return sum;
    return b.choose(
        b.compare(Compare::Ge, joined.count, parts), sum.getType(), [&] { return Values{b.fadd(sum, next())}; },
        [&] { return Values{sum}; })[0];
  };
  static_assert(ctaWarps == 4, "which merge in two rounds");
  sum = withNext(2, [&] { return ofPart(1); });
  return withNext(4, [&] { return b.fadd(ofPart(2), ofPart(3)); });
}

void PanelContraction::start(const Panel &panel, Value ofColumns) {
  running = panel;
  pass = ofColumns;
}

PanelContraction::Prefetch PanelContraction::ownPanel(const Panel &panel) const {
  if (tile.prefetch == 0)
    return {};
  int64_t elementBytes = panelColumns * byteWidth(w.type);
  return {b.atBytes(panel.address, b.constant(tile.prefetch * w.kStep() * elementBytes)), b.constant(elementBytes)};
}

PanelContraction::Prefetch PanelContraction::shareOfNext(Value tileIndex, Value tileCount, const Panel &panel,
                                                         Value bringsOwn) const {
  if (tile.prefetch == 0)
    return {};
  Prefetch own = ownPanel(panel);
  int64_t elementBytes = panelColumns * byteWidth(w.type);
  // Of an element's bytes, whole ones: with many tiles, the last have none left.
  Value share = b.div(b.sub(b.add(tileCount, elementBytes), 1), tileCount), before = b.mul(tileIndex, share);
  Value noneLeft = b.compare(Compare::Ge, before, elementBytes);
  Value isOwn = b.bitOr(b.bitOr(bringsOwn, noneLeft), b.compare(Compare::Eq, tileCount, 1));
  Value next = b.atBytes(reader->behind(panel, 1).address, b.mul(before, k));
  return {b.select(isOwn, own.first, next), b.select(isOwn, own.perElement, share)};
}

void PanelContraction::run(Value xRow, Value rows, const Panel &panel, Value pass, const Prefetch &fetched) {
  prefetched = fetched;
  firstLeaf = b.constant(0);
  lastLeaf = b.constant(leaves);
  start(panel, pass);
  byAlignment(xRow, rows, [&] { runFrom(1, xRow, rows); });
}

void PanelContraction::runLeaves(Value xRow, Value rows, const Panel &panel, Value first, Value last, int64_t panels) {
  prefetched = {};
  firstLeaf = first;
  lastLeaf = last;
  start(panel, /*pass=*/b.constant(0));
  Value here = keptHere(b, rows);
  byAlignment(xRow, here, [&] {
    if (panels == 1)
      return runFrom(1, xRow, here);
    b.loop(first, last, 1, [&](Value leaf) { leafBody(xRow, leaf, tile.mr, {/*leaves=*/1, panels}); });
  });
}

void PanelContraction::runPaired(Value xRow, Value rows, const Panel &panel, Value pass) {
  start(panel, pass);
  prefetched = ownPanel(panel);
  byAlignment(xRow, rows, [&] {
    forRows(rows, 1, pairedRows(),
            [&](int64_t count) { leafBody(xRow, b.constant(0), count, {/*leaves=*/1, /*panels=*/2}); });
  });
}

/// Emits body(n) for n rows in [from, to]; of a warp, for the next power of two.
void PanelContraction::forRows(Value rows, int64_t from, int64_t to, llvm::function_ref<void(int64_t)> body) {
  if (!tile.isOfWarp())
    return b.switchOn(rows, from, to, body);
  int64_t count = 1;
  while (count < from)
    count *= 2;
  assert(count <= tile.mr && "a tile has as many rows as its largest body");
  if (count >= to)
    return body(count);
  b.choose(b.compare(Compare::Le, rows, count), [&] { body(count); }, [&] { forRows(rows, count + 1, to, body); });
}

/// Row counts from `from` on. Those that take as many leaves at once share a loop over leaves.
void PanelContraction::runFrom(int64_t from, Value xRow, Value rows) {
  int64_t group = leavesAtOnce(from), to = from;
  while (to < tile.mr && leavesAtOnce(to + 1) == group)
    ++to;
  auto loopOverLeaves = [&] {
    b.loop(firstLeaf, lastLeaf, group, [&](Value leaf) {
      forRows(rows, from, to, [&](int64_t count) { leafBody(xRow, leaf, count, {group, /*panels=*/1}); });
    });
  };
  if (to == tile.mr)
    return loopOverLeaves();
  b.choose(b.compare(Compare::Le, rows, to), loopOverLeaves, [&] { runFrom(to + 1, xRow, rows); });
}

void PanelContraction::storeTile(ValueRange acc, Value tileIndex) {
  for (size_t i = 0; i < acc.size(); ++i)
    b.storeFloats(acc[i], tileAddress(tileIndex, int64_t(i)), DType::F32);
}

/// The leaves of a round merge to one tile; then the tile of round n, as a leaf n, to those before it. Before round n
/// the stack holds one tile for every set bit of n; n's trailing ones are the tiles that it completes.
void PanelContraction::merge(Values acc, Value leaf, Streams streams) {
  for (int64_t count = streams.leaves; count > 1; count /= 2) {
    size_t vectors = acc.size() / count;
    for (size_t i = 0; i < acc.size() / 2; ++i) {
      size_t left = i / vectors * 2 * vectors + i % vectors;
      acc[i] = b.fadd(acc[left], acc[left + vectors]);
    }
    acc.truncate(acc.size() / 2);
  }
  if (streams.leaves == leaves)
    return storeTile(acc, b.constant(0));
  auto onStack = [&](Value tileIndex) { return b.mul(tileIndex, streams.panels); };
  Value round = b.div(b.sub(leaf, firstLeaf), streams.leaves), depth = b.ones(round), merges = b.trailingOnes(round);
  acc = b.loop(b.constant(0), merges, 1, acc, [&](Value merged, ValueRange right) {
    Value below = b.sub(b.sub(depth, 1), merged);
    Values sums;
    for (size_t i = 0; i < right.size(); ++i) {
      Value left = b.loadFloats(tileAddress(onStack(below), int64_t(i)), DType::F32, tile.lanes);
      sums.push_back(b.fadd(left, right[i]));
    }
    return sums;
  });
  storeTile(acc, onStack(b.sub(depth, merges)));
}

/// The chains of the streams from `leaf` on, for `rows` rows.
void PanelContraction::leafBody(Value xRow, Value leaf, int64_t rows, Streams streams) {
  Values acc(rows * streams.count() * tile.nrVectors, b.zeros(tile.lanes));
  findRows(xRow, rows, warps > 1 && streams.panels > 1 ? rows : rows / 2 + 1);
  Value begin = b.mul(leaf, length);
  Value end = leaves == 1            ? b.constant(k)
              : leaves * length == k ? b.add(begin, length)
                                     : b.min(b.add(begin, length), k);
  bool odd = k % w.kStep() != 0;
  Value whole = odd ? b.sub(end, b.bitAnd(end, b.constant(1))) : end;
  if (w.isScaled())
    acc = b.loop(begin, end, w.blockRows, acc, [&](Value at, ValueRange carried) {
      Value last = b.min(b.add(at, w.blockRows), end);
      return chain(carried, xRow, at, last, rows, streams, loadScales(at, streams));
    });
  else
    acc = chain(acc, xRow, begin, whole, rows, streams, {});
  if (odd) {
    llvm::SmallVector<Type> vectorTypes(acc.size(), b.vec(b.f32(), tile.lanes));
    Value last = b.bitAnd(b.compare(Compare::Lt, whole, end), b.compare(Compare::Lt, begin, end));
    acc = b.choose(
        last, vectorTypes, [&] { return narrowStep(acc, xRow, whole, rows, streams, {}, /*half=*/true); },
        [&] { return acc; });
  }
  if (streams.panels == 1 || warps > 1)
    return merge(acc, leaf, streams);
  for (int64_t i = 0, vectors = rows * tile.nrVectors; i < streams.panels; ++i)
    storeTile(ValueRange(acc).slice(i * vectors, vectors), b.constant(i));
}

/// The elements [first, last) of every chain.
Values PanelContraction::chain(ValueRange acc, Value xRow, Value first, Value last, int64_t rows, Streams streams,
                               ValueRange scales) {
  if (isWide)
    return wideChain(acc, xRow, first, last, rows, streams, scales);
  int64_t unit = w.kStep() * unrolled(rows * streams.count());
  return b.loop(first, last, unit, acc, [&](Value at, ValueRange carried) {
    Values next(carried);
    for (int64_t i = 0; i < unit; i += w.kStep())
      next = narrowStep(next, xRow, b.add(at, i), rows, streams, scales, /*half=*/false);
    return next;
  });
}

/// Element k of a row.
Value PanelContraction::factorAddress(Value xRow, int64_t row, Value k) const {
  if (tile.isOfWarp())
    return b.at(rowStarts[size_t(row)], k, x.type);
  return b.at(xRow, b.add(k, row * x.stride), x.type);
}

/// For each stream and each vector: the scales of its columns at element `first` of the leaf.
Values PanelContraction::loadScales(Value first, Streams streams) {
  Values scales;
  for (int64_t stream = 0; stream < streams.count(); ++stream) {
    auto [leaf, panel] = streams.place(stream);
    for (int64_t v = 0; v < tile.nrVectors; ++v)
      scales.push_back(reader->scales(reader->behind(running, panel), columnsOf(v), b.add(first, leaf * length)));
  }
  return scales;
}

/// Steps of a loop iteration: short bodies are unrolled as far as the contraction's length divides.
int64_t PanelContraction::unrolled(int64_t chains) const {
  int64_t steps = chains >= 8 ? 1 : chains >= 4 ? 2 : 4;
  auto divides = [&](int64_t whole) { return whole % (steps * w.kStep()) == 0; };
  while (steps > 1 && !(divides(k) && divides(length) && (!w.isScaled() || divides(w.blockRows))))
    steps /= 2;
  return steps;
}

/// The cache line that begins with panel column `column`, if one does, for the element that follows as `prefetched`
/// says.
void PanelContraction::prefetchLine(Value element, int64_t panelOfPair, int64_t column) {
  int64_t offset = column * w.kStep() * byteWidth(w.type);
  if (offset % cacheLine != 0)
    return;
  Value bytes = b.add(b.mul(element, prefetched.perElement), panelOfPair * PanelLayout{w}.panelBytes() + offset);
  b.prefetch(b.atBytes(prefetched.first, bytes), CacheLevel::Second);
}

/// `half`: only the first of the step's pair exists.
Values PanelContraction::narrowStep(ValueRange acc, Value xRow, Value at, int64_t rows, Streams streams,
                                    ValueRange scales, bool half) {
  return step(acc, at, rows, streams, scales, [&](int64_t stream, int64_t row) {
    Value address = factorAddress(xRow, row, b.add(at, streams.place(stream).first * length));
    return loadFactor(b, address, x.type, w.type, tile.lanes, half);
  });
}

/// One panel step: kStep elements of every chain, in the order of N1.
Values PanelContraction::step(ValueRange acc, Value at, int64_t rows, Streams streams, ValueRange scales,
                              FactorOf factorOf) {
  Values next(acc);
  for (int64_t stream = 0; stream < streams.count(); ++stream) {
    auto [leaf, panelOfPair] = streams.place(stream);
    Panel panel = reader->behind(running, panelOfPair);
    Value here = b.add(at, leaf * length);
    llvm::SmallVector<PanelVector> weights;
    for (int64_t v = 0; v < tile.nrVectors; ++v) {
      Value scale = w.isScaled() ? scales[stream * tile.nrVectors + v] : Value();
      weights.push_back(reader->weights(panel, columnsOf(v), here, scale));
      if (tile.prefetch > 0 && rows >= minPrefetchRows)
        prefetchLine(here, panelOfPair, columnOffset(v));
    }
    for (int64_t row = 0; row < rows; ++row) {
      PanelFactor factor = factorOf(stream, row);
      for (int64_t v = 0; v < tile.nrVectors; ++v) {
        Value &sum = next[(stream * rows + row) * tile.nrVectors + v];
        sum = multiplyAdd(b, tile.instructionSet, factor, weights[v], sum);
      }
    }
  }
  return next;
}

} // namespace k2c::emit

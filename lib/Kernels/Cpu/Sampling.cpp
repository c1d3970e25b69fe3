//===- Sampling.cpp - The greedy choice: of blocks of columns, then of a row --------------------===//
//
// A row of logits is long and rows are few, so an item is a block of a row: 32 columns at a time, each lane keeps the
// best that it has seen, and at the end the lanes are compared (SortKeys.h). Of the few ids that blocks leave one item
// takes the best of the row, by the logits that they name.
//
//===----------------------------------------------------------------------===//
#include "Emitters.h"
#include "SortKeys.h"

namespace k2c::emit {

/// What is stored of the best lane: its index, or -1 where no lane has a number.
static Value idOf(KernelBuilder &b, const Best &best) {
  return b.select(b.compare(Compare::Gt, best.key, nanKey), best.index, b.constant(b.i32(), -1));
}

/// The best of [first, last), a vector at a time: body(at, mask) is a vector of candidates from `at` on, of which those
/// outside the mask are none. `mask` is null where all lanes have one; `isRagged`: some may not.
static Value bestId(KernelBuilder &b, Value first, Value last, bool isRagged,
                    llvm::function_ref<Best(Value at, Value mask)> candidates) {
  const int64_t lanes = b.lanes();
  Type vector = b.vec(b.i32(), lanes);
  Value nothing = b.constant(vector, noChoice);
  auto compare = [&](Value at, Value mask, ValueRange best) {
    const Best next = candidates(at, mask);
    Value key = mask ? b.select(mask, next.key, nothing) : next.key;
    const Best found = better(b, {best[0], best[1]}, key, next.index);
    return Values{found.key, found.index};
  };
  Value whole = b.add(first, b.mul(b.div(b.sub(last, first), lanes), lanes));
  Values best = b.loop(first, whole, lanes, {nothing, b.constant(vector, 0)},
                       [&](Value at, ValueRange state) { return compare(at, Value(), state); });
  if (isRagged)
    best = compare(whole, b.firstLanes(lanes, b.sub(last, whole)), best);
  return idOf(b, bestLane(b, {best[0], best[1]}));
}

/// at, at + 1, ... as i32 lanes.
static Value indicesFrom(KernelBuilder &b, Value at) {
  return b.add(b.laneIds(b.i32(), b.lanes()), b.splat(b.truncate(at), b.lanes()));
}

void emitBody(KernelBuilder &b, const BlockArgmaxDesc &d, const TileConfig &) {
  const int64_t blocks = d.blocks(), lanes = b.lanes();
  const bool isRagged = d.block % lanes != 0 || d.logits.width % lanes != 0;
  Value logits = b.argument(0), best = b.argument(1);
  b.items([&](Value item) {
    Value from = b.row(logits, d.logits, b.div(item, blocks));
    Value first = b.mul(b.rem(item, blocks), d.block);
    Value id = bestId(b, first, b.min(b.add(first, d.block), d.logits.width), isRagged, [&](Value at, Value mask) {
      Value values = b.loadFloats(b.at(from, at, DType::F32), DType::F32, lanes, mask);
      return Best{keyOf(b, values), indicesFrom(b, at)};
    });
    b.storeI32(id, best, item);
  });
}

void emitBody(KernelBuilder &b, const GreedySampleDesc &d, const TileConfig &) {
  const int64_t blocks = d.blocks, lanes = b.lanes();
  Type vector = b.vec(b.i32(), lanes);
  Value best = b.argument(0), logits = b.argument(1), samples = b.stepField(abi::step::samples);
  b.items([&](Value row) {
    Value ids = b.at(best, b.mul(row, blocks), DType::I32), from = b.row(logits, d.logits, row);
    Value id = bestId(b, b.constant(0), b.constant(blocks), blocks % lanes != 0, [&](Value at, Value mask) {
      Value named = b.load(vector, b.at(ids, at, DType::I32), DType::I32, mask);
      Value isThere = b.compare(Compare::Ge, named, 0);
      if (mask)
        isThere = b.bitAnd(isThere, mask);
      Value bytes = b.mul(b.extend(named), byteWidth(DType::F32));
      Value values = b.gather(b.vec(b.f32(), lanes), from, bytes, isThere, DType::F32);
      return Best{b.select(isThere, keyOf(b, values), b.constant(vector, noChoice)), named};
    });
    b.storeI32(id, samples, row);
  });
}

} // namespace k2c::emit

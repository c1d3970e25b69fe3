//===- AttentionSplit.cpp - Pieces of sequences, and their merge ---------------------------===//
//
// AttentionSplit.h shows which worker computes what; here a worker finds its part without a table that anyone would
// have to build. Items are numbered (tile of heads, token, partial, part of columns), with room for the most partials
// any token may have. In a step that is split, both ends of a worker's range are scaled from items to keys of all
// tokens and rounded to the nearest end of a cut:
//
//   worker w   [ border(begin), border(end) )     border(end) of worker w is border(begin) of worker w + 1
//
// Because both are one function of one number, no partial is computed twice or left out, whatever the rounding. Where
// a partial ends depends on the query's position alone (C(p) of N3), never on the number of workers, so bits do not
// either. The merge is the online softmax over partials, the first one as the total and the others in ascending order.
//
//===----------------------------------------------------------------------===//
#include "AttentionSplit.h"
#include "Math.h"

namespace k2c::emit {

Value emitRestart(KernelBuilder &b, Value position) {
  Value sixteenth = b.max(b.shr(b.add(position, 16), 4), 1024);
  return b.shl(b.constant(1), b.sub(b.constant(64), b.leadingZeros(b.sub(sixteenth, 1))));
}

Value emitPositionOffset(KernelBuilder &b, int64_t group, Value sequence) {
  Value lengths = b.loadPtr(b.stepField(abi::step::seq_len), b.constant(group));
  Value firstRow = b.extend(b.loadI32(b.stepField(abi::step::seq_begin), sequence));
  return b.sub(b.extend(b.loadI32(lengths, sequence)), firstRow);
}

BlockRange blocksOf(KernelBuilder &b, const Partial &partial, Value blocks, Value position) {
  Value zero = b.constant(0);
  if (!partial.buffer)
    return {zero, blocks};
  Value length = b.div(emitRestart(b, position), softmaxBlock), first = b.mul(partial.index, length);
  return {b.select(partial.isPartial, first, zero),
          b.select(partial.isPartial, b.min(b.add(first, length), blocks), blocks)};
}

Value AttentionSplit::positionOf(Value token) {
  Value sequence = b.extend(b.loadI32(b.stepField(abi::step::row_seq), token));
  return b.add(token, emitPositionOffset(b, shape.group, sequence));
}

/// Keys of the blocks that a token reads; 0 when it is of another form.
Value AttentionSplit::keysOf(Value token) {
  Value keys = b.mul(b.add(b.div(positionOf(token), softmaxBlock), 1), softmaxBlock);
  if (shape.rows == FormFilter::All)
    return keys;
  int64_t form = shape.rows == FormFilter::Expanded ? K2RT_FORM_EXPANDED : K2RT_FORM_ABSORBED;
  Value accepted = b.compare(Compare::Eq, b.loadI32(b.stepField(abi::step::row_form), token), form);
  return b.select(accepted, keys, b.constant(0));
}

/// The partials of a token that is split; 1 for any other.
Value AttentionSplit::piecesOf(Value token) {
  Value position = positionOf(token), partials = b.add(b.div(position, emitRestart(b, position)), 1);
  return b.select(b.compare(Compare::Ge, partials, minSplit), partials, b.constant(1));
}

Value AttentionSplit::partialAt(Value token, Value head, Value index) {
  Value row = b.add(b.mul(b.add(b.mul(token, shape.heads), head), maxPartials), index);
  return b.at(b.argument(shape.firstArgument), b.mul(row, partialStride(shape.valueDim)), DType::F32);
}

/// The item at `place` keys of all tiles, rounded to the nearest border of `cuts` equal cuts of a piece.
Value AttentionSplit::border(Value place, Value keysOfTile, Value cuts) {
  Value tile = b.div(place, keysOfTile), rest = b.rem(place, keysOfTile), count = tokens();
  auto itemAt = [&](Value token, Value piece) {
    Value unit = b.add(b.mul(b.add(b.mul(tile, count), token), maxPartials), piece);
    return b.mul(unit, shape.parts);
  };
  Values init = {b.constant(0), itemAt(count, b.constant(0))};
  return b.loop(b.constant(0), count, 1, init, [&](Value token, ValueRange state) {
    Value keys = keysOf(token), within = b.sub(rest, state[0]);
    Value isHere = b.bitAnd(b.compare(Compare::Ge, within, 0), b.compare(Compare::Lt, within, keys));
    Value isSplit = b.compare(Compare::Gt, piecesOf(token), 1);
    Value length = b.select(isSplit, emitRestart(b, positionOf(token)), b.max(keys, 1));
    Value inside = b.max(within, 0), piece = b.div(inside, length), from = b.mul(piece, length);
    Value size = b.max(b.min(length, b.sub(keys, from)), 1);
    Value cut = b.div(b.add(b.mul(b.mul(b.sub(inside, from), 2), cuts), size), b.mul(size, 2));
    Value item = b.add(itemAt(token, piece), b.mul(cut, b.div(b.constant(shape.parts), cuts)));
    return Values{b.add(state[0], keys), b.select(isHere, item, state[1])};
  })[1];
}

/// The items that this worker's share of the grid stands for: a share of the keys in a step that is split, else the
/// items of whole sequences, which are sixteen times fewer.
AttentionSplit::Range AttentionSplit::ownItems() {
  Value begin = b.workerField(abi::worker::begin), end = b.workerField(abi::worker::end);
  if (most == 0)
    return {begin, end};
  Value count = tokens(), one = b.constant(1);
  auto shareOfKeys = [&] {
    Values sums = b.loop(b.constant(0), count, 1, {b.constant(0), b.constant(0)}, [&](Value token, ValueRange state) {
      return Values{b.add(state[0], keysOf(token)), b.add(state[1], piecesOf(token))};
    });
    Value pieces = b.mul(sums[1], shape.tiles), workers = b.extend(b.workerField(abi::worker::count)), cuts = one;
    // Parts of columns compute the same scores: no more than there are workers, where partials share the work as well.
    for (int64_t parts = 2; parts <= shape.parts; parts *= 2)
      cuts = b.select(b.compare(Compare::Le, b.mul(pieces, parts), workers), b.constant(parts), cuts);
    cuts = b.select(b.compare(Compare::Eq, sums[1], count), b.constant(shape.parts), cuts);
    Value keysOfTile = b.max(sums[0], 1), keys = b.mul(sums[0], shape.tiles);
    Value items = b.mul(count, shape.tiles * maxPartials * shape.parts);
    auto borderOf = [&](Value item) { return border(b.div(b.mul(item, keys), items), keysOfTile, cuts); };
    return Values{borderOf(begin), borderOf(end)};
  };
  auto whole = [&](Value item) { return b.div(b.add(item, maxPartials - 1), maxPartials); };
  Type types[] = {b.i64(), b.i64()};
  Values own = b.choose(b.compare(Compare::Le, count, most), types, shareOfKeys,
                        [&] { return Values{whole(begin), whole(end)}; });
  return {own[0], own[1]};
}

void AttentionSplit::computeItems(llvm::function_ref<Value(const AttentionItem &)> compute) {
  Range own = ownItems();
  Value count = tokens(), pieces = b.constant(1), isApart;
  if (most > 0) {
    isApart = b.compare(Compare::Le, count, most);
    pieces = b.select(isApart, b.constant(maxPartials), pieces);
  }
  b.when(b.compare(Compare::Lt, own.begin, own.end), [&] {
    b.repeat(own.begin, [&](ValueRange state) {
      AttentionItem item;
      item.remaining = b.sub(own.end, state[0]);
      item.part = b.rem(state[0], shape.parts);
      item.parts = b.min(b.sub(b.constant(shape.parts), item.part), item.remaining);
      Value unit = b.div(state[0], shape.parts), task = b.div(unit, pieces);
      item.tile = b.div(task, count);
      item.token = b.rem(task, count);
      Value next;
      auto computed = [&] { return Values{b.add(state[0], compute(item))}; };
      if (most > 0) {
        Value own = piecesOf(item.token);
        item.isApart = isApart;
        item.partial = {this, b.bitAnd(isApart, b.compare(Compare::Gt, own, 1)), b.rem(unit, pieces)};
        next = b.choose(b.compare(Compare::Lt, item.partial.index, own), b.i64(), computed,
                        [&] { return Values{b.add(state[0], item.parts)}; })[0];
      } else {
        next = computed()[0];
      }
      return Values{b.compare(Compare::Lt, next, own.end), next};
    });
  });
}

/// Partial 0 is the total (M, L, O); each other (m, l, o) joins it as M' = max(M, m), L = fma(l, exp(m - M'),
/// L * exp(M - M')), O likewise; O * (1 / L) is the output.
void AttentionSplit::mergeItem(Value token, Value head, Value pieces, Value to, DType type) {
  Value first = partialAt(token, head, b.constant(0));
  Value kept = b.stack(maxPartials * byteWidth(DType::F32)), joined = b.stack(maxPartials * byteWidth(DType::F32));
  Values init = {loadScalar(first, shape.valueDim), loadScalar(first, shape.valueDim + 1)};
  Value sum = b.loop(b.constant(1), pieces, b.constant(1), init, [&](Value index, ValueRange state) {
    Value row = partialAt(token, head, index);
    Value max = loadScalar(row, shape.valueDim), sum = loadScalar(row, shape.valueDim + 1);
    Value next = b.select(b.fcompare(Compare::Gt, state[0], max), state[0], max);
    Value a = emitExp(b, b.fsub(state[0], next)), weight = emitExp(b, b.fsub(max, next));
    b.storeFloats(a, b.at(kept, index, DType::F32), DType::F32);
    b.storeFloats(weight, b.at(joined, index, DType::F32), DType::F32);
    return Values{next, b.fma(sum, weight, b.fmul(state[1], a))};
  })[1];
  Value factor = b.fdiv(b.number(1.0f), sum);
  b.columns(shape.valueDim, [&](const Chunk &chunk) {
    auto scalar = [&](Value from, Value index) {
      return b.splat(b.loadFloats(b.at(from, index, DType::F32), DType::F32, 0), chunk.lanes);
    };
    Value total = b.loadFloats(first, DType::F32, chunk);
    total = b.loop(b.constant(1), pieces, b.constant(1), total, [&](Value index, ValueRange state) {
      Value partial = b.loadFloats(partialAt(token, head, index), DType::F32, chunk);
      return Values{b.fma(partial, scalar(joined, index), b.fmul(state[0], scalar(kept, index)))};
    })[0];
    b.storeFloats(b.fmul(total, b.splat(factor, chunk.lanes)), to, type, chunk);
  });
}

void AttentionSplit::emit(llvm::function_ref<Value(const AttentionItem &)> compute,
                          llvm::function_ref<Value(Value token, Value head)> output, DType type) {
  if (most == 0)
    return computeItems(compute);
  Value isMerge = b.compare(Compare::Ne, b.integerOf(b.argument(shape.firstArgument + 1)), 0);
  auto merge = [&] {
    b.items([&](Value item) {
      Value token = b.div(item, shape.heads), head = b.rem(item, shape.heads), pieces = piecesOf(token);
      Value isSplit = b.bitAnd(b.compare(Compare::Gt, pieces, 1), b.compare(Compare::Gt, keysOf(token), 0));
      b.when(isSplit, [&] { mergeItem(token, head, pieces, output(token, head), type); });
    });
  };
  b.choose(isMerge, merge, [&] { computeItems(compute); });
}

} // namespace k2c::emit

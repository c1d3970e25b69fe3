//===- AttentionBlock.cpp - One tile of lanes x one block of 64 keys ------------------------===//
//
// The inner loops of Attention.h: one tile, with a query row in each lane, meets one block of 64 keys (numerics N3).
//
//   s[t] = scale * sum_k q[k] * key_t[k]                  up to 16 keys have their sums in registers
//   m' = max(m, s[t]), alpha = exp(m - m'), p[t] = exp(s[t] - m'), l = l * alpha + sum p[t]
//   o[c] = o[c] * alpha, then fma(p[t], value_t[c], o[c]) in ascending t, of a pair the odd key first
//
// Keys that every lane sees run without masks; of the others a lane takes its old sum by select, since a product with
// zero would turn an infinite value into NaN. Keys whose rows are a multiple of 4096 bytes apart fall into one cache
// set, so no more than 8 are read side by side. With bf16 (N6), weights and values multiply in pairs of keys: values
// are turned to [pair][column], wide latents 128 columns at a time, which stay in the nearest cache. While scores are
// computed, the rows of the next block are fetched, as many bytes a step as the step reads.
//
//===----------------------------------------------------------------------===//
#include "Attention.h"
#include "Math.h"

namespace k2c::emit {

/// Keys, or value columns, whose accumulators are in registers together.
static int64_t accumulators(const AttentionLayout &layout, InstructionSet instructionSet) {
  return instructionSet == InstructionSet::Avx512 || layout.lanes >= 16 ? columnsTogether : columnsTogether / 2;
}

/// Keys whose rows are a page apart share one cache set: no more of them together than a set has ways.
static int64_t keysTogether(const AttentionLayout &layout, InstructionSet instructionSet, const Pieces &pieces) {
  int64_t together = accumulators(layout, instructionSet);
  for (const Piece &piece : pieces)
    if (piece.stride * byteWidth(piece.type) % 4096 == 0)
      together = std::min<int64_t>(together, 8);
  return together;
}

/// s[t] = scale * sum_k q[k] * key_t[k]. Keys beyond `keys` up to the next group are computed and never read.
void AttentionEmitter::scores(Value tile, const Block &block) {
  Pieces pieces = source.keys(block.slot);
  int64_t group = keysTogether(layout, instructionSet, pieces);
  Value query = inTile(tile, layout.queryOffset()), scale = b.constantFloat(b.vec(b.f32(), layout.lanes), shape.scale);
  b.loop(b.constant(0), block.keys, group, [&](Value firstKey) {
    Values acc(group, b.zeros(layout.lanes));
    int64_t step = this->step(), offset = 0;
    for (const Piece &piece : pieces) {
      Value rows = b.at(piece.pointer, b.mul(firstKey, piece.stride), piece.type);
      Value queries = vectorAt(query, b.constant(offset));
      // Each step fetches as many bytes as it reads, those of the next block's rows in the order they lie in.
      int64_t stepBytes = group * step * byteWidth(piece.type);
      Value fetched;
      if (piece.upcoming)
        fetched = b.at(piece.upcoming, b.mul(firstKey, piece.stride), piece.type);
      // Elements from k * step on: the query's are lanes of a vector, a key's are on all lanes.
      auto multiply = [&](ValueRange sums, Value k, bool half) {
        Value q = loadVector(vectorAt(queries, k));
        if (fetched)
          b.prefetch(b.atBytes(fetched, b.mul(k, stepBytes)), CacheLevel::Second);
        PanelVector lanes{layout.pairs ? b.bitsOf(q) : q, layout.pairs ? DType::BF16 : DType::F32};
        Values next;
        for (auto [t, sum] : llvm::enumerate(sums)) {
          Value address = b.at(rows, b.add(b.mul(k, step), int64_t(t) * piece.stride), piece.type);
          PanelFactor key = loadFactor(b, address, piece.type, lanes.type, layout.lanes, half);
          next.push_back(multiplyAdd(b, instructionSet, key, lanes, sum));
        }
        return next;
      };
      int64_t whole = piece.width / step;
      acc = b.loop(0, whole, 1, acc, [&](Value k, ValueRange sums) { return multiply(sums, k, /*half=*/false); });
      if (piece.width % step != 0)
        acc = multiply(acc, b.constant(whole), /*half=*/true);
      offset += (piece.width + step - 1) / step;
    }
    for (int64_t t = 0; t < group; ++t)
      b.storeFloats(b.fmul(acc[t], scale), scoreAt(b.add(firstKey, t)), DType::F32);
  });
}

/// Columns of the values of a block's keys, those past the last one undefined, to [pair of keys][column].
void AttentionEmitter::transposeValues(const ValuePart &part, Value slot, Value keys) {
  Piece values = source.values(slot);
  int64_t whole = layout.valueDim / columnsTogether * columnsTogether;
  b.loop(b.constant(0), keys, 2, [&](Value key) {
    Value row = b.at(values.pointer, b.mul(key, values.stride), values.type), to = pairAt(key);
    auto turn = [&](Value column, int64_t columns) {
      Value even = b.at(row, column, values.type), odd = b.at(even, values.stride, values.type);
      Value units = interleave(b, even, odd, columnsTogether, columns);
      b.store(units, b.at(to, b.sub(column, part.begin), DType::I32), DType::I32);
    };
    b.loop(part.begin, b.min(part.end, whole), columnsTogether, [&](Value column) { turn(column, columnsTogether); });
    if (whole < layout.valueDim)
      b.when(b.compare(Compare::Gt, part.end, whole), [&] { turn(b.constant(whole), layout.valueDim - whole); });
  });
}

/// body(key, seen, state) for each key of the block, or the first key of each pair (`step` 2), in ascending order.
Values AttentionEmitter::forKeys(Value tile, const Block &block, int64_t step, ValueRange init,
                                 llvm::function_ref<Values(Value key, const Seen &seen, ValueRange state)> body) {
  Value all = step == 1 ? block.all : b.mul(b.div(block.all, step), step);
  Values state =
      b.loop(b.constant(0), all, step, init, [&](Value key, ValueRange carried) { return body(key, Seen(), carried); });
  return b.loop(all, block.keys, step, state, [&](Value key, ValueRange carried) {
    Value positions = loadIntegers(tile, AttentionLayout::Position), position = b.add(block.start, key);
    return body(key, {sees(positions, position), step == 2 ? sees(positions, b.add(position, 1)) : Value()}, carried);
  });
}

/// Scores -> weights p[t] = exp(s[t] - m') in place, pairs of them in the place of a pair's first score, the new m and
/// l; returns alpha = exp(m - m').
Value AttentionEmitter::softmax(Value tile, const Block &block) {
  Value max = loadRowState(tile, AttentionLayout::Max);
  Values init = {max};
  if (shape.maxLogit)
    init.push_back(loadRowState(tile, AttentionLayout::Largest));
  Values found = forKeys(tile, block, 1, init, [&](Value key, const Seen &seen, ValueRange state) {
    Value score = loadVector(scoreAt(key));
    Values next = {where(seen.key, larger(state[0], score), state[0])};
    if (shape.maxLogit)
      next.push_back(where(seen.key, larger(score, state[1]), state[1]));
    return next;
  });
  if (shape.maxLogit)
    storeRowState(found[1], tile, AttentionLayout::Largest);
  Value next = found[0], alpha = emitExp(b, b.fsub(max, next));
  Value sum = b.fmul(loadRowState(tile, AttentionLayout::Sum), alpha);
  auto weightOf = [&](Value key) { return emitExp(b, b.fsub(loadVector(scoreAt(key)), next)); };
  sum = forKeys(tile, block, step(), sum, [&](Value key, const Seen &seen, ValueRange state) {
    if (!layout.pairs) {
      Value p = weightOf(key);
      b.storeFloats(p, scoreAt(key), DType::F32);
      return Values{where(seen.key, b.fadd(state[0], p), state[0])};
    }
    Value even = weightOf(key), odd = where(seen.odd, weightOf(b.add(key, 1)), b.zeros(layout.lanes));
    Value pairs = roundToPairs(b, even, odd);
    b.store(pairs, scoreAt(key), DType::F32);
    PanelFactor ones;
    ones.pair = pairOfOnes(b, layout.lanes);
    return Values{where(seen.key, multiplyAdd(b, instructionSet, ones, {pairs, DType::BF16}, state[0]), state[0])};
  })[0];
  storeRowState(next, tile, AttentionLayout::Max);
  storeRowState(sum, tile, AttentionLayout::Sum);
  return alpha;
}

/// o[c] = o[c] * alpha, then fma(p[t], value_t[c], o[c]) in ascending t, of a pair the odd key first, for `count`
/// columns from `first` on. The first of the turned columns is `turned`.
void AttentionEmitter::accumulateColumns(Value tile, const Block &block, Value alpha, const Piece &values, Value first,
                                         int64_t count, Value turned) {
  Value outputs = inTile(tile, layout.partialOffset());
  auto output = [&](int64_t c) { return vectorAt(outputs, b.add(first, c)); };
  Values acc;
  for (int64_t c = 0; c < count; ++c)
    acc.push_back(b.fmul(loadVector(output(c)), alpha));
  acc = forKeys(tile, block, step(), acc, [&](Value key, const Seen &seen, ValueRange sums) {
    Value p = loadVector(scoreAt(key));
    Value row = layout.pairs ? b.at(pairAt(key), b.sub(first, turned), DType::I32)
                             : b.at(values.pointer, b.add(b.mul(key, values.stride), first), values.type);
    Values next;
    for (auto [c, sum] : llvm::enumerate(sums)) {
      if (layout.pairs) {
        Value pair = b.splat(b.load(b.i32(), b.at(row, c, DType::I32), DType::I32), layout.lanes);
        next.push_back(accumulatePair(seen, pair, b.bitsOf(p), sum));
      } else {
        Value value = b.splat(b.loadFloats(b.at(row, c, values.type), values.type, 0), layout.lanes);
        next.push_back(where(seen.key, b.fma(p, value, sum), sum));
      }
    }
    return next;
  });
  for (int64_t c = 0; c < count; ++c)
    b.storeFloats(acc[c], output(c), DType::F32);
}

/// A pair of values on the sum of each lane. The odd value of a lane that does not see it is zero, as its weight is.
Value AttentionEmitter::accumulatePair(const Seen &seen, Value values, Value weights, Value sum) {
  auto weighed = [&](Value pair) {
    PanelFactor factor;
    factor.pair = pair;
    return multiplyAdd(b, instructionSet, factor, {weights, DType::BF16}, sum);
  };
  if (!seen.key)
    return weighed(values);
  return b.select(seen.odd, weighed(values), b.select(seen.key, weighed(evenOnly(b, values)), sum));
}

/// The values of a wide row are turned a part at a time, which stays in the nearest cache; for each tile anew, but only
/// latents are so wide, and one token's heads are one tile.
void AttentionEmitter::accumulateValues(const Run &run, Value tile, const Block &block, Value alpha) {
  Piece values = source.values(block.slot);
  int64_t group = accumulators(layout, instructionSet), whole = layout.valueDim / group * group;
  auto weigh = [&](const ValuePart &part) {
    b.loop(part.begin, b.min(part.end, whole), group,
           [&](Value first) { accumulateColumns(tile, block, alpha, values, first, group, part.begin); });
    if (whole < layout.valueDim)
      b.when(b.compare(Compare::Gt, part.end, whole), [&] {
        accumulateColumns(tile, block, alpha, values, b.constant(whole), layout.valueDim - whole, part.begin);
      });
  };
  if (!layout.transposesInParts())
    return weigh(run.part);
  b.loop(run.part.begin, run.part.end, AttentionLayout::transposedColumns, [&](Value begin) {
    ValuePart part{begin, b.min(b.add(begin, AttentionLayout::transposedColumns), run.part.end)};
    transposeValues(part, block.slot, block.keys);
    weigh(part);
  });
}

} // namespace k2c::emit

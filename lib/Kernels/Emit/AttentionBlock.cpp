//===- AttentionBlock.cpp - One tile of lanes x one block of 64 keys ------------------------===//
#include "Attention.h"
#include "Math.h"
#include "Vocabulary.h"

namespace k2c::emit {

/// Keys, or value columns, whose accumulators are in registers together: each takes one register and one broadcast
/// load.
static int64_t accumulators(const AttentionLayout &layout, Vocabulary vocabulary) {
  return vocabulary == Vocabulary::Avx512 || layout.lanes >= 16 ? valuePartColumns : valuePartColumns / 2;
}

/// Keys whose rows are a page apart share one cache set: no more of them together than a set has ways.
static int64_t keysTogether(const AttentionLayout &layout, Vocabulary vocabulary, const Pieces &pieces) {
  int64_t together = accumulators(layout, vocabulary);
  for (const Piece &piece : pieces)
    if (piece.stride * byteWidth(piece.type) % 4096 == 0)
      together = std::min<int64_t>(together, 8);
  return together;
}

/// s[t] = scale * sum_k q[k] * key_t[k]. Keys beyond `keys` up to the next group are computed and never read.
void AttentionEmitter::scores(Value tile, Value slot, Value keys) {
  Pieces pieces = source.keys(slot);
  int64_t group = keysTogether(layout, vocabulary, pieces);
  Value query = inTile(tile, layout.queryOffset()), scale = b.constantFloat(b.vec(b.f32(), layout.lanes), shape.scale);
  b.loop(b.constant(0), keys, group, [&](Value firstKey) {
    Values acc(group, b.zeros(layout.lanes));
    int64_t step = pairs ? 2 : 1, offset = 0;
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
        PanelVector lanes{pairs ? b.bitsOf(q) : q, pairs ? DType::BF16 : DType::F32};
        Values next;
        for (auto [t, sum] : llvm::enumerate(sums)) {
          Value address = b.at(rows, b.add(b.mul(k, step), int64_t(t) * piece.stride), piece.type);
          PanelFactor key = loadFactor(b, address, piece.type, lanes.type, layout.lanes, half);
          next.push_back(multiplyAdd(b, vocabulary, key, lanes, sum));
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
      b.storeFloats(b.fmul(acc[t], scale), vectorAt(b.scratch(layout.scoresOffset()), b.add(firstKey, t)), DType::F32);
  });
}

/// `changed` in the lanes that see the key, `kept` in the others.
Value AttentionEmitter::where(Value seen, Value changed, Value kept) {
  return seen ? b.select(seen, changed, kept) : changed;
}

/// Scores -> p[t] = exp(s[t] - m') in place, the new m and l; returns alpha = exp(m - m').
Value AttentionEmitter::softmax(Value tile, Value start, Value keys, Sight sight) {
  auto seenAt = seenBy(tile, start, sight);
  Value scores = b.scratch(layout.scoresOffset());
  Value max = loadSingle(tile, AttentionLayout::Max);
  Values init = {max};
  if (shape.maxLogit)
    init.push_back(loadSingle(tile, AttentionLayout::Largest));
  Values found = b.loop(b.constant(0), keys, 1, init, [&](Value t, ValueRange state) {
    Value score = loadVector(vectorAt(scores, t)), seen = seenAt(t);
    Values next = {where(seen, larger(state[0], score), state[0])};
    if (shape.maxLogit)
      next.push_back(where(seen, larger(score, state[1]), state[1]));
    return next;
  });
  if (shape.maxLogit)
    storeSingle(found[1], tile, AttentionLayout::Largest);
  Value next = found[0], alpha = emitExp(b, b.fsub(max, next));
  Value sum = b.fmul(loadSingle(tile, AttentionLayout::Sum), alpha);
  sum = b.loop(b.constant(0), keys, 1, sum, [&](Value t, ValueRange state) {
    Value address = vectorAt(scores, t), p = emitExp(b, b.fsub(loadVector(address), next));
    b.storeFloats(p, address, DType::F32);
    return Values{where(seenAt(t), b.fadd(state[0], p), state[0])};
  })[0];
  storeSingle(next, tile, AttentionLayout::Max);
  storeSingle(sum, tile, AttentionLayout::Sum);
  return alpha;
}

/// o[c] = o[c] * alpha, then fma(p[t], value_t[c], o[c]) in ascending t.
void AttentionEmitter::weigh(const Run &run, Value tile, Value slot, Value start, Value keys, Value alpha,
                             Sight sight) {
  auto seenAt = seenBy(tile, start, sight);
  Value weights = b.scratch(layout.scoresOffset());
  Value outputs = inTile(tile, layout.partialOffset());
  Piece values = source.values(slot);
  // Two columns of bf16 come with one load; the halves are cut out in registers, on pipes that FMAs leave free.
  Value pair;
  auto columnOnLanes = [&](Value row, int64_t c, int64_t count) {
    if (values.type != DType::BF16 || (c % 2 == 0 && c + 1 == count))
      return b.splat(b.loadFloats(b.at(row, c, values.type), values.type, 0), layout.lanes);
    if (c % 2 == 0)
      pair = b.splat(b.load(b.i32(), b.at(row, c, values.type), values.type), layout.lanes);
    return b.fromBits(c % 2 == 0 ? b.shl(pair, 16) : b.bitAnd(pair, b.constant(pair.getType(), int32_t(0xffff0000))));
  };
  auto columns = [&](Value first, int64_t count) {
    Values acc;
    for (int64_t c = 0; c < count; ++c)
      acc.push_back(b.fmul(loadVector(vectorAt(outputs, b.add(first, c))), alpha));
    acc = b.loop(b.constant(0), keys, 1, acc, [&](Value t, ValueRange sums) {
      Value p = loadVector(vectorAt(weights, t)), seen = seenAt(t);
      Value row = b.at(values.pointer, b.add(b.mul(t, values.stride), first), values.type);
      Values next;
      for (auto [c, sum] : llvm::enumerate(sums))
        next.push_back(where(seen, b.fma(p, columnOnLanes(row, c, count), sum), sum));
      return next;
    });
    for (int64_t c = 0; c < count; ++c)
      b.storeFloats(acc[c], vectorAt(outputs, b.add(first, c)), DType::F32);
  };
  // A select keeps the sum from before its FMA in a register, too.
  int64_t group = sight == Sight::All ? accumulators(layout, vocabulary) : accumulators(layout, vocabulary) / 2;
  int64_t whole = layout.valueDim / group * group;
  if (whole > 0)
    b.loop(run.part.begin, b.min(run.part.end, whole), group, [&](Value first) { columns(first, group); });
  if (whole < layout.valueDim)
    b.when(b.compare(Compare::Gt, run.part.end, whole), [&] { columns(b.constant(whole), layout.valueDim - whole); });
}

} // namespace k2c::emit

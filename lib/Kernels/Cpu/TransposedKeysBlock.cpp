//===- TransposedKeysBlock.cpp - One tile of rows x one block of 64 keys --===//
//
// The inner loops of TransposedKeys.h: one block of 64 keys, transposed once, meets the tiles of rows that read it
// (numerics N3). A load brings a piece of one key, but scores want one element of many keys: eight keys at a time are
// transposed by two levels of shuffles within 128-bit lanes, which is why key i + 4 is put beside key i before:
//
//   key 0: a0 a1 a2 a3 | key 4: e0 e1 e2 e3        ->    a0 b0 c0 d0 | e0 f0 g0 h0       and so on
//
// Values need no turn in f32, since columns are the lanes; with bf16 they are interleaved by pairs of keys (N6).
// Turning is also when the next block is fetched. Weighing runs over the keys that the first row of a tile sees for
// all rows together, then row by row over the rest: positions ascend in a tile, so later rows see at least as many. A
// key that a row does not see is never multiplied in. The sum of the weights is one more column of the first group.
//
//===----------------------------------------------------------------------===//
#include "Math.h"
#include "TransposedKeys.h"

namespace k2c::emit {

/// Keys that are turned together, and how many units of each come with one load: 256-bit vectors of two such pieces,
/// which turn within their halves, in instructions that have two pipes.
constexpr int64_t turnedKeys = 8, pieceUnits = 4;

/// Pieces of keys i and i + 4 in vector i -> unit j of all keys in vector j.
static Values turn(KernelBuilder &b, const Values &keys) {
  constexpr int64_t low32[] = {0, 8, 1, 9, 4, 12, 5, 13}, high32[] = {2, 10, 3, 11, 6, 14, 7, 15};
  constexpr int64_t low64[] = {0, 1, 8, 9, 4, 5, 12, 13}, high64[] = {2, 3, 10, 11, 6, 7, 14, 15};
  Value first = b.shuffle(keys[0], keys[1], low32), second = b.shuffle(keys[2], keys[3], low32);
  Value third = b.shuffle(keys[0], keys[1], high32), fourth = b.shuffle(keys[2], keys[3], high32);
  return {b.shuffle(first, second, low64), b.shuffle(first, second, high64), b.shuffle(third, fourth, low64),
          b.shuffle(third, fourth, high64)};
}

/// Fetches the page that is read after the block at once. Other blocks fetch it key by key as they compute; the last
/// one of a run has few keys to do so with.
void TransposedKeysEmitter::fetch(const Block &block) {
  Pieces pieces = source.keys(block.slot);
  pieces.push_back(source.values(block.slot));
  for (const Piece &piece : pieces)
    if (piece.upcoming)
      b.loop(0, softmaxBlock, 1, [&](Value key) {
        Value row = b.at(headsOn(piece.upcoming, piece, block.upcomingHeads), b.mul(key, piece.stride), piece.type);
        for (int64_t byte = 0; byte < piece.width * byteWidth(piece.type); byte += cacheLine)
          b.prefetch(b.atBytes(row, b.constant(byte)), CacheLevel::Second);
      });
}

/// Keys of a block to [unit][64]. Keys beyond the last up to the next whole vector are turned and never read.
void TransposedKeysEmitter::transposeKeys(const Block &block) {
  int64_t step = this->step(), lineElements = cacheLine / unitBytes * step, offset = 0;
  for (const Piece &piece : source.keys(block.slot)) {
    Value turned = b.scratch(layout.keysOffset() + offset * TransposedKeysLayout::blockBytes);
    // `width` elements of the keys, from element `first` on: a line of cache, or less at their end.
    auto transposeLine = [&](Value firstKey, Value first, int64_t width) {
      Value element = b.add(b.mul(firstKey, piece.stride), first);
      auto keyFrom = [&](Value pointer, int64_t key, int64_t at) {
        return b.at(b.at(pointer, element, piece.type), key * piece.stride + at, piece.type);
      };
      for (int64_t key = 0; piece.upcoming && key < turnedKeys; ++key)
        b.prefetch(keyFrom(headsOn(piece.upcoming, piece, block.upcomingHeads), key, 0), CacheLevel::Second);
      for (int64_t at = 0; at < width; at += pieceUnits * step) {
        int64_t elements = std::min(width - at, pieceUnits * step), units = (elements + step - 1) / step;
        auto load = [&](int64_t key) {
          return loadUnits(b, keyFrom(piece.pointer, key, at), piece.type, layout.pairs, pieceUnits, elements);
        };
        Values keys;
        for (int64_t key = 0; key < turnedKeys / 2; ++key)
          keys.push_back(b.shuffle(load(key), load(key + turnedKeys / 2), {0, 1, 2, 3, 4, 5, 6, 7}));
        Value to = b.at(turned, b.add(b.mul(first, softmaxBlock / step), firstKey), DType::F32);
        Values turnedUnits = turn(b, keys);
        for (int64_t unit = 0; unit < units; ++unit)
          b.store(turnedUnits[unit], b.at(to, (at / step + unit) * softmaxBlock, DType::F32), DType::F32);
      }
    };
    int64_t whole = piece.width / lineElements * lineElements;
    b.loop(b.constant(0), block.count, turnedKeys, [&](Value firstKey) {
      b.loop(0, whole, lineElements, [&](Value first) { transposeLine(firstKey, first, lineElements); });
      if (whole < piece.width)
        transposeLine(firstKey, b.constant(whole), piece.width - whole);
    });
    offset += (piece.width + step - 1) / step;
  }
}

/// Values of a block's keys, those past the last one undefined, to [pair of keys][column].
void TransposedKeysEmitter::transposeValues(const Block &block) {
  Piece values = source.values(block.slot);
  Value upcoming = values.upcoming ? headsOn(values.upcoming, values, block.upcomingHeads) : Value();
  b.loop(b.constant(0), block.count, 2, [&](Value key) {
    Value row = b.mul(key, values.stride), to = valuesAt(key);
    for (int64_t column = 0; column < layout.valueDim; column += layout.lanes) {
      auto elementOf = [&](Value pointer, int64_t odd) {
        return b.at(b.at(pointer, row, values.type), odd * values.stride + column, values.type);
      };
      for (int64_t odd = 0; upcoming && odd < 2 && column * byteWidth(values.type) % cacheLine == 0; ++odd)
        b.prefetch(elementOf(upcoming, odd), CacheLevel::Second);
      Value units = interleave(b, elementOf(values.pointer, 0), elementOf(values.pointer, 1), layout.lanes,
                               std::min(layout.valueDim - column, layout.lanes));
      b.store(units, b.at(to, column, DType::I32), DType::I32);
    }
  });
}

void TransposedKeysEmitter::emitBlock(const Tile &at, const Block &block, Value keys, int64_t rows) {
  scores(at.state, keys, rows);
  Values seen;
  for (int64_t row = 0; row < rows; ++row) {
    Value count = b.sub(b.add(positionOf(at.state, b.constant(row)), 1), block.start);
    seen.push_back(b.max(b.min(count, softmaxBlock), 0));
  }
  Value alpha = softmax(at.state, seen, keys);
  weigh(at, seen, alpha, block);
}

/// s[r][t] = scale * sum_k q[r][k] * key[k][t].
void TransposedKeysEmitter::scores(Value state, Value keys, int64_t rows) {
  int64_t lanes = layout.lanes, vectors = tile.nrVectors;
  Value scale = b.constantFloat(b.vec(b.f32(), lanes), shape.scale);
  b.loop(b.constant(0), keys, vectors * lanes, [&](Value firstKey) {
    Value block = b.at(b.scratch(layout.keysOffset()), firstKey, DType::F32);
    Values acc =
        b.loop(0, layout.keyUnits, 1, Values(rows * vectors, b.zeros(lanes)), [&](Value unit, ValueRange sums) {
          llvm::SmallVector<PanelVector> unitKeys;
          Value from = b.atBytes(block, b.mul(unit, TransposedKeysLayout::blockBytes));
          for (int64_t v = 0; v < vectors; ++v)
            unitKeys.push_back(loadPanelVector(b, b.at(from, v * lanes, DType::F32), unitType(), lanes));
          Values next(sums);
          for (int64_t row = 0; row < rows; ++row) {
            Value query = b.at(b.atBytes(state, b.constant(row * layout.queryBytes())), unit, DType::F32);
            PanelFactor factor = loadFactor(b, query, unitType(), unitType(), lanes, /*half=*/false);
            for (int64_t v = 0; v < vectors; ++v)
              next[row * vectors + v] =
                  multiplyAdd(b, tile.instructionSet, factor, unitKeys[v], next[row * vectors + v]);
          }
          return next;
        });
    for (int64_t i = 0; i < rows * vectors; ++i)
      b.storeFloats(b.fmul(acc[i], scale), scoreAt(i / vectors, b.add(firstKey, i % vectors * lanes)), DType::F32);
  });
}

/// Scores -> p[r][t] = exp(s[r][t] - m') in place and the new m; returns alpha = exp(m - m'), a row in each lane.
/// Pairs: 0 for a key that the row does not see.
Value TransposedKeysEmitter::softmax(Value state, const Values &seen, Value keys) {
  int64_t lanes = layout.lanes, rows = seen.size();
  auto seenFrom = [&](int64_t row, Value key) { return b.firstLanes(lanes, b.sub(seen[row], key)); };
  Values largest = b.loop(b.constant(0), keys, lanes, Values(rows, minusInfinity()), [&](Value key, ValueRange found) {
    Values next;
    for (int64_t row = 0; row < rows; ++row) {
      Value scores = b.loadFloats(scoreAt(row, key), DType::F32, lanes);
      next.push_back(b.select(seenFrom(row, key), larger(found[row], scores), found[row]));
    }
    return next;
  });
  Value found = minusInfinity();
  for (int64_t row = 0; row < rows; ++row) {
    Value max = largest[row];
    for (int64_t distance = lanes / 2; distance > 0; distance /= 2)
      max = larger(max, b.rotate(max, distance));
    found = b.select(b.laneMask(lanes, row, row + 1), max, found);
  }
  if (shape.maxLogit)
    storeRowState(larger(found, loadRowState(state, TransposedKeysLayout::Largest)), state,
                  TransposedKeysLayout::Largest);
  Value max = loadRowState(state, TransposedKeysLayout::Max), next = larger(max, found);
  storeRowState(next, state, TransposedKeysLayout::Max);
  Values maxima;
  for (int64_t row = 0; row < rows; ++row)
    maxima.push_back(b.splat(b.lane(next, row), lanes));
  b.loop(b.constant(0), keys, lanes, [&](Value key) {
    for (int64_t row = 0; row < rows; ++row) {
      Value p = emitExp(b, b.fsub(b.loadFloats(scoreAt(row, key), DType::F32, lanes), maxima[row]));
      if (layout.pairs)
        p = b.select(seenFrom(row, key), p, b.zeros(lanes));
      b.storeFloats(p, weightAt(row, key), unitType());
    }
  });
  return emitExp(b, b.fsub(max, next));
}

void TransposedKeysEmitter::weigh(const Tile &at, const Values &seen, Value alpha, const Block &block) {
  Value state = at.state;
  Piece values = source.values(block.slot);
  // The first tile of a block fetches the next page's values for all; of pairs, transposeValues has done so.
  if (values.upcoming && !layout.pairs)
    values.upcoming = b.select(b.compare(Compare::Eq, at.firstRow, 0),
                               headsOn(values.upcoming, values, block.upcomingHeads), values.pointer);
  int64_t group = tile.nrVectors * layout.lanes, whole = layout.valueDim / group, rest = layout.valueDim % group;
  int64_t restVectors = (rest + layout.lanes - 1) / layout.lanes;
  auto wholeColumns = [&](Value first, bool sums) {
    accumulateColumns(state, seen, alpha, values, {first, tile.nrVectors, group, sums});
  };
  if (whole > 0)
    wholeColumns(b.constant(0), /*sums=*/true);
  if (whole > 1)
    b.loop(group, whole * group, group, [&](Value first) { wholeColumns(first, /*sums=*/false); });
  if (rest > 0)
    accumulateColumns(state, seen, alpha, values, {b.constant(whole * group), restVectors, rest, whole == 0});
}

/// Values of key t, a vector of them; `fetches`: those of the next block's key as well.
Value TransposedKeysEmitter::loadColumns(const Piece &values, Value t, const Columns &columns, int64_t v,
                                         bool fetches) {
  int64_t lanes = layout.lanes, width = std::min(columns.width - v * lanes, lanes);
  Value element = b.add(b.mul(t, values.stride), b.add(columns.first, v * lanes));
  if (values.upcoming && fetches && v * lanes * byteWidth(values.type) % cacheLine == 0)
    b.prefetch(b.at(values.upcoming, element, values.type), CacheLevel::Second);
  Value mask = width < lanes ? b.laneMask(lanes, 0, width) : Value();
  return b.loadFloats(b.at(values.pointer, element, values.type), values.type, lanes, mask);
}

/// o[r][c] = o[r][c] * alpha[r], then fma(p[r][t], value[t][c], o[r][c]) in ascending t, of a pair the
/// odd key first; the sum of weights likewise.
void TransposedKeysEmitter::accumulateColumns(Value state, const Values &seen, Value alpha, const Piece &values,
                                              const Columns &columns) {
  int64_t lanes = layout.lanes, rows = seen.size(), perRow = columns.vectors + (columns.sums ? 1 : 0);
  auto onAll = [&](Value vector, int64_t row) { return b.splat(b.lane(vector, row), lanes); };
  auto column = [&](int64_t v) { return b.add(columns.first, v * lanes); };
  auto output = [&](int64_t row, int64_t v) { return b.at(partialRow(state, b.constant(row)), column(v), DType::F32); };
  Value sums = columns.sums ? b.fmul(loadRowState(state, TransposedKeysLayout::Sum), alpha) : Value();
  Values acc;
  for (int64_t row = 0; row < rows; ++row) {
    Value factor = onAll(alpha, row);
    for (int64_t v = 0; v < columns.vectors; ++v)
      acc.push_back(b.fmul(b.loadFloats(output(row, v), DType::F32, lanes), factor));
    if (columns.sums)
      acc.push_back(onAll(sums, row));
  }
  // Key t, or the pair from t on, of rows [firstRow, ...), whose accumulators are `carried`. `end`: the row's keys,
  // when the pair may go beyond them.
  auto accumulateKey = [&](Value t, ValueRange carried, int64_t firstRow, Value end) {
    Values next(carried);
    llvm::SmallVector<PanelFactor> weights;
    for (size_t i = 0; i * perRow < next.size(); ++i)
      weights.push_back(
          loadFactor(b, weightAt(firstRow + int64_t(i), t), unitType(), unitType(), lanes, /*half=*/false));
    for (int64_t v = 0; v < columns.vectors; ++v) {
      Value value = layout.pairs ? b.load(b.vec(b.i32(), lanes), b.at(valuesAt(t), column(v), DType::I32), DType::I32)
                                 : loadColumns(values, t, columns, v, firstRow == 0);
      if (layout.pairs && end)
        value = b.select(b.compare(Compare::Lt, b.add(t, 1), end), value, evenOnly(b, value));
      for (size_t i = 0; i < weights.size(); ++i) {
        Value &sum = next[i * perRow + v];
        sum = multiplyAdd(b, tile.instructionSet, weights[i], {value, unitType()}, sum);
      }
    }
    for (size_t i = 0; columns.sums && i < weights.size(); ++i) {
      Value &sum = next[i * perRow + columns.vectors];
      sum = layout.pairs ? multiplyAdd(b, tile.instructionSet, weights[i], {pairOfOnes(b, lanes), DType::BF16}, sum)
                         : b.fadd(sum, weights[i].first);
    }
    return next;
  };
  Value together = b.mul(b.div(seen[0], step()), step());
  acc = b.loop(b.constant(0), together, step(), acc,
               [&](Value t, ValueRange carried) { return accumulateKey(t, carried, 0, Value()); });
  for (int64_t row = layout.pairs ? 0 : 1; row < rows; ++row) {
    auto own = llvm::MutableArrayRef<Value>(acc).slice(row * perRow, perRow);
    llvm::copy(b.loop(together, seen[row], step(), ValueRange(own),
                      [&](Value t, ValueRange carried) { return accumulateKey(t, carried, row, seen[row]); }),
               own.begin());
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t v = 0; v < columns.vectors; ++v)
      b.storeFloats(acc[row * perRow + v], output(row, v), DType::F32);
    if (columns.sums)
      sums = b.select(b.laneMask(lanes, row, row + 1), acc[row * perRow + columns.vectors], sums);
  }
  if (columns.sums)
    storeRowState(sums, state, TransposedKeysLayout::Sum);
}

} // namespace k2c::emit

//===- TransposedKeys.h - Online softmax with keys in lanes ---------------===//
//
// The structure of grouped-query attention (numerics N3), where few query rows, pairs of (token, head), may share keys.
// Keys fill the lanes of scores, columns of values those of outputs; elements of queries and weights are broadcast. A
// block of keys is turned once for all rows that share it:
//
//   for each run of rows of one sequence:            (of one segment form)
//     for each block of 64 keys = one page:          keys turned to [unit][64] in scratch; pairs: values to [pair][c]
//       for each tile of `mr` rows:
//         s[r][t] = sum_k q[r][k] * key[k][t]        mr x nrVectors accumulators of keys
//         m' = max, alpha = exp(m - m'), p[r][t] = exp(s[r][t] - m')
//         o[r][c] = fma(p[r][t], value[t][c], o[r][c]), l[r] likewise with 1: one chain each, in ascending
//         t, of a pair the odd key first
//   O * (1 / L) goes to the output rows
//
// Keys that the first row of a tile sees are weighed for all its rows together; those that only later rows see, row by
// row: what a row does not see takes no part in it, not even as a product with zero.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_KERNELS_CPU_TRANSPOSEDKEYS_H
#define K2C_LIB_KERNELS_CPU_TRANSPOSEDKEYS_H

#include "Attention.h"

namespace k2c::emit {

/// Shapes, and where the state lies in scratch. Rows of queries, values and outputs are padded to whole vectors.
/// `pairs`: queries, keys, weights and values are bf16 and multiply in pairs (N6).
struct TransposedKeysLayout {
  int64_t lanes, mr, keyUnits, valueDim, tiles;
  bool pairs;
  int64_t vectorBytes() const { return lanes * byteWidth(DType::F32); }
  int64_t paddedBytes(int64_t width) const { return (width + lanes - 1) / lanes * vectorBytes(); }
  int64_t queryBytes() const { return paddedBytes(keyUnits); }
  int64_t outputBytes() const { return paddedBytes(valueDim); }
  /// Of one tile: rows of queries, of o, of O; then vectors with a row in each lane.
  enum RowState : int64_t { Max, Sum, TotalMax, TotalSum, Largest, Position, rowStates };
  int64_t partialOffset() const { return mr * queryBytes(); }
  int64_t totalOffset() const { return partialOffset() + mr * outputBytes(); }
  int64_t rowStateOffset(RowState which) const { return totalOffset() + mr * outputBytes() + which * vectorBytes(); }
  int64_t tileBytes() const { return rowStateOffset(rowStates); }
  /// Of all tiles together: the turned keys of a block, its turned values, the scores of a tile, then its weights.
  static constexpr int64_t blockBytes = softmaxBlock * unitBytes;
  int64_t keysOffset() const { return tiles * tileBytes(); }
  int64_t valuesOffset() const { return keysOffset() + keyUnits * blockBytes; }
  int64_t scoresOffset() const { return valuesOffset() + (pairs ? softmaxBlock / 2 * outputBytes() : 0); }
  int64_t bytes() const { return scoresOffset() + mr * blockBytes; }
};

/// Of an item's tokens x `heads` heads.
TransposedKeysLayout transposedKeysLayout(const TileConfig &tile, int64_t heads, int64_t keyDim, int64_t valueDim,
                                          bool pairs);

class TransposedKeysEmitter {
public:
  /// `layer`: the ordinal of the capture, or null.
  TransposedKeysEmitter(KernelBuilder &b, const AttentionShape &shape, const TransposedKeysLayout &layout,
                        AttentionSource &source, DType output, const TileConfig &tile, Value layer)
      : b(b), shape(shape), layout(layout), source(source), output(output), tile(tile), layer(layer) {}

  /// Heads [firstHead, firstHead + heads) of those of `tokens`, at most `tile.rowsPerItem`, that `filter` accepts: one
  /// partial of one token, or the whole sequences.
  void emitItem(TokenRange tokens, Value firstHead, Value heads, FormFilter filter, const Partial &partial);

private:
  /// Rows of one sequence; `tileRows`: of each tile but the last. Behind the run's pages, the first page of sequence
  /// `nextSequence` is read, `nextHeads` heads of the cache further on.
  struct Run {
    Value firstToken, tokens, firstHead, heads, sequence;
    Value nextSequence = nullptr, nextHeads = nullptr;
    Value rows = nullptr, tiles = nullptr, tileRows = nullptr;
    Partial partial = {};
    Value positionOffset = nullptr; ///< of a row's position in the cache group
    Value firstKey = nullptr;       ///< of the first block
  };
  /// A block of keys, `count` of them seen by the last row, and where the page begins that is read after it.
  struct Block {
    Value slot, start, count;
    Value upcoming = nullptr, upcomingHeads = nullptr;
  };
  /// One tile: where its state is, its first row in the run, how many rows it has.
  struct Tile {
    Value state, firstRow, rows;
  };
  /// Columns of values: whole vectors, or the last ones.
  struct Columns {
    Value first;
    int64_t vectors, width;
    bool sums; ///< the sum of the weights is one more column
  };
  void emitRun(Run run);
  Tile tileAt(const Run &run, Value index);
  Value tokenOf(const Run &run, const Tile &at, Value row) {
    return b.add(run.firstToken, b.div(b.add(at.firstRow, row), run.heads));
  }
  Value headOf(const Run &run, const Tile &at, Value row) {
    return b.add(run.firstHead, b.rem(b.add(at.firstRow, row), run.heads));
  }
  void startTile(const Run &run, const Tile &at);
  void packQuery(Value to, const Pieces &query);
  void restart(const Run &run, const Tile &at, Value start);
  void closePartial(const Tile &at, Value row, Value merges);
  void finishTile(const Run &run, const Tile &at);
  void storePartial(const Run &run, const Tile &at);

  // One block of keys (TransposedKeysBlock.cpp).
  void fetch(const Block &block);
  void transposeKeys(const Block &block);
  void transposeValues(const Block &block);
  void emitBlock(const Tile &at, const Block &block, Value keys, int64_t rows);
  void scores(Value state, Value keys, int64_t rows);
  Value softmax(Value state, const Values &seen, Value keys);
  void weigh(const Tile &at, const Values &seen, Value alpha, const Block &block);
  Value loadColumns(const Piece &values, Value t, const Columns &columns, int64_t v, bool fetches);
  void accumulateColumns(Value state, const Values &seen, Value alpha, const Piece &values, const Columns &columns);
  /// The element that many heads further on.
  Value headsOn(Value pointer, const Piece &piece, Value heads) {
    return b.at(pointer, b.mul(heads, piece.width), piece.type);
  }

  Value rowOf(Value state, int64_t offset, int64_t rowBytes, Value row) {
    return b.atBytes(state, b.add(b.mul(row, rowBytes), offset));
  }
  Value partialRow(Value state, Value row) { return rowOf(state, layout.partialOffset(), layout.outputBytes(), row); }
  Value totalRow(Value state, Value row) { return rowOf(state, layout.totalOffset(), layout.outputBytes(), row); }
  Value rowState(Value state, TransposedKeysLayout::RowState which) {
    return b.atBytes(state, b.constant(layout.rowStateOffset(which)));
  }
  Value loadRowState(Value state, TransposedKeysLayout::RowState which) {
    return b.loadFloats(rowState(state, which), DType::F32, layout.lanes);
  }
  void storeRowState(Value value, Value state, TransposedKeysLayout::RowState which) {
    b.storeFloats(value, rowState(state, which), DType::F32);
  }
  Value loadScalar(Value state, TransposedKeysLayout::RowState which, Value row) {
    return b.loadFloats(b.at(rowState(state, which), row, DType::F32), DType::F32, 0);
  }
  void storeScalar(Value value, Value state, TransposedKeysLayout::RowState which, Value row) {
    b.storeFloats(value, b.at(rowState(state, which), row, DType::F32), DType::F32);
  }
  Value positionOf(Value state, Value row) {
    return b.extend(b.loadI32(rowState(state, TransposedKeysLayout::Position), row));
  }
  Value scoreAt(int64_t row, Value key) {
    return b.at(b.scratch(layout.scoresOffset() + row * TransposedKeysLayout::blockBytes), key, DType::F32);
  }
  /// Turned values of the pair that begins with `key`.
  Value valuesAt(Value key) {
    return b.atBytes(b.scratch(layout.valuesOffset()), b.mul(key, layout.outputBytes() / 2));
  }
  /// Weights are of unitType(), in the place of the row's scores.
  Value weightAt(int64_t row, Value key) { return b.at(scoreAt(row, b.constant(0)), key, unitType()); }
  Value larger(Value a, Value other) { return b.select(b.fcompare(Compare::Gt, a, other), a, other); }
  Value minusInfinity();
  DType unitType() const { return layout.pairs ? DType::BF16 : DType::F32; }
  int64_t step() const { return layout.pairs ? 2 : 1; } ///< elements of a unit, or keys weighed together

  KernelBuilder &b;
  const AttentionShape &shape;
  const TransposedKeysLayout &layout;
  AttentionSource &source;
  DType output;
  const TileConfig &tile;
  Value layer;
};

} // namespace k2c::emit

#endif // K2C_LIB_KERNELS_CPU_TRANSPOSEDKEYS_H

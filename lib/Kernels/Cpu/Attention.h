//===- Attention.h - Online softmax with a query row in every lane ------------------------===//
//
// The structure of absorbed and expanded attention (numerics N3). Query rows that share keys, pairs of (token, head),
// fill the lanes of vectors; keys and values are units broadcast to all lanes:
//
//   for each run of rows of one sequence:            (of one segment form)
//     pack the queries of a tile of lanes as [k][lanes]; state (m, l, o) and total (M, L, O) of every tile in scratch
//     for each block of 64 keys = one page:          (expanded: K and V of the block into scratch first)
//       pairs: the block's values turned to [pair of keys][column]
//       for each tile:  s[t] = sum_k q[k] * key_t[k];  m, l per lane;  o[c] = fma(p[t], value_t[c], o[c])
//   O * (1 / L) goes to the output rows
//
// A lane whose position is before a key skips it by select, never by a product with zero; keys that every lane sees,
// most of a decoded token's, need none. Lanes beyond the last row repeat it. Partials end where 64 b is a multiple of
// the lane's own C(p).
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_KERNELS_CPU_ATTENTION_H
#define K2C_LIB_KERNELS_CPU_ATTENTION_H

#include "AttentionSplit.h"
#include "InstructionSet.h"
#include "Units.h"
#include "k2c/Kernels/TileConfig.h"

namespace k2c::emit {

/// Columns of values that are computed, or turned, together: each takes one register and one broadcast load.
inline constexpr int64_t columnsTogether = 16;

/// Bytes that a prefetch brings.
inline constexpr int64_t cacheLine = 64;

/// `width` elements of a row at `pointer`; the next row is `stride` elements on (one row: 0). `upcoming`: the same row
/// of the next block, which is fetched while this one is computed, or null.
struct Piece {
  Value pointer;
  int64_t width = 0, stride = 0;
  DType type = DType::F32;
  Value upcoming = nullptr;
};
using Pieces = llvm::SmallVector<Piece, 2>;

/// Where an attention's queries, keys and values are.
class AttentionSource {
public:
  virtual ~AttentionSource() = default;
  /// The query of (token, head), in key order.
  virtual Pieces query(Value token, Value head) = 0;
  /// `keys` keys from slot `slot` on, within a page, are read soon.
  virtual void fetch(Value slot, Value keys) {}
  /// Called once for each block before its tiles: `keys` keys of the page whose first slot is `slot`. The page of the
  /// next block, or this one again, begins at slot `upcoming`.
  virtual void prepare(Value slot, Value keys, Value upcoming) {}
  /// Keys and values of the block's first key.
  virtual Pieces keys(Value slot) = 0;
  virtual Piece values(Value slot) = 0;
  /// Output of (token, head).
  virtual Value output(Value token, Value head) = 0;
};

/// Shapes of an attention, and where its state lies in scratch. `queryVectors`: vectors of one tile's queries, one for
/// each unit of a key. `pairs`: queries, keys, weights and values are bf16 and multiply in pairs (N6).
struct AttentionLayout {
  int64_t lanes, queryVectors, valueDim, tiles;
  bool pairs;
  int64_t vectorBytes() const { return lanes * byteWidth(DType::F32); }
  /// Of one tile: query, o, O, then single vectors.
  enum RowState : int64_t { Max, Sum, TotalMax, TotalSum, Largest, Position, Restart, rowStates };
  int64_t queryOffset() const { return 0; }
  int64_t partialOffset() const { return queryVectors * vectorBytes(); }
  int64_t totalOffset() const { return partialOffset() + valueDim * vectorBytes(); }
  int64_t rowStateOffset(RowState which) const { return totalOffset() + (valueDim + which) * vectorBytes(); }
  int64_t tileBytes() const { return rowStateOffset(rowStates); }
  /// Of all tiles together: the scores of a block, then its weights; pairs: its values, turned; and what comes after.
  int64_t scoresOffset() const { return tiles * tileBytes(); }
  int64_t valuesOffset() const { return scoresOffset() + softmaxBlock * vectorBytes(); }
  /// Columns that are turned at a time.
  static constexpr int64_t transposedColumns = 128;
  static_assert(transposedColumns % columnsTogether == 0);
  bool transposesInParts() const { return pairs && valueDim > transposedColumns; }
  /// Turned values of one pair of keys, and a line: rows of columns that are read together have sets of their own.
  int64_t pairBytes() const {
    int64_t columns = std::min(valueDim, transposedColumns);
    return (columns + columnsTogether - 1) / columnsTogether * columnsTogether * unitBytes + cacheLine;
  }
  int64_t bytes() const { return valuesOffset() + (pairs ? softmaxBlock / 2 * pairBytes() : 0); }
};

/// Tiles of an item's tokens x `heads` heads.
AttentionLayout attentionLayout(const TileConfig &tile, int64_t heads, int64_t keyDim, int64_t valueDim, bool pairs);

/// Columns of the output: [begin, end), begin a multiple of valuePartColumns, which are the bf16 that a vector of
/// `lanes` holds, or of 16 (parts are the same for processors): outputs are stored by vectors.
struct ValuePart {
  Value begin, end;
};
inline int64_t valuePartColumns(int64_t lanes) { return 2 * std::max<int64_t>(lanes, 16); }

/// Token rows [first, last) of the step, one at least.
struct TokenRange {
  Value first, last;
};

/// Calls body(sequence, first, last) for each run of `tokens` that are of one sequence and that `filter` accepts.
void forSequenceRuns(KernelBuilder &b, TokenRange tokens, FormFilter filter,
                     llvm::function_ref<void(Value, Value, Value)> body);

/// Makes capture_max_logit[layer][head], when there is one, the larger of itself and `largest`; workers share it.
void captureLargest(KernelBuilder &b, const AttentionShape &shape, Value layer, Value head, Value largest);

class AttentionEmitter {
public:
  /// `layer`: the ordinal of the capture, or null.
  AttentionEmitter(KernelBuilder &b, const AttentionShape &shape, const AttentionLayout &layout,
                   AttentionSource &source, DType output, InstructionSet instructionSet, Value layer)
      : b(b), shape(shape), layout(layout), source(source), output(output), instructionSet(instructionSet),
        layer(layer) {}

  /// Heads [firstHead, firstHead + heads) of those of `tokens` that `filter` accepts: the columns of `part`, or all;
  /// one partial (of one token, of as many heads as there are lanes at most), or the whole sequences.
  void emitItem(TokenRange tokens, Value firstHead, Value heads, FormFilter filter);
  void emitItem(TokenRange tokens, Value firstHead, Value heads, FormFilter filter, ValuePart part,
                const Partial &partial);

private:
  struct Run {
    Value firstToken, tokens, firstHead, heads, sequence;
    ValuePart part;
    Partial partial;
    Value positionOffset; ///< of a row's position in the cache group
    Value firstKey;       ///< of the first block
  };
  /// What a tile sees of a block whose first key is `start`: `keys` of the last lane, `all` of every lane.
  struct Block {
    Value slot, start, keys, all;
  };
  /// The lanes that see a key, or each key of a pair; null: all of them.
  struct Seen {
    Value key, odd;
  };
  void emitRun(Run run);
  void fetchPages(Value token, Value block);
  void startTile(const Run &run, Value tile);
  void packQueries(const Piece &piece, Value pointers, Value to);
  void forColumns(const ValuePart &part, llvm::function_ref<void(Value column)> body);
  void restart(const Run &run, Value tile, Value start);
  /// Partials of the lanes in `mask` join their totals; `merges`: those that have one already.
  void closePartials(const Run &run, Value tile, Value mask, Value merges);
  void finishTile(const Run &run, Value tile);
  void storePartial(const Run &run, Value tile);
  void storeRows(const ValuePart &part, Value from, Value factor, Value pointers, DType type);
  /// Emits body(lane, token, head) for every lane.
  void forLanes(const Run &run, Value tile, llvm::function_ref<void(Value lane, Value token, Value head)> body);
  /// A pointer for each lane.
  Value rowPointers(const Run &run, Value tile, llvm::function_ref<Value(Value token, Value head)> pointer);
  Value tokenOf(const Run &run, Value row) { return b.add(run.firstToken, b.div(row, run.heads)); }
  Value positionOf(const Run &run, Value token) { return b.add(token, run.positionOffset); }

  // One block of keys (AttentionBlock.cpp).
  void transposeValues(const ValuePart &part, Value slot, Value keys);
  void scores(Value tile, const Block &block);
  Values forKeys(Value tile, const Block &block, int64_t step, ValueRange init,
                 llvm::function_ref<Values(Value key, const Seen &seen, ValueRange state)> body);
  Value softmax(Value tile, const Block &block);
  Value accumulatePair(const Seen &seen, Value values, Value weights, Value sum);
  void accumulateColumns(Value tile, const Block &block, Value alpha, const Piece &values, Value first, int64_t count,
                         Value turned);
  void accumulateValues(const Run &run, Value tile, const Block &block, Value alpha);

  Value inTile(Value tile, int64_t offset) { return b.atBytes(b.scratch(offset), b.mul(tile, layout.tileBytes())); }
  Value vectorAt(Value base, Value index) { return b.atBytes(base, b.mul(index, layout.vectorBytes())); }
  Value loadVector(Value address) { return b.loadFloats(address, DType::F32, layout.lanes); }
  Value rowState(Value tile, AttentionLayout::RowState which) { return inTile(tile, layout.rowStateOffset(which)); }
  Value loadRowState(Value tile, AttentionLayout::RowState which) { return loadVector(rowState(tile, which)); }
  Value loadIntegers(Value tile, AttentionLayout::RowState which) { return b.bitsOf(loadRowState(tile, which)); }
  void storeRowState(Value value, Value tile, AttentionLayout::RowState which) {
    b.storeFloats(value, rowState(tile, which), DType::F32);
  }
  /// Turned values of the pair that begins with `key`.
  Value pairAt(Value key) { return b.atBytes(b.scratch(layout.valuesOffset()), b.mul(key, layout.pairBytes() / 2)); }
  Value scoreAt(Value key) { return vectorAt(b.scratch(layout.scoresOffset()), key); }
  /// Lanes whose position is at least `key`.
  Value sees(Value positions, Value key) {
    return b.compare(Compare::Ge, positions, b.splat(b.truncate(key), layout.lanes));
  }
  /// `changed` in the lanes that see, `kept` in the others.
  Value where(Value seen, Value changed, Value kept) { return seen ? b.select(seen, changed, kept) : changed; }
  Value larger(Value a, Value other) { return b.select(b.fcompare(Compare::Gt, a, other), a, other); }
  Value minusInfinity();
  int64_t step() const { return layout.pairs ? 2 : 1; } ///< elements of a unit, or keys weighed together

  KernelBuilder &b;
  const AttentionShape &shape;
  const AttentionLayout &layout;
  AttentionSource &source;
  DType output;
  InstructionSet instructionSet;
  Value layer;
};

} // namespace k2c::emit

#endif // K2C_LIB_KERNELS_CPU_ATTENTION_H

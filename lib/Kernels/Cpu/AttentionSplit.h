//===- AttentionSplit.h - Long sequences shared out by their partials ----------------------===//
//
// A step of few tokens has fewer (token, tile of heads) than workers. What N3 computes apart, the partials of a query,
// then goes to different workers, and a second launch merges it in N3's order: bits do not depend on who did what.
//
//   first launch     tile of heads   |------------ 0 ------------|------------ 1 ------------| ...
//                    token           |-- 0 --|------- 1 -------|-- 0 --|------- 1 -------|
//                    partial         |-------|-----|-----|-----|-------|-----|-----|-----|    as long as it has keys
//                    workers              0       |      1      |       2      |      3       equal shares of the keys,
//                                                                                             rounded to what is cut
//   second launch    (token, head)   total = first partial, joined by the others
//
// Queries of fewer than `minSplit` partials are one piece, and go to the output in the first launch. While there are
// fewer pieces than workers, they are cut further, into parts of the output's columns.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_KERNELS_CPU_ATTENTIONSPLIT_H
#define K2C_LIB_KERNELS_CPU_ATTENTIONSPLIT_H

#include "Builder.h"
#include "k2c/Kernels/TileConfig.h"

namespace k2c::emit {

/// The keys C(p) of a partial at a position (N3), both i64: the smallest power of two from 1024 on that is at least (p
/// + 1) / 16.
Value emitRestart(KernelBuilder &b, Value position);

/// What is added to a token row of `sequence` to get its position in cache group `group` (AttentionShape), an i64.
Value emitPositionOffset(KernelBuilder &b, int64_t group, Value sequence);

/// What a kernel says of its attention. `tiles`: of heads; `parts`: of the output's columns, a power of two when the
/// kernel can split; `firstArgument`: the number of the first argument behind operands and results.
struct SplitShape {
  int64_t group, heads, tiles, valueDim, parts;
  FormFilter rows;
  int64_t firstArgument;
};

class AttentionSplit;

/// One partial of the queries of a token, where it is written when it is closed. All null: the kernel never splits.
struct Partial {
  AttentionSplit *buffer = nullptr;
  Value isPartial; ///< i1; false: the whole sequence, to the output
  Value index;
};

/// The blocks of keys [first, end) of a partial, or all `blocks` of a token at `position`.
struct BlockRange {
  Value first, end;
};
BlockRange blocksOf(KernelBuilder &b, const Partial &partial, Value blocks, Value position);

/// What an item begins at: parts from `part` on, at most `parts`, of a token and a tile of heads.
struct AttentionItem {
  Value tile, token, part, parts;
  Value remaining; ///< items of this worker from this one on
  Value isApart;   ///< i1: the step is split, tokens are not computed together; null: never
  Partial partial;
};

class AttentionSplit {
public:
  AttentionSplit(KernelBuilder &b, const SplitShape &shape, const TileConfig &tile)
      : b(b), shape(shape), most(tile.splitTokens) {}

  /// This worker's items of the launch: `compute` returns how many of them it took. The second launch merges into
  /// output(token, head), of type `type`.
  void emit(llvm::function_ref<Value(const AttentionItem &)> compute,
            llvm::function_ref<Value(Value token, Value head)> output, DType type);

  /// Where partial `index` of (token, head) lies: the output's columns, then m and l, all f32.
  Value partialAt(Value token, Value head, Value index);

private:
  struct Range {
    Value begin, end;
  };
  Range ownItems();
  Value border(Value place, Value keysOfTile, Value cuts);
  Value keysOf(Value token);
  Value piecesOf(Value token);
  void computeItems(llvm::function_ref<Value(const AttentionItem &)> compute);
  void mergeItem(Value token, Value head, Value pieces, Value to, DType type);

  Value tokens() { return b.rowCount(RowSpace::Token, 1); }
  Value positionOf(Value token);
  Value loadScalar(Value row, int64_t element) { return b.loadFloats(b.at(row, element, DType::F32), DType::F32, 0); }

  KernelBuilder &b;
  SplitShape shape;
  int64_t most; ///< tokens of a step that is split; 0: none
};

} // namespace k2c::emit

#endif // K2C_LIB_KERNELS_CPU_ATTENTIONSPLIT_H

//===- Contraction.h - Rows x one panel of 32 columns ----------------------------------===//
//
// The loop nest all linears share (numerics N1). A leaf is one FMA chain an output element; a register tile of `rows` x
// nrVectors accumulators runs over a leaf, and the leaves merge like a binary counter on a small stack of tiles:
//
//   for leaf in 0 .. L by g:
//     switch rows:                                                one straight-line body for each row count
//       acc[stream][row][vector] = sum over the leaf
//       while the number of the leaf has a trailing one: acc = pop() + acc         left + right, in registers
//       push(acc)
//
// Few rows are few chains, bound by the latency of an FMA. Their tiles have several streams: g leaves at once, a
// subtree that merges in registers; or, where the contraction is one leaf, two panels that follow one another.
//
// Leaves of block-scaled panels run scale by scale: a vector of columns keeps its scales in a register, and an element
// becomes f32 and is multiplied by its scale on the way from memory to the FMA.
//
// A warp has no room for a body of each row count: there they are powers of two, and the rows that are too many are the
// last one again. All its lanes load the same elements of rows, so they take 16 bytes at once where rows lie so.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_KERNELS_CPU_CONTRACTION_H
#define K2C_LIB_KERNELS_CPU_CONTRACTION_H

#include "MatrixReader.h"

namespace k2c::emit {

class PanelContraction {
public:
  /// Of rows `x` (stride and type) with matrices `w`; `gated` tiles take half their vectors from the gate columns and
  /// half from the up columns. A kernel that multiplies bf16 in pairs by AVX512-BF16 rounds by it, too.
  /// `warp`: of a CTA, whose warps may take parts of the leaves.
  PanelContraction(KernelBuilder &b, const Rows &x, const Matrix &w, const Contraction &order, const TileConfig &tile,
                   bool gated, Value warp = {});

  /// Passes over the panel's columns that cover all 32.
  int64_t passes() const { return panelColumns / (tile.nrVectors * tile.lanes); }
  /// Panel `index` of matrix `m` of those at `base`.
  Panel panel(Value base, Value m, Value index) const { return reader->panel(base, m, index); }
  /// First panel column of vector v in a pass.
  Value column(Value pass, int64_t v) const;
  /// Rows (0: none) of which a tile may span two panels.
  int64_t pairedRows() const;
  /// What is fetched under the arithmetic: with element k of the contraction, the bytes at `first` + k * `perElement`.
  struct Prefetch {
    Value first, perElement;
  };
  /// A tile fetches its own panel, tile.prefetch steps ahead.
  Prefetch ownPanel(const Panel &panel) const;
  /// Each of several tiles fetches a share of the panel behind theirs, for which the memory then has the time of all.
  /// `bringsOwn`: nobody has fetched this panel yet, or nobody here reads the next.
  Prefetch shareOfNext(Value tileIndex, Value tileCount, const Panel &panel, Value bringsOwn) const;
  /// Computes the tile of `rows` (1 .. mr, i64) rows from `x` and the columns of `pass`; sum() reads it.
  void run(Value x, Value rows, const Panel &panel, Value pass, const Prefetch &prefetched);
  /// The same of 1 .. pairedRows() rows with the panel and the one behind it.
  void runPaired(Value x, Value rows, const Panel &panel, Value pass);
  int64_t leafCount() const { return leaves; }
  /// Into how many parts the warps of a CTA can cut the leaves, a power of two.
  int64_t partsAtMost() const { return std::min(warps, leaves); }
  /// run() of leaves [first, last), a part, which is a subtree of N1's. Of two `panels` that follow one another, a row
  /// that is loaded serves both; the body is that of a full tile.
  void runLeaves(Value x, Value rows, const Panel &panel, Value first, Value last, int64_t panels);
  /// From here on sum() is of the parts that warps firstWarp, firstWarp + stride, .. of the CTA have computed.
  void joinParts(Value firstWarp, Value stride, Value parts) { joined = {firstWarp, stride, parts}; }
  /// The f32 sums of one row: vector v of the last run; `ofPair`: 1 for the second panel of a pair.
  Value sum(Value row, int64_t v) const { return sum(row, v, b.constant(0)); }
  Value sum(Value row, int64_t v, Value ofPair) const;

private:
  /// What a tile runs over side by side: leaves of a panel, or panels.
  struct Streams {
    int64_t leaves = 1, panels = 1;
    int64_t count() const { return leaves * panels; }
    /// The leaf and the panel of a stream.
    std::pair<int64_t, int64_t> place(int64_t stream) const { return {stream % leaves, stream / leaves}; }
  };

  int64_t columnOffset(int64_t v) const;
  int64_t leavesAtOnce(int64_t rows) const;
  int64_t chainsAtMost() const;
  int64_t elementsAtOnce(int64_t rows, Streams streams) const;
  Value tileAddress(Value tileIndex, int64_t vector) const;
  Columns columnsOf(int64_t v) const;
  Values chain(ValueRange acc, Value x, Value first, Value last, int64_t rows, Streams streams, ValueRange scales);
  Values wideChain(ValueRange acc, Value x, Value first, Value last, int64_t rows, Streams streams, ValueRange scales);
  Value factorAddress(Value x, int64_t row, Value k) const;
  void findRows(Value x, int64_t rows, int64_t known);
  bool canLoadWide() const;
  Values narrowStep(ValueRange acc, Value x, Value k, int64_t rows, Streams streams, ValueRange scales, bool half);
  Values loadScales(Value first, Streams streams);
  void prefetchLine(Value element, int64_t panelOfPair, int64_t column);
  void leafBody(Value x, Value leaf, int64_t rows, Streams streams);
  /// What row `row` is multiplied with in a step of the stream.
  using FactorOf = llvm::function_ref<PanelFactor(int64_t stream, int64_t row)>;
  Values step(ValueRange acc, Value k, int64_t rows, Streams streams, ValueRange scales, FactorOf factorOf);
  void merge(Values acc, Value leaf, Streams streams);
  int64_t tilesOnStack() const;
  void storeTile(ValueRange acc, Value tileIndex);
  void start(const Panel &panel, Value pass);
  void runFrom(int64_t from, Value xRow, Value rows);
  void byAlignment(Value x, Value rows, llvm::function_ref<void()> body);
  void forRows(Value rows, int64_t from, int64_t to, llvm::function_ref<void(int64_t)> body);
  int64_t unrolled(int64_t chains) const;

  KernelBuilder &b;
  const Rows &x;
  const Matrix &w;
  const TileConfig &tile;
  int64_t k, leaves, length;
  bool gated, pairs; ///< pairs: both factors are bf16 (N6)
  int64_t tileBytes;
  std::unique_ptr<MatrixReader> reader;
  Value warp;
  int64_t warps, warpBytes = 0; ///< that share leaves; of each: its tiles
  Value tiles;                  ///< on the stack: sums of subtrees; at last the first is the result
  Value firstLeaf, lastLeaf;
  Panel running; ///< of the running tile, as are pass, prefetched and rowCount
  Value pass, rowCount;
  Prefetch prefetched;
  struct Parts {
    Value firstWarp, stride, count;
  } joined;
  Values rowStarts;    ///< of a warp's tile
  bool isWide = false; ///< the rows are being read by wideBytes
};

} // namespace k2c::emit

#endif // K2C_LIB_KERNELS_CPU_CONTRACTION_H

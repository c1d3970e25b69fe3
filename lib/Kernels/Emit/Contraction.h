//===- Contraction.h - Rows x one panel of 32 columns ----------------------------------===//
//
// The loop nest all linears share (numerics N1). A leaf is one FMA chain an output element; a register tile of `rows` x
// nrVectors accumulators runs over a leaf, and the leaves merge like a binary counter on a small stack of tiles:
//
//   for leaf in 0 .. L by g:                                      tiles of few rows take g independent leaves at once
//     switch rows: acc[leaf][row][vector] = sum over the leaf     one straight-line body for each row count
//     push each leaf's tile: while its number has a trailing one, pop and add      left + right
//
// Leaves of block-scaled panels run scale by scale: a vector of columns keeps its scales in a register, and an element
// becomes f32 and is multiplied by its scale on the way from memory to the FMA.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_KERNELS_EMIT_CONTRACTION_H
#define K2C_LIB_KERNELS_EMIT_CONTRACTION_H

#include "Builder.h"
#include "k2c/Kernels/TileConfig.h"

namespace k2c::emit {

class PanelContraction {
public:
  /// Of rows `x` (stride and type) with panels `w`; `gated` tiles take half their vectors from the gate columns and
  /// half from the up columns.
  PanelContraction(KernelBuilder &b, const Rows &x, const PanelLayout &w, const Contraction &order,
                   const TileConfig &tile, bool gated);

  /// Passes over the panel's columns that cover all 32.
  int64_t passes() const { return PanelLayout::columns / (tile.nrVectors * tile.lanes); }
  /// First panel column of vector v in a pass.
  Value column(Value pass, int64_t v) const;
  /// Computes the tile of `rows` (1 .. mr, i64) rows from `x` and the columns of `pass`; sum() reads it.
  void run(Value x, Value rows, Value panel, Value pass);
  /// The f32 sums of one row: vector v of the last run.
  Value sum(Value row, int64_t v) const;

private:
  int64_t columnOffset(int64_t v) const;
  int64_t leavesAtOnce(int64_t rows) const;
  Value tileAddress(Value base, Value tileIndex, Value vector) const;
  Values chain(ValueRange acc, Value x, Value panel, Value first, Value last, int64_t rows, int64_t group,
               ValueRange scales);
  Values loadScales(Value first, int64_t group);
  void leafBody(Value x, Value panel, Value leaf, int64_t rows, int64_t group);
  Values step(ValueRange acc, Value x, Value panel, Value k, int64_t rows, int64_t group, ValueRange scales, bool half);
  void push(Value leaf, int64_t i, Value vectors);
  void runFrom(int64_t from, Value xRow, Value rows, Value panel);
  int64_t unrolled(int64_t chains) const;

  KernelBuilder &b;
  const Rows &x;
  const PanelLayout &w;
  const TileConfig &tile;
  int64_t k, leaves, length;
  bool gated, pairs; ///< pairs: both factors are bf16 (N6)
  int64_t tileBytes;
  Value fresh, stackTiles;
  Value scaleTable, firstColumn; ///< of the running panel and pass, when the panels are block-scaled
};

} // namespace k2c::emit

#endif // K2C_LIB_KERNELS_EMIT_CONTRACTION_H

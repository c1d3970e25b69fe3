//===- CtaPanels.h - Rows x panels by the warps of a CTA -----------------------------===//
//
// The worker of a linear on a GPU is a CTA. Its ctaWarps warps share up to rowsAtMost() rows of panels: first by row
// tiles, then by parts of the leaves (numerics N1), then by panels, each as far as there are any:
//
//   rows        tiles  x  parts  x  groups of panels      of 4 warps, with 4 or 8 leaves (with 2; with 1)
//   1 .. 16         1       4           1                    (1 2 2; 1 1 4)
//   17 .. 32        2       2           1                    (2 2 1; 2 1 2)      two panels a warp
//
// so that one row, which reads as many weights as 32 do, has every warp read some, and where a tile is full, whose rows
// all lanes load over and over, what was loaded serves two panels. Groups and pairs need a CTA that has several panels
// of its rows: a launch has a CTA for each panel, up to as many as the device takes at once. Each warp leaves the sums
// of its part in shared memory; behind a barrier the parts are added, in N1's order, each row by one of the warps that
// had it.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_KERNELS_CPU_CTAPANELS_H
#define K2C_LIB_KERNELS_CPU_CTAPANELS_H

#include "Contraction.h"
#include "Cta.h"

namespace k2c::emit {

class CtaPanels {
public:
  /// `contraction` is of rows `x`, for warp `warp` of the CTA; null: the worker is no CTA, and this is not used.
  CtaPanels(KernelBuilder &b, PanelContraction &contraction, const Rows &x, const TileConfig &tile, Value warp)
      : b(b), contraction(contraction), x(x), tile(tile), warp(warp) {}

  static int64_t rowsAtMost(const TileConfig &tile) { return ctaTiles * tile.mr; }

  /// What a warp has of panels of `rows` rows; i64.
  struct Share {
    Value rows;
    Value tiles, tile;         ///< of how many row tiles which; a warp has as many panels as there are tiles
    Value parts, part;         ///< of how many parts of the leaves which
    Value firstLeaf, lastLeaf; ///< of the part
    Value group;               ///< of panels
    Value panels;              ///< that are computed at once, by all groups
  };
  Share shareOf(Value rows);
  /// How often `panels` panels are computed at once.
  Value roundsOf(int64_t panels, const Share &share);

  /// Panels [first, last) of the rows from `xFirst` on: share.panels of them, then those that begin `step` behind.
  /// finish(row, inTile, panel, ofPair) stores a row, whose sums contraction.sum(inTile, .., ofPair) are.
  void run(Value xFirst, const Share &share, Value first, Value last, Value step,
           llvm::function_ref<Panel(Value)> panelAt, llvm::function_ref<void(Value, Value, Value, Value)> finish);

private:
  KernelBuilder &b;
  PanelContraction &contraction;
  const Rows &x;
  const TileConfig &tile;
  Value warp;
};

} // namespace k2c::emit

#endif // K2C_LIB_KERNELS_CPU_CTAPANELS_H

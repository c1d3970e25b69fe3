//===- CtaPanels.cpp - Rows x panels by the warps of a CTA ---------------------------===//
#include "CtaPanels.h"

namespace k2c::emit {

/// `value` by a power of two up to ctaWarps.
static Value quotient(KernelBuilder &b, Value value, Value power) {
  static_assert(ctaWarps == 4, "which has three powers");
  return b.select(b.compare(Compare::Eq, power, 1), value,
                  b.select(b.compare(Compare::Eq, power, 2), b.div(value, 2), b.div(value, 4)));
}

CtaPanels::Share CtaPanels::shareOf(Value rows) {
  Share share;
  share.rows = rows;
  share.tiles = b.select(b.compare(Compare::Le, rows, tile.mr), b.constant(1), b.constant(ctaTiles));
  Value warpsOfTile = quotient(b, b.constant(ctaWarps), share.tiles);
  share.parts = b.min(warpsOfTile, contraction.partsAtMost());
  share.panels = b.mul(quotient(b, warpsOfTile, share.parts), share.tiles);
  share.tile = b.bitAnd(warp, b.sub(share.tiles, 1));
  Value ofTile = quotient(b, warp, share.tiles);
  share.part = b.bitAnd(ofTile, b.sub(share.parts, 1));
  share.group = quotient(b, ofTile, share.parts);
  Value leavesOfPart = quotient(b, b.constant(contraction.leafCount()), share.parts);
  share.firstLeaf = b.mul(share.part, leavesOfPart);
  share.lastLeaf = b.add(share.firstLeaf, leavesOfPart);
  return share;
}

Value CtaPanels::roundsOf(int64_t panels, const Share &share) {
  return quotient(b, b.add(share.panels, panels - 1), share.panels);
}

void CtaPanels::run(Value xFirst, const Share &share, Value first, Value last, Value step,
                    llvm::function_ref<Panel(Value)> panelAt,
                    llvm::function_ref<void(Value, Value, Value, Value)> finish) {
  // The second tile is full, too: it has some rows of the first, which it does not finish.
  Value ownRow = b.mul(share.tile, tile.mr), rows = b.min(share.rows, tile.mr);
  Value firstRow = b.min(ownRow, b.sub(share.rows, rows)), xTile = b.row(xFirst, x, firstRow);
  Value firstToFinish = b.add(b.sub(ownRow, firstRow), share.part);
  Value partZero = b.add(share.tile, b.mul(b.mul(share.group, share.parts), share.tiles));
  contraction.joinParts(partZero, share.tiles, share.parts);
  auto compute = [&](Value panel, int64_t panels) {
    contraction.runLeaves(xTile, rows, panelAt(panel), share.firstLeaf, share.lastLeaf, panels);
  };
  b.loop(first, last, step, [&](Value atOnce) {
    Value panel = b.add(atOnce, b.mul(share.group, share.tiles)), panels = b.min(b.sub(last, panel), share.tiles);
    Value isMine = b.compare(Compare::Gt, panels, 0);
    b.when(isMine, [&] {
      b.choose(b.compare(Compare::Eq, panels, 2), [&] { compute(panel, 2); }, [&] { compute(panel, 1); });
    });
    meetInCta(b);
    b.when(isMine, [&] {
      b.loop(firstToFinish, rows, share.parts, [&](Value inTile) {
        b.loop(b.constant(0), panels, 1,
               [&](Value ofPair) { finish(b.add(firstRow, inTile), inTile, b.add(panel, ofPair), ofPair); });
      });
    });
    meetInCta(b);
  });
}

} // namespace k2c::emit

//===- HeadLinear.cpp - Linears with one matrix a head --------------------------------===//
//
// An item is a block of rows, a head and a panel of its matrix. On a GPU the worker is a CTA, whose warps share panels
// (CtaPanels.h).
//
//===----------------------------------------------------------------------===//
#include "CtaPanels.h"
#include "Emitters.h"
#include "LinearRows.h"

namespace k2c::emit {

namespace {

class HeadLinearEmitter {
public:
  HeadLinearEmitter(KernelBuilder &b, const HeadLinearDesc &d, const TileConfig &tile)
      : b(b), d(d), tile(tile), x(b.argument(0)), w(b.argument(1)), y(b.argument(2)),
        warp(tile.isOfWarp() ? warpOfCta(b) : Value()), contraction(b, d.x, d.w, d.order, tile, /*gated=*/false, warp),
        ofCta(b, contraction, d.x, tile, warp), rows(b.rowCount(d.x.space, 1)) {}

  void emit();
  void emitByCta();

private:
  /// Calls body(xHead, yHead, head, first, last) for the runs of rows of a block; blockHead = block * heads + head.
  void forRowsOf(Value blockHead, llvm::function_ref<void(Value, Value, Value, Value, Value)> body) {
    Value head = b.rem(blockHead, d.heads);
    auto [first, last] = rowsOfBlock(b, tile, rows, b.div(blockHead, d.heads));
    Value xHead = b.at(x, b.mul(head, d.xHeadStride), d.x.type), yHead = b.at(y, b.mul(head, d.w.n), d.y.type);
    forRuns(b, d.rows, first, last,
            [&](Value runFirst, Value runLast) { body(xHead, yHead, head, runFirst, runLast); });
  }
  void store(Value inTile, Value yRow, Value panel, Value pass, Value ofPair);

  KernelBuilder &b;
  const HeadLinearDesc &d;
  const TileConfig &tile;
  Value x, w, y;
  Value warp; ///< of the CTA, where that is the worker
  PanelContraction contraction;
  CtaPanels ofCta; ///< of a warp's tile
  Value rows;
};

void HeadLinearEmitter::emit() {
  b.items([&](Value item) {
    Value panel = b.rem(item, panelCount(d.w));
    forRowsOf(b.div(item, panelCount(d.w)), [&](Value xHead, Value yHead, Value head, Value first, Value last) {
      Panel weights = contraction.panel(w, head, panel);
      Value rowsOfTile = tileRows(b, tile, b.sub(last, first));
      Value tiles = b.div(b.add(b.sub(last, first), b.sub(rowsOfTile, 1)), rowsOfTile);
      b.loop(b.constant(0), tiles, 1, [&](Value index) {
        Value tileFirst = b.add(first, b.mul(index, rowsOfTile)), count = b.min(b.sub(last, tileFirst), rowsOfTile);
        Value isLast = b.compare(Compare::Eq, b.add(item, 1), b.workerField(abi::worker::end));
        PanelContraction::Prefetch prefetched = contraction.shareOfNext(index, tiles, weights, isLast);
        b.loop(0, contraction.passes(), 1, [&](Value pass) {
          contraction.run(b.row(xHead, d.x, tileFirst), count, weights, pass, prefetched);
          b.loop(b.constant(0), count, 1, [&](Value inTile) {
            store(inTile, b.row(yHead, d.y, b.add(tileFirst, inTile)), panel, pass, b.constant(0));
          });
        });
      });
    });
  });
}

void HeadLinearEmitter::emitByCta() {
  runByCta(b);
  const int64_t panels = panelCount(d.w);
  Value begin = b.workerField(abi::worker::begin), end = b.workerField(abi::worker::end);
  b.loop(b.div(begin, panels), b.div(b.add(end, panels - 1), panels), 1, [&](Value blockHead) {
    Value firstItem = b.mul(blockHead, panels), zero = b.constant(0);
    forRowsOf(blockHead, [&](Value xHead, Value yHead, Value head, Value first, Value last) {
      const CtaPanels::Share share = ofCta.shareOf(b.sub(last, first));
      ofCta.run(
          b.row(xHead, d.x, first), share, b.max(b.sub(begin, firstItem), 0), b.min(b.sub(end, firstItem), panels),
          share.panels, [&](Value panel) { return contraction.panel(w, head, panel); },
          [&](Value row, Value inTile, Value panel, Value ofPair) {
            store(inTile, b.row(yHead, d.y, b.add(first, row)), panel, /*pass=*/zero, ofPair);
          });
    });
  });
}

void HeadLinearEmitter::store(Value inTile, Value yRow, Value panel, Value pass, Value ofPair) {
  for (int64_t v = 0; v < tile.nrVectors; ++v) {
    Value column = b.add(b.mul(panel, panelColumns), contraction.column(pass, v)), mask;
    if (d.w.n % panelColumns != 0)
      mask = b.firstLanes(tile.lanes, b.sub(b.constant(d.w.n), column));
    b.storeFloats(contraction.sum(inTile, v, ofPair), yRow, d.y.type, Chunk{column, tile.lanes, mask});
  }
}

} // namespace

void emitBody(KernelBuilder &b, const HeadLinearDesc &d, const TileConfig &tile) {
  HeadLinearEmitter emitter(b, d, tile);
  tile.isOfWarp() ? emitter.emitByCta() : emitter.emit();
}

} // namespace k2c::emit

//===- Linear.cpp - Linears: all rows, the slots of an expert, one matrix a head -----------===//
//
// An item is a block of rows (or an expert's slots) x one panel; row tiles of `mr` rows go through PanelContraction,
// and the epilogue, a list of element operations, works on the finished sums, vector by vector, before they are stored.
//
//===----------------------------------------------------------------------===//
#include "Contraction.h"
#include "Emitters.h"
#include "Math.h"
#include <numeric>

namespace k2c::emit {

/// Rows whose distance shares a large power of two with a way of the first cache lie in few of its sets: more of them
/// in a set than it has ways evict one another.
static bool rowsCollide(const Rows &x, const TileConfig &tile) {
  constexpr int64_t ways = 8, wayBytes = 4096; // 32 KiB
  return tile.mr * std::gcd(x.stride * byteWidth(x.type), wayBytes) > ways * wayBytes;
}

/// Blocks of rows that are normalised, or whose rows collide, are first written to scratch.
static bool isStaged(const LinearDesc &d, const TileConfig &tile) {
  return (d.grouped || tile.rowsPerItem > 0) && (d.normEps > 0 || rowsCollide(d.x, tile));
}

/// Staged rows are an odd number of cache lines apart.
static Rows stagedRows(const LinearDesc &d) {
  int64_t line = 64 / byteWidth(d.x.type), lines = (d.x.width + line - 1) / line;
  return Rows{d.x.space, d.x.width, (lines | 1) * line, d.x.type};
}

/// Rows that are staged together: a block, or as many slots of an expert as fill half of the second cache.
static int64_t stagedRowCount(const LinearDesc &d, const TileConfig &tile) {
  constexpr int64_t minTiles = 4, bytes = 512 << 10;
  int64_t fit = bytes / (stagedRows(d).stride * byteWidth(d.x.type)) / tile.mr;
  return d.grouped ? std::max(fit, minTiles) * tile.mr : tile.rowsPerItem;
}

int64_t linearBytes(const LinearDesc &d, const TileConfig &tile) {
  return isStaged(d, tile) ? stagedRowCount(d, tile) * stagedRows(d).stride * byteWidth(d.x.type) : 0;
}

/// Rows [first, second) of a block. As many blocks as rowsPerItem asks for, of equally many register tiles (give or
/// take one): workers that share out the items then have equal work.
static std::pair<Value, Value> rowsOfBlock(KernelBuilder &b, const TileConfig &tile, Value rows, Value block) {
  if (tile.rowsPerItem == 0)
    return {b.constant(0), rows};
  Value blocks = b.div(b.add(rows, tile.rowsPerItem - 1), tile.rowsPerItem);
  Value tiles = b.div(b.add(rows, tile.mr - 1), tile.mr);
  auto begin = [&](Value i) { return b.mul(b.div(b.mul(i, tiles), blocks), tile.mr); };
  return {begin(block), b.min(begin(b.add(block, 1)), rows)};
}

/// Rows of a register tile: as few tiles as mr allows. The last has as few rows as fill the pipes, the others all the
/// more: a full tile loads least for its arithmetic.
static Value tileRows(KernelBuilder &b, const TileConfig &tile, Value rows) {
  if (tile.isOfWarp()) // whose bodies are of powers of two
    return b.constant(tile.mr);
  constexpr int64_t chains = 8;
  Value tiles = b.div(b.add(rows, tile.mr - 1), tile.mr);
  Value even = b.div(b.add(rows, b.sub(tiles, 1)), tiles);
  Value beforeLast = b.max(b.sub(rows, (chains + tile.nrVectors - 1) / tile.nrVectors), 0);
  return b.min(b.max(even, b.div(beforeLast, b.max(b.sub(tiles, 1), 1))), tile.mr);
}

namespace {

/// Variants of a linear, in the order of variantNames().
enum Variant : int64_t { OneRow, FewRows, FullTiles };

/// Argument numbers of a LinearDesc, in the order of operands().
struct LinearArguments {
  Value x, norm, w, bias, slotWeights, residual, y;
  Permutation permutation;

  LinearArguments(KernelBuilder &b, const LinearDesc &d) {
    int64_t next = 0;
    auto argument = [&](bool present) { return present ? b.argument(next++) : Value(); };
    x = argument(true);
    norm = argument(d.normEps > 0);
    w = argument(true);
    bias = argument(d.takes(LinearDesc::Bias));
    slotWeights = argument(d.takes(LinearDesc::SlotWeight));
    residual = argument(d.takes(LinearDesc::Residual));
    if (d.grouped)
      permutation = Permutation::of(b, argument(true), d.w.count, d.slotsPerToken);
    y = argument(true);
  }
};

class LinearEmitter {
public:
  LinearEmitter(KernelBuilder &b, const LinearDesc &d, const TileConfig &tile)
      : b(b), d(d), tile(tile), arguments(b, d), input(d.x),
        contraction(b, staged(), d.w, d.order, tile, d.w.parts == 2) {}

  void emit() { d.grouped ? emitGrouped() : emitBlocks(); }

private:
  /// The rows of a staged block lie in scratch.
  const Rows &staged() {
    if (isStaged(d, tile))
      input = stagedRows(d);
    return input;
  }

  /// The only matrix, or an expert's: its number and where its elements begin.
  struct MatrixAt {
    Value number, weights;
  };
  void emitBlocks();
  void emitGrouped();
  void emitExpert(Value first, Value last, const MatrixAt &expert, Value firstPanel, Value lastPanel);
  void stageBlock(Value first, Value last);
  void emitPanels(Value xFirst, Value first, Value last, const MatrixAt &matrix, Value firstPanel, Value lastPanel);
  /// Rows [first, first + rows), tile `index` of `count`. `bringsOwn`: as in PanelContraction::shareOfNext.
  struct Tile {
    Value first, rows, index, count, bringsOwn;
  };
  /// With a panel or two.
  void emitTile(Value x, const Tile &at, const MatrixAt &matrix, Value panel, int64_t panels);
  void finishRow(Value row, Value inTile, Value matrix, Value panel, Value pass, Value ofPair);
  Value variantOf(Value rows) {
    Value few = b.select(b.compare(Compare::Le, rows, 1), b.constant(b.i32(), OneRow), b.constant(b.i32(), FewRows));
    return b.select(b.compare(Compare::Ge, rows, tile.mr), b.constant(b.i32(), FullTiles), few);
  }

  KernelBuilder &b;
  const LinearDesc &d;
  const TileConfig &tile;
  LinearArguments arguments;
  Rows input; ///< the rows that are multiplied
  PanelContraction contraction;
};

/// Items are row blocks x panels, block-major, so a worker stages a block once.
void LinearEmitter::emitBlocks() {
  Value rows = b.rowCount(d.x.space, d.slotsPerToken);
  b.setVariant(variantOf(rows));
  Value begin = b.workerField(abi::worker::begin), end = b.workerField(abi::worker::end);
  int64_t panels = panelCount(d.w);
  Value lastBlock = b.select(b.compare(Compare::Lt, begin, end), b.div(b.add(end, panels - 1), panels), b.constant(0));
  b.loop(b.div(begin, b.constant(panels)), lastBlock, 1, [&](Value block) {
    auto [first, last] = rowsOfBlock(b, tile, rows, block);
    Value xFirst = b.row(arguments.x, d.x, first);
    if (isStaged(d, tile)) {
      stageBlock(first, last);
      xFirst = b.scratch(0);
    }
    Value firstItem = b.mul(block, panels);
    emitPanels(xFirst, first, last, {b.constant(0), arguments.w}, b.max(b.sub(begin, firstItem), 0),
               b.min(b.sub(end, firstItem), panels));
  });
}

/// Items are panels x experts, panel-major, so that every worker has a share of each expert; but it walks them expert
/// by expert: an expert's panels follow one another in memory, from its address in the table on. An expert without
/// slots costs its two offsets.
void LinearEmitter::emitGrouped() {
  Value begin = b.workerField(abi::worker::begin), end = b.workerField(abi::worker::end);
  Values variant = b.loop(0, d.w.count, 1, b.constant(b.i32(), 0), [&](Value expert, ValueRange carried) {
    Value first = b.extend(b.loadI32(arguments.permutation.offsets, expert));
    Value last = b.extend(b.loadI32(arguments.permutation.offsets, b.add(expert, 1)));
    auto panelFrom = [&](Value item) { return b.div(b.add(b.max(b.sub(item, expert), 0), d.w.count - 1), d.w.count); };
    Value hasSlots = b.compare(Compare::Lt, first, last);
    b.when(hasSlots, [&] {
      Value weights = b.loadPtr(arguments.w, expert), isAbsent = b.compare(Compare::Eq, b.integerOf(weights), 0);
      b.failAbsent(isAbsent, b.at(arguments.w, expert, DType::I64));
      b.when(b.bitNot(isAbsent), [&] { emitExpert(first, last, {expert, weights}, panelFrom(begin), panelFrom(end)); });
    });
    return Values{b.select(hasSlots, b.max(carried[0], variantOf(b.sub(last, first))), carried[0])};
  });
  b.setVariant(variant[0]);
}

void LinearEmitter::emitExpert(Value first, Value last, const MatrixAt &expert, Value firstPanel, Value lastPanel) {
  if (!isStaged(d, tile))
    return emitPanels(b.row(arguments.x, d.x, first), first, last, expert, firstPanel, lastPanel);
  Value end = b.select(b.compare(Compare::Lt, firstPanel, lastPanel), last, first);
  b.loop(first, end, stagedRowCount(d, tile), [&](Value block) {
    Value blockEnd = b.min(b.add(block, stagedRowCount(d, tile)), last);
    stageBlock(block, blockEnd);
    emitPanels(b.scratch(0), block, blockEnd, expert, firstPanel, lastPanel);
  });
}

void LinearEmitter::stageBlock(Value first, Value last) {
  b.loop(first, last, 1, [&](Value row) {
    Value from = b.row(arguments.x, d.x, row), to = b.row(b.scratch(0), input, b.sub(row, first));
    if (d.normEps > 0)
      return emitNormRow(b, {from, arguments.norm, to, d.x.type, d.normWeight, input.type, d.x.width, d.normEps});
    copyRow(b, from, d.x.type, to, input.type, d.x.width);
  });
}

/// Rows [first, last) of `matrix`, whose input lies at `xFirst`, with panels [firstPanel, lastPanel).
void LinearEmitter::emitPanels(Value xFirst, Value first, Value last, const MatrixAt &matrix, Value firstPanel,
                               Value lastPanel) {
  Value rows = b.sub(last, first), rowsOfTile = tileRows(b, tile, rows);
  Tile whole{first, rows, b.constant(0), b.constant(1), b.constant(b.i1(), 1)};
  Value tiles = b.div(b.add(rows, b.sub(rowsOfTile, 1)), rowsOfTile);
  if (int64_t paired = contraction.pairedRows(); paired > 0)
    firstPanel = b.choose(
        b.compare(Compare::Le, rows, paired), b.i64(),
        [&] {
          Value beyondPairs = b.sub(lastPanel, b.bitAnd(b.sub(lastPanel, firstPanel), b.constant(1)));
          b.loop(firstPanel, beyondPairs, 2,
                 [&](Value panel) { emitTile(xFirst, whole, matrix, panel, /*panels=*/2); });
          return Values{beyondPairs};
        },
        [&] { return Values{firstPanel}; })[0];
  b.loop(firstPanel, lastPanel, 1, [&](Value panel) {
    b.loop(b.constant(0), tiles, 1, [&](Value index) {
      Value before = b.mul(index, rowsOfTile), tileFirst = b.add(first, before);
      Value isFirst = b.bitAnd(b.compare(Compare::Eq, panel, firstPanel), b.compare(Compare::Eq, index, 0));
      Value isLast = b.compare(Compare::Eq, b.add(panel, 1), lastPanel);
      Tile at{tileFirst, b.min(b.sub(last, tileFirst), rowsOfTile), index, tiles, b.bitOr(isFirst, isLast)};
      emitTile(b.row(xFirst, input, before), at, matrix, panel, /*panels=*/1);
    });
  });
}

void LinearEmitter::emitTile(Value x, const Tile &at, const MatrixAt &matrix, Value panel, int64_t panels) {
  Panel weights = contraction.panel(matrix.weights, b.constant(0), panel);
  b.loop(0, contraction.passes(), 1, [&](Value pass) {
    if (panels == 2)
      contraction.runPaired(x, at.rows, weights, pass);
    else
      contraction.run(x, at.rows, weights, pass, contraction.shareOfNext(at.index, at.count, weights, at.bringsOwn));
    b.loop(b.constant(0), at.rows, 1, [&](Value inTile) {
      b.loop(0, panels, 1, [&](Value ofPair) {
        finishRow(b.add(at.first, inTile), inTile, matrix.number, b.add(panel, ofPair), pass, ofPair);
      });
    });
  });
}

/// The epilogue of one row of the tile. Panel column c is column panel * 32 + c, or panel * 16 + c of gate and of up.
/// A vector of a whole panel has both: up is turned onto gate. `ofPair`: which of the panels that were multiplied
/// together.
void LinearEmitter::finishRow(Value row, Value inTile, Value matrix, Value panel, Value pass, Value ofPair) {
  int64_t columns = d.y.width, ofPanel = panelColumns / d.w.parts;
  int64_t vectors = std::max<int64_t>(tile.nrVectors / d.w.parts, 1);
  Value slotWeight, biasRow;
  if (arguments.slotWeights) {
    Value route = b.extend(b.loadI32(arguments.permutation.routeOfSlot, row));
    slotWeight = b.splat(b.loadFloats(b.at(arguments.slotWeights, route, DType::F32), DType::F32, 0), tile.lanes);
  }
  if (arguments.bias)
    biasRow = b.at(arguments.bias, b.mul(matrix, d.w.n), d.biasType);
  for (int64_t v = 0; v < vectors; ++v) {
    Value column = b.add(b.mul(panel, ofPanel), contraction.column(pass, v)), mask;
    if (tile.lanes > ofPanel)
      mask = b.firstLanes(tile.lanes, b.min(b.sub(b.constant(columns), column), ofPanel));
    else if (columns % (vectors * tile.lanes) != 0 || columns % ofPanel != 0)
      mask = b.firstLanes(tile.lanes, b.sub(b.constant(columns), column));
    Chunk chunk{column, tile.lanes, mask};
    Value result = emitElementwise(b, d.epilogue, tile.lanes, [&](int64_t input) -> Value {
      switch (LinearDesc::Input(input)) {
      case LinearDesc::Sum:
        return contraction.sum(inTile, v, ofPair);
      case LinearDesc::UpSum:
        return tile.lanes > ofPanel ? b.rotate(contraction.sum(inTile, v, ofPair), ofPanel)
                                    : contraction.sum(inTile, v + vectors, ofPair);
      case LinearDesc::Bias:
        return b.loadFloats(biasRow, d.biasType, chunk);
      case LinearDesc::UpBias:
        return b.loadFloats(b.at(biasRow, columns, d.biasType), d.biasType, chunk);
      case LinearDesc::SlotWeight:
        return slotWeight;
      case LinearDesc::Residual:
        return b.loadFloats(b.row(arguments.residual, d.residual, row), d.residual.type, chunk);
      }
      return {};
    });
    b.storeFloats(result, b.row(arguments.y, d.y, row), d.y.type, chunk);
  }
}

} // namespace

void emitBody(KernelBuilder &b, const LinearDesc &desc, const TileConfig &tile) { LinearEmitter(b, desc, tile).emit(); }

void emitBody(KernelBuilder &b, const HeadLinearDesc &d, const TileConfig &tile) {
  Value x = b.argument(0), w = b.argument(1), y = b.argument(2);
  PanelContraction contraction(b, d.x, d.w, d.order, tile, /*gated=*/false);
  Value rows = b.rowCount(d.x.space, 1);
  b.items([&](Value item) {
    Value panel = b.rem(item, panelCount(d.w)), blockHead = b.div(item, panelCount(d.w));
    Value head = b.rem(blockHead, d.heads), block = b.div(blockHead, d.heads);
    auto [first, last] = rowsOfBlock(b, tile, rows, block);
    Panel weights = contraction.panel(w, head, panel);
    Value xHead = b.at(x, b.mul(head, d.xHeadStride), d.x.type), yHead = b.at(y, b.mul(head, d.w.n), d.y.type);
    forRuns(b, d.rows, first, last, [&](Value runFirst, Value runLast) {
      Value rowsOfTile = tileRows(b, tile, b.sub(runLast, runFirst));
      Value tiles = b.div(b.add(b.sub(runLast, runFirst), b.sub(rowsOfTile, 1)), rowsOfTile);
      b.loop(b.constant(0), tiles, 1, [&](Value index) {
        Value tileFirst = b.add(runFirst, b.mul(index, rowsOfTile));
        Value count = b.min(b.sub(runLast, tileFirst), rowsOfTile);
        Value isLast = b.compare(Compare::Eq, b.add(item, 1), b.workerField(abi::worker::end));
        PanelContraction::Prefetch prefetched = contraction.shareOfNext(index, tiles, weights, isLast);
        b.loop(0, contraction.passes(), 1, [&](Value pass) {
          contraction.run(b.row(xHead, d.x, tileFirst), count, weights, pass, prefetched);
          b.loop(b.constant(0), count, 1, [&](Value inTile) {
            for (int64_t v = 0; v < tile.nrVectors; ++v) {
              Value column = b.add(b.mul(panel, panelColumns), contraction.column(pass, v));
              Value mask;
              if (d.w.n % panelColumns != 0)
                mask = b.firstLanes(tile.lanes, b.sub(b.constant(d.w.n), column));
              b.storeFloats(contraction.sum(inTile, v), b.row(yHead, d.y, b.add(tileFirst, inTile)), d.y.type,
                            Chunk{column, tile.lanes, mask});
            }
          });
        });
      });
    });
  });
}

} // namespace k2c::emit

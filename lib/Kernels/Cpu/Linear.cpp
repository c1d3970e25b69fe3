//===- Linear.cpp - Linears: all rows, the slots of an expert ------------------------------===//
//
// An item is a block of rows (or an expert's slots) x one panel; row tiles of `mr` rows go through PanelContraction,
// and the epilogue, a list of element operations, works on the finished sums, vector by vector, before they are stored.
// On a GPU the worker is a CTA, whose warps share panels (CtaPanels.h).
//
//===----------------------------------------------------------------------===//
#include "Contraction.h"
#include "CtaPanels.h"
#include "Emitters.h"
#include "LinearRows.h"
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
  return (d.grouped || tile.rowsPerItem > 0) && (d.normEps > 0 || (!tile.isOfWarp() && rowsCollide(d.x, tile)));
}

/// Staged rows are an odd number of cache lines apart.
static Rows stagedRows(const LinearDesc &d) {
  int64_t line = 64 / byteWidth(d.x.type), lines = (d.x.width + line - 1) / line;
  return Rows{d.x.space, d.x.width, (lines | 1) * line, d.x.type};
}

/// Rows that are staged together: a block, or as many slots of an expert as fill half of the second cache.
static int64_t stagedRowCount(const LinearDesc &d, const TileConfig &tile) {
  constexpr int64_t minTiles = 4, bytes = 512 << 10;
  if (tile.isOfWarp())
    return CtaPanels::rowsAtMost(tile);
  int64_t fit = bytes / (stagedRows(d).stride * byteWidth(d.x.type)) / tile.mr;
  return d.grouped ? std::max(fit, minTiles) * tile.mr : tile.rowsPerItem;
}

int64_t linearBytes(const LinearDesc &d, const TileConfig &tile) {
  const int64_t workers = tile.isOfWarp() ? ctaWarps : 1; // a CTA has the scratch of its warps
  return isStaged(d, tile) ? stagedRowCount(d, tile) * stagedRows(d).stride * byteWidth(d.x.type) / workers : 0;
}

std::pair<Value, Value> rowsOfBlock(KernelBuilder &b, const TileConfig &tile, Value rows, Value block) {
  if (tile.rowsPerItem == 0)
    return {b.constant(0), rows};
  if (tile.isOfWarp()) // the warps share what is there
    return {b.mul(block, tile.rowsPerItem), b.min(b.mul(b.add(block, 1), tile.rowsPerItem), rows)};
  Value blocks = b.div(b.add(rows, tile.rowsPerItem - 1), tile.rowsPerItem);
  Value tiles = b.div(b.add(rows, tile.mr - 1), tile.mr);
  auto begin = [&](Value i) { return b.mul(b.div(b.mul(i, tiles), blocks), tile.mr); };
  return {begin(block), b.min(begin(b.add(block, 1)), rows)};
}

Value tileRows(KernelBuilder &b, const TileConfig &tile, Value rows) {
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
      : b(b), d(d), tile(tile), arguments(b, d), input(d.x), warp(tile.isOfWarp() ? warpOfCta(b) : Value()),
        contraction(b, staged(), d.w, d.order, tile, d.w.parts == 2, warp), ofCta(b, contraction, input, tile, warp) {}

  void emit() {
    if (!tile.isOfWarp())
      return d.grouped ? emitGrouped() : emitBlocks();
    runByCta(b);
    d.grouped ? emitGroupedByCta() : emitBlocks();
  }

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
  void emitGroupedByCta();
  Value emitExpertByCta(Value first, Value last, const MatrixAt &expert, Value before);
  void emitExpert(Value first, Value last, const MatrixAt &expert, Value firstPanel, Value lastPanel);
  void stageBlock(Value first, Value last);
  void emitByCta(Value xFirst, Value first, const CtaPanels::Share &share, const MatrixAt &matrix, Value firstPanel,
                 Value lastPanel, Value step);
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
  Value warp; ///< of the CTA, where that is the worker
  PanelContraction contraction;
  CtaPanels ofCta; ///< of a warp's tile
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

/// Experts with slots one by one: of 32 at a time, the first that ends behind where they begin. Which CTA computes what
/// of an expert goes on where that of the one before it has ended, so that all have equally many panels, whichever
/// experts have slots.
void LinearEmitter::emitGroupedByCta() {
  Value offsets = arguments.permutation.offsets, none = b.constant(b.i32(), tile.lanes);
  Value ids = b.laneIds(b.i32(), tile.lanes);
  b.repeat({b.constant(0), b.constant(b.i32(), 0)}, [&](ValueRange state) {
    Value from = state[0], first = b.loadI32(offsets, from);
    Value exists = b.firstLanes(tile.lanes, b.sub(b.constant(d.w.count), from));
    Value ends = b.load(b.vec(b.i32(), tile.lanes), b.at(offsets, b.add(from, 1), DType::I32), DType::I32, exists);
    Value hasSlots = b.compare(Compare::Gt, ends, b.splat(first, tile.lanes));
    Value skipped = b.smallestLane(b.select(hasSlots, ids, b.splat(none, tile.lanes)));
    Value expert = b.add(from, b.extend(skipped)), isFound = b.compare(Compare::Lt, skipped, none);
    Value behind = b.choose(
        isFound, b.i32(),
        [&] {
          Value weights = b.loadPtr(arguments.w, expert), isAbsent = b.compare(Compare::Eq, b.integerOf(weights), 0);
          b.failAbsent(isAbsent, b.at(arguments.w, expert, DType::I64));
          Value last = b.loadI32(offsets, b.add(expert, 1));
          return b.choose(
              isAbsent, b.i32(), [&] { return Values{state[1]}; },
              [&] {
                return Values{
                    emitExpertByCta(b.extend(first), b.extend(last), {expert, globalPointer(b, weights)}, state[1])};
              });
        },
        [&] { return Values{state[1]}; })[0];
    Value next = b.min(b.add(expert, 1), b.add(from, tile.lanes));
    return Values{b.compare(Compare::Lt, next, d.w.count), next, behind};
  });
}

/// Slots [first, last). `before`: the CTA that has the first panels, of which those that are computed at once go to a
/// CTA. Returns that of the next expert.
Value LinearEmitter::emitExpertByCta(Value first, Value last, const MatrixAt &expert, Value before) {
  const int64_t panels = panelCount(d.w), most = CtaPanels::rowsAtMost(tile);
  Value own = b.workerField(abi::worker::index), ctas = b.workerField(abi::worker::count);
  return b.loop(first, last, most, before, [&](Value block, ValueRange carried) {
    Value blockEnd = b.min(b.add(block, most), last), xFirst = b.row(arguments.x, d.x, block);
    CtaPanels::Share share = ofCta.shareOf(b.sub(blockEnd, block));
    Value distance = b.sub(own, carried[0]);
    distance = b.select(b.compare(Compare::Lt, distance, 0), b.add(distance, ctas), distance);
    Value firstPanel = b.mul(b.extend(distance), share.panels);
    if (isStaged(d, tile)) {
      b.when(b.compare(Compare::Lt, firstPanel, panels), [&] { stageBlock(block, blockEnd); });
      xFirst = b.scratch(0);
    }
    emitByCta(xFirst, block, share, expert, firstPanel, b.constant(panels), b.mul(b.extend(ctas), share.panels));
    return Values{b.rem(b.add(carried[0], b.truncate(ofCta.roundsOf(panels, share))), ctas)};
  })[0];
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

/// Nobody reads rows that were staged before: CtaPanels::run ends with all warps at one place.
void LinearEmitter::stageBlock(Value first, Value last) {
  Value own = tile.isOfWarp() ? b.add(first, warp) : first;
  b.loop(own, last, tile.isOfWarp() ? ctaWarps : 1, [&](Value row) {
    Value from = b.row(arguments.x, d.x, row), to = b.row(b.scratch(0), input, b.sub(row, first));
    if (d.normEps > 0)
      return emitNormRow(b, {from, arguments.norm, to, d.x.type, d.normWeight, input.type, d.x.width, d.normEps});
    copyRow(b, from, d.x.type, to, input.type, d.x.width);
  });
  if (tile.isOfWarp())
    meetInCta(b);
}

/// The rows of `share` from `first` on, whose input lies at `xFirst`, with panels from firstPanel on that are `step`
/// apart.
void LinearEmitter::emitByCta(Value xFirst, Value first, const CtaPanels::Share &share, const MatrixAt &matrix,
                              Value firstPanel, Value lastPanel, Value step) {
  Value zero = b.constant(0);
  ofCta.run(
      xFirst, share, firstPanel, lastPanel, step,
      [&](Value panel) { return contraction.panel(matrix.weights, zero, panel); },
      [&](Value row, Value inTile, Value panel, Value ofPair) {
        finishRow(b.add(first, row), inTile, matrix.number, panel, /*pass=*/zero, ofPair);
      });
}

/// Rows [first, last) of `matrix`, whose input lies at `xFirst`, with panels [firstPanel, lastPanel).
void LinearEmitter::emitPanels(Value xFirst, Value first, Value last, const MatrixAt &matrix, Value firstPanel,
                               Value lastPanel) {
  Value rows = b.sub(last, first);
  if (tile.isOfWarp()) {
    CtaPanels::Share share = ofCta.shareOf(rows);
    return emitByCta(xFirst, first, share, matrix, firstPanel, lastPanel, share.panels);
  }
  Value rowsOfTile = tileRows(b, tile, rows);
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
    llvm::SmallDenseMap<int64_t, Value> sums;
    auto sumOf = [&](int64_t vector) {
      Value &known = sums[vector];
      return known = known ? known : contraction.sum(inTile, vector, ofPair);
    };
    Value result = emitElementwise(b, d.epilogue, tile.lanes, [&](int64_t input) -> Value {
      switch (LinearDesc::Input(input)) {
      case LinearDesc::Sum:
        return sumOf(v);
      case LinearDesc::UpSum:
        return tile.lanes > ofPanel ? b.rotate(sumOf(v), ofPanel) : sumOf(v + vectors);
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

} // namespace k2c::emit

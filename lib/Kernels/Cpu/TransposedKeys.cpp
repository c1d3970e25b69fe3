//===- TransposedKeys.cpp - Runs, tiles and partials ----------------------===//
//
// The loops around a block: which rows share keys, packing queries, closing partials, writing outputs. The inner loops
// of a block are in TransposedKeysBlock.cpp.
//
//===----------------------------------------------------------------------===//
#include "TransposedKeys.h"
#include "Emitters.h"
#include "Math.h"
#include <limits>

namespace k2c::emit {

TransposedKeysLayout transposedKeysLayout(const TileConfig &tile, int64_t heads, int64_t keyDim, int64_t valueDim,
                                          bool pairs) {
  int64_t rows = tile.rowsPerItem * heads;
  return {tile.lanes, tile.mr, pairs ? (keyDim + 1) / 2 : keyDim, valueDim, (rows + tile.mr - 1) / tile.mr, pairs};
}

Value TransposedKeysEmitter::minusInfinity() {
  return b.constantFloat(b.vec(b.f32(), layout.lanes), -std::numeric_limits<float>::infinity());
}

void TransposedKeysEmitter::emitItem(TokenRange tokens, Value firstHead, Value heads, FormFilter filter,
                                     const Partial &partial) {
  forSequenceRuns(b, tokens, filter, [&](Value sequence, Value first, Value last) {
    Run run{first, b.sub(last, first), firstHead, heads, sequence};
    // The step's tokens follow one another; the next head begins with the first of them.
    Value more = b.compare(Compare::Lt, last, b.rowCount(RowSpace::Token, 1));
    Value nextToken = b.select(more, last, b.constant(0));
    run.nextSequence = b.extend(b.loadI32(b.stepField(abi::step::row_seq), nextToken));
    run.nextHeads = b.select(more, b.constant(0), b.constant(1));
    run.partial = partial;
    run.positionOffset = emitPositionOffset(b, shape.group, sequence);
    run.rows = b.mul(run.tokens, heads);
    run.tiles = b.div(b.add(run.rows, layout.mr - 1), layout.mr);
    run.tileRows = b.div(b.sub(b.add(run.rows, run.tiles), 1), run.tiles);
    run.tiles = b.div(b.sub(b.add(run.rows, run.tileRows), 1), run.tileRows);
    emitRun(run);
  });
}

TransposedKeysEmitter::Tile TransposedKeysEmitter::tileAt(const Run &run, Value index) {
  Value first = b.mul(index, run.tileRows);
  return {b.atBytes(b.scratch(0), b.mul(index, layout.tileBytes())), first,
          b.min(b.sub(run.rows, first), run.tileRows)};
}

void TransposedKeysEmitter::emitRun(Run run) {
  b.loop(b.constant(0), run.tiles, 1, [&](Value index) { startTile(run, tileAt(run, index)); });
  Value lastPosition = b.add(b.sub(b.add(run.firstToken, run.tokens), 1), run.positionOffset);
  Value table = b.loadPtr(b.stepField(abi::step::block_tables), b.constant(shape.group));
  auto slotOf = [&](Value sequence, Value block) {
    Value pages = b.at(table, b.mul(sequence, b.stepField(abi::step::block_stride)), DType::I32);
    return b.mul(b.extend(b.loadI32(pages, block)), softmaxBlock);
  };
  Value blocks = b.add(b.div(lastPosition, softmaxBlock), 1), zero = b.constant(0);
  BlockRange range = blocksOf(b, run.partial, blocks, lastPosition);
  run.firstKey = b.mul(range.first, softmaxBlock);
  b.loop(range.first, range.end, 1, [&](Value index) {
    Value start = b.mul(index, softmaxBlock), next = b.add(index, 1), isLast = b.compare(Compare::Eq, next, blocks);
    Block block{slotOf(run.sequence, index), start, b.min(b.sub(b.add(lastPosition, 1), start), softmaxBlock)};
    block.upcoming = slotOf(b.select(isLast, run.nextSequence, run.sequence), b.select(isLast, zero, next));
    block.upcomingHeads = b.select(isLast, run.nextHeads, zero);
    source.prepare(block.slot, block.count, block.upcoming);
    b.when(isLast, [&] { fetch(block); });
    transposeKeys(block);
    if (layout.pairs)
      transposeValues(block);
    b.loop(zero, run.tiles, 1, [&](Value index) {
      Tile at = tileAt(run, index);
      Value lastSeen = b.add(positionOf(at.state, b.sub(at.rows, 1)), 1);
      Value keys = b.min(b.sub(lastSeen, start), softmaxBlock);
      b.when(b.compare(Compare::Gt, keys, 0), [&] {
        restart(run, at, start);
        b.switchOn(at.rows, 1, layout.mr, [&](int64_t rows) { emitBlock(at, block, keys, rows); });
      });
    });
  });
  b.loop(b.constant(0), run.tiles, 1, [&](Value index) {
    Tile at = tileAt(run, index);
    auto finish = [&] { finishTile(run, at); };
    if (run.partial.buffer)
      b.choose(run.partial.isPartial, [&] { storePartial(run, at); }, finish);
    else
      finish();
    if (shape.maxLogit)
      b.loop(b.constant(0), at.rows, 1, [&](Value row) {
        captureLargest(b, shape, layer, headOf(run, at, row), loadScalar(at.state, TransposedKeysLayout::Largest, row));
      });
  });
}

/// Queries as the keys multiply with them, positions, an empty partial.
void TransposedKeysEmitter::startTile(const Run &run, const Tile &at) {
  storeRowState(minusInfinity(), at.state, TransposedKeysLayout::Max);
  storeRowState(minusInfinity(), at.state, TransposedKeysLayout::Largest);
  storeRowState(b.zeros(layout.lanes), at.state, TransposedKeysLayout::Sum);
  b.loop(b.constant(0), at.rows, 1, [&](Value row) {
    Value token = tokenOf(run, at, row), position = b.truncate(b.add(token, run.positionOffset));
    b.store(position, b.at(rowState(at.state, TransposedKeysLayout::Position), row, DType::I32), DType::I32);
    packQuery(rowOf(at.state, 0, layout.queryBytes(), row), source.query(token, headOf(run, at, row)));
    b.loop(0, layout.outputBytes() / layout.vectorBytes(), 1, [&](Value vector) {
      Value to = b.atBytes(partialRow(at.state, row), b.mul(vector, layout.vectorBytes()));
      b.storeFloats(b.zeros(layout.lanes), to, DType::F32);
    });
  });
}

/// A query row as units; a zero completes a last pair.
void TransposedKeysEmitter::packQuery(Value to, const Pieces &query) {
  int64_t step = this->step(), offset = 0;
  for (const Piece &piece : query) {
    Value units = b.at(to, offset, DType::F32);
    b.columns(piece.width, [&](const Chunk &chunk) {
      b.storeFloats(b.loadFloats(piece.pointer, piece.type, chunk), units, unitType(), chunk);
    });
    if (piece.width % step != 0)
      b.storeFloats(b.number(0.0f), b.at(units, piece.width, unitType()), unitType());
    offset += (piece.width + step - 1) / step;
  }
}

/// Rows whose partial ends at `start`, behind the first key, close it and begin another. C(p) is a multiple of 1024.
void TransposedKeysEmitter::restart(const Run &run, const Tile &at, Value start) {
  Value zero = b.constant(0);
  Value possible = b.bitAnd(b.compare(Compare::Eq, b.bitAnd(start, b.constant(1023)), zero),
                            b.compare(Compare::Gt, start, run.firstKey));
  auto restartRow = [&](Value row) {
    Value position = positionOf(at.state, row), length = emitRestart(b, position);
    Value ends = b.compare(Compare::Eq, b.bitAnd(start, b.sub(length, 1)), zero);
    b.when(b.bitAnd(ends, b.compare(Compare::Ge, position, start)), [&] {
      closePartial(at, row, b.compare(Compare::Gt, start, length));
      storeScalar(b.number(-std::numeric_limits<float>::infinity()), at.state, TransposedKeysLayout::Max, row);
      storeScalar(b.number(0.0f), at.state, TransposedKeysLayout::Sum, row);
      Value partial = partialRow(at.state, row);
      b.columns(layout.valueDim,
                [&](const Chunk &chunk) { b.storeFloats(b.zeros(layout.lanes), partial, DType::F32, chunk); });
    });
  };
  b.when(possible, [&] { b.loop(b.constant(0), at.rows, 1, restartRow); });
}

/// The partial of a row joins its total, or is the first (`merges` false).
void TransposedKeysEmitter::closePartial(const Tile &at, Value row, Value merges) {
  Value state = at.state, partial = partialRow(state, row), total = totalRow(state, row);
  Value max = loadScalar(state, TransposedKeysLayout::Max, row),
        sum = loadScalar(state, TransposedKeysLayout::Sum, row);
  auto store = [&](Value newMax, Value newSum, llvm::function_ref<Value(Value, const Chunk &)> column) {
    storeScalar(newMax, state, TransposedKeysLayout::TotalMax, row);
    storeScalar(newSum, state, TransposedKeysLayout::TotalSum, row);
    b.columns(layout.valueDim, [&](const Chunk &chunk) {
      b.storeFloats(column(b.loadFloats(partial, DType::F32, chunk), chunk), total, DType::F32, chunk);
    });
  };
  auto join = [&] {
    Value totalMax = loadScalar(state, TransposedKeysLayout::TotalMax, row);
    Value totalSum = loadScalar(state, TransposedKeysLayout::TotalSum, row), next = larger(totalMax, max);
    Value a = emitExp(b, b.fsub(totalMax, next)), weight = emitExp(b, b.fsub(max, next));
    store(next, b.fma(sum, weight, b.fmul(totalSum, a)), [&](Value column, const Chunk &chunk) {
      return b.fma(column, b.splat(weight), b.fmul(b.loadFloats(total, DType::F32, chunk), b.splat(a)));
    });
  };
  b.choose(merges, join, [&] { store(max, sum, [](Value column, const Chunk &) { return column; }); });
}

void TransposedKeysEmitter::finishTile(const Run &run, const Tile &at) {
  b.loop(b.constant(0), at.rows, 1, [&](Value row) {
    Value position = positionOf(at.state, row);
    Value several = b.compare(Compare::Ge, position, emitRestart(b, position));
    b.when(several, [&] { closePartial(at, row, several); });
    auto either = [&](Value total, Value partial) { return b.select(several, total, partial); };
    Value sum = either(loadScalar(at.state, TransposedKeysLayout::TotalSum, row),
                       loadScalar(at.state, TransposedKeysLayout::Sum, row));
    Value factor = b.splat(b.fdiv(b.number(1.0f), sum));
    Value offset = either(b.constant(layout.totalOffset()), b.constant(layout.partialOffset()));
    Value from = b.atBytes(at.state, b.add(b.mul(row, layout.outputBytes()), offset));
    Value to = source.output(tokenOf(run, at, row), headOf(run, at, row));
    b.columns(layout.valueDim, [&](const Chunk &chunk) {
      b.storeFloats(b.fmul(b.loadFloats(from, DType::F32, chunk), factor), to, output, chunk);
    });
  });
}

void TransposedKeysEmitter::storePartial(const Run &run, const Tile &at) {
  b.loop(b.constant(0), at.rows, 1, [&](Value row) {
    Value to = run.partial.buffer->partialAt(tokenOf(run, at, row), headOf(run, at, row), run.partial.index);
    Value from = partialRow(at.state, row);
    copyRow(b, from, DType::F32, to, DType::F32, layout.valueDim);
    auto store = [&](TransposedKeysLayout::RowState which, int64_t element) {
      b.storeFloats(loadScalar(at.state, which, row), b.at(to, element, DType::F32), DType::F32);
    };
    store(TransposedKeysLayout::Max, layout.valueDim);
    store(TransposedKeysLayout::Sum, layout.valueDim + 1);
  });
}

} // namespace k2c::emit

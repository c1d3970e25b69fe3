//===- Attention.cpp - Runs, tiles and blocks ----------------------------------------------===//
//
// The loops around the block: which rows share keys, packing queries, closing partials, writing outputs. The inner
// loops of a block are in AttentionBlock.cpp.
//
//===----------------------------------------------------------------------===//
#include "Attention.h"
#include "Emitters.h"
#include "Math.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include <cassert>
#include <limits>

namespace k2c::emit {

AttentionLayout attentionLayout(const TileConfig &tile, int64_t heads, int64_t keyDim, int64_t valueDim, bool pairs) {
  int64_t rows = tile.rowsPerItem * heads;
  return {tile.lanes, pairs ? (keyDim + 1) / 2 : keyDim, valueDim, (rows + tile.lanes - 1) / tile.lanes, pairs};
}

void forSequenceRuns(KernelBuilder &b, TokenRange tokens, FormFilter filter,
                     llvm::function_ref<void(Value, Value, Value)> body) {
  Value last = tokens.last;
  Value sequences = b.stepField(abi::step::row_seq), begins = b.stepField(abi::step::seq_begin);
  b.repeat(tokens.first, [&](ValueRange state) {
    Value sequence = b.extend(b.loadI32(sequences, state[0]));
    Value end = b.min(b.extend(b.loadI32(begins, b.add(sequence, 1))), last);
    forRuns(b, filter, state[0], end, [&](Value runFirst, Value runLast) { body(sequence, runFirst, runLast); });
    return Values{b.compare(Compare::Lt, end, last), end};
  });
}

void captureLargest(KernelBuilder &b, const AttentionShape &shape, Value layer, Value head, Value largest) {
  Value captured = b.stepField(abi::step::capture_max_logit);
  b.when(b.compare(Compare::Ne, b.integerOf(captured), 0),
         [&] { b.atomicMax(b.at(captured, b.add(b.mul(layer, shape.heads), head), DType::F32), largest); });
}

Value AttentionEmitter::minusInfinity() {
  return b.constantFloat(b.vec(b.f32(), layout.lanes), -std::numeric_limits<float>::infinity());
}

void AttentionEmitter::emitItem(TokenRange tokens, Value firstHead, Value heads, FormFilter filter) {
  emitItem(tokens, firstHead, heads, filter, {b.constant(0), b.constant(layout.valueDim)}, {});
}

void AttentionEmitter::emitItem(TokenRange tokens, Value firstHead, Value heads, FormFilter filter, ValuePart part,
                                const Partial &partial) {
  forSequenceRuns(b, tokens, filter, [&](Value sequence, Value first, Value last) {
    Value positionOffset = emitPositionOffset(b, shape.group, sequence);
    emitRun({first, b.sub(last, first), firstHead, heads, sequence, part, partial, positionOffset, Value()});
  });
}

void AttentionEmitter::emitRun(Run run) {
  Value rows = b.mul(run.tokens, run.heads);
  Value tiles = b.div(b.add(rows, layout.lanes - 1), layout.lanes);
  Value lastToken = b.sub(b.add(run.firstToken, run.tokens), 1);
  Value lastPosition = positionOf(run, lastToken);
  Value table = b.loadPtr(b.stepField(abi::step::block_tables), b.constant(shape.group));
  Value pages = b.at(table, b.mul(run.sequence, b.stepField(abi::step::block_stride)), DType::I32);
  Value blocks = b.add(b.div(lastPosition, softmaxBlock), 1);
  auto slotOf = [&](Value at) { return b.mul(b.extend(b.loadI32(pages, at)), softmaxBlock); };
  auto keysFrom = [&](Value start) { return b.min(b.sub(b.add(lastPosition, 1), start), softmaxBlock); };
  BlockRange range = blocksOf(b, run.partial, blocks, lastPosition);
  run.firstKey = b.mul(range.first, softmaxBlock);
  fetchPages(run.firstToken, range.first);
  b.loop(b.constant(0), tiles, 1, [&](Value tile) { startTile(run, tile); });
  b.loop(range.first, range.end, 1, [&](Value block) {
    Value start = b.mul(block, softmaxBlock);
    Value slot = slotOf(block), upcoming = slotOf(b.min(b.add(block, 1), b.sub(blocks, 1)));
    source.prepare(slot, keysFrom(start), upcoming);
    if (layout.pairs && !layout.transposesInParts())
      transposeValues(run.part, slot, keysFrom(start));
    b.loop(b.constant(0), tiles, 1, [&](Value tile) {
      Value firstRow = b.mul(tile, layout.lanes), lastRow = b.sub(b.min(b.add(firstRow, layout.lanes), rows), 1);
      auto seenFrom = [&](Value row) { return b.sub(b.add(positionOf(run, tokenOf(run, row)), 1), start); };
      Value keys = b.min(seenFrom(lastRow), softmaxBlock);
      b.when(b.compare(Compare::Gt, keys, 0), [&] {
        Block seen{slot, start, keys, b.max(b.min(seenFrom(firstRow), keys), 0)};
        restart(run, tile, start);
        scores(tile, seen);
        accumulateValues(run, tile, seen, softmax(tile, seen));
      });
    });
  });
  Value nextToken = b.add(lastToken, 1);
  b.when(b.compare(Compare::Lt, nextToken, b.rowCount(RowSpace::Token, 1)),
         [&] { fetchPages(nextToken, b.constant(0)); });
  auto finish = [&] { b.loop(b.constant(0), tiles, 1, [&](Value tile) { finishTile(run, tile); }); };
  if (run.partial.buffer)
    b.choose(run.partial.isPartial, [&] { storePartial(run, b.constant(0)); }, finish);
  else
    finish();
  if (shape.maxLogit)
    b.loop(b.constant(0), tiles, 1, [&](Value tile) {
      forLanes(run, tile, [&](Value lane, Value, Value head) {
        captureLargest(b, shape, layer, head,
                       b.loadFloats(b.at(rowState(tile, AttentionLayout::Largest), lane, DType::F32), DType::F32, 0));
      });
    });
}

/// The page of a block of the token's sequence, which is read soon.
void AttentionEmitter::fetchPages(Value token, Value block) {
  Value sequence = b.extend(b.loadI32(b.stepField(abi::step::row_seq), token));
  Value position = b.add(token, emitPositionOffset(b, shape.group, sequence));
  Value table = b.loadPtr(b.stepField(abi::step::block_tables), b.constant(shape.group));
  Value page = b.extend(b.loadI32(table, b.add(b.mul(sequence, b.stepField(abi::step::block_stride)), block)));
  Value keys = b.sub(b.add(position, 1), b.mul(block, softmaxBlock));
  source.fetch(b.mul(page, softmaxBlock), b.min(keys, softmaxBlock));
}

void AttentionEmitter::forLanes(const Run &run, Value tile,
                                llvm::function_ref<void(Value lane, Value token, Value head)> body) {
  Value first = b.mul(tile, layout.lanes), last = b.sub(b.mul(run.tokens, run.heads), 1);
  b.loop(0, layout.lanes, 1, [&](Value lane) {
    Value row = b.min(b.add(first, lane), last);
    body(lane, tokenOf(run, row), b.add(run.firstHead, b.rem(row, run.heads)));
  });
}

Value AttentionEmitter::rowPointers(const Run &run, Value tile,
                                    llvm::function_ref<Value(Value token, Value head)> pointer) {
  Value pointers = b.stack(layout.lanes * byteWidth(DType::I64));
  forLanes(run, tile, [&](Value lane, Value token, Value head) {
    b.store(pointer(token, head), b.at(pointers, lane, DType::I64), DType::I64);
  });
  return pointers;
}

void AttentionEmitter::forColumns(const ValuePart &part, llvm::function_ref<void(Value column)> body) {
  b.loop(part.begin, part.end, 1, body);
}

/// Queries to [k][lanes], positions and C(p) of the lanes, an empty partial.
void AttentionEmitter::startTile(const Run &run, Value tile) {
  Value zero = b.zeros(layout.lanes);
  forColumns(run.part,
             [&](Value c) { b.storeFloats(zero, vectorAt(inTile(tile, layout.partialOffset()), c), DType::F32); });
  storeRowState(minusInfinity(), tile, AttentionLayout::Max);
  storeRowState(zero, tile, AttentionLayout::Sum);
  storeRowState(minusInfinity(), tile, AttentionLayout::Largest);
  Pieces query;
  Values pointers;
  forLanes(run, tile, [&](Value lane, Value token, Value head) {
    Value position = positionOf(run, token);
    b.store(b.truncate(position), b.at(rowState(tile, AttentionLayout::Position), lane, DType::I32), DType::I32);
    Value restart = b.truncate(emitRestart(b, position));
    b.store(restart, b.at(rowState(tile, AttentionLayout::Restart), lane, DType::I32), DType::I32);
    query = source.query(token, head);
    for (const Piece &piece : query) {
      pointers.push_back(b.stack(layout.lanes * byteWidth(DType::I64)));
      b.store(piece.pointer, b.at(pointers.back(), lane, DType::I64), DType::I64);
    }
  });
  Value to = inTile(tile, layout.queryOffset());
  for (auto [piece, rows] : llvm::zip_equal(query, pointers)) {
    packQueries(piece, rows, to);
    to = vectorAt(to, b.constant((piece.width + step() - 1) / step()));
  }
}

/// A piece of the queries of all lanes, whose pointers are at `pointers`: unit k to vector k.
void AttentionEmitter::packQueries(const Piece &piece, Value pointers, Value to) {
  int64_t chunk = layout.lanes * step(), whole = piece.width / chunk * chunk;
  auto turn = [&](Value firstUnit, int64_t elements) {
    Values rows;
    for (int64_t lane = 0; lane < layout.lanes; ++lane) {
      Value from = b.at(b.loadPtr(pointers, b.constant(lane)), b.mul(firstUnit, step()), piece.type);
      rows.push_back(loadUnits(b, from, piece.type, layout.pairs, layout.lanes, elements));
    }
    rows = transpose(b, rows);
    for (int64_t unit = 0; unit * step() < elements; ++unit)
      b.store(rows[unit], vectorAt(to, b.add(firstUnit, unit)), DType::F32);
  };
  b.loop(0, whole / step(), layout.lanes, [&](Value firstUnit) { turn(firstUnit, chunk); });
  if (whole < piece.width)
    turn(b.constant(whole / step()), piece.width - whole);
}

/// Lanes whose partial ends at `start`, behind the first key, close it. C(p) is a multiple of 1024.
void AttentionEmitter::restart(const Run &run, Value tile, Value start) {
  Value zero = b.constant(0);
  Value possible = b.bitAnd(b.compare(Compare::Eq, b.bitAnd(start, b.constant(1023)), zero),
                            b.compare(Compare::Gt, start, run.firstKey));
  b.when(possible, [&] {
    Value restarts = loadIntegers(tile, AttentionLayout::Restart);
    Value starts = b.splat(b.truncate(start), layout.lanes);
    Value within = b.bitAnd(starts, b.sub(restarts, 1));
    Value mask =
        b.bitAnd(b.compare(Compare::Eq, within, 0), sees(loadIntegers(tile, AttentionLayout::Position), start));
    closePartials(run, tile, mask, b.compare(Compare::Gt, starts, restarts));
  });
}

void AttentionEmitter::closePartials(const Run &run, Value tile, Value mask, Value merges) {
  Value max = loadRowState(tile, AttentionLayout::Max), sum = loadRowState(tile, AttentionLayout::Sum);
  Value totalMax = loadRowState(tile, AttentionLayout::TotalMax),
        totalSum = loadRowState(tile, AttentionLayout::TotalSum);
  Value next = larger(totalMax, max);
  Value a = emitExp(b, b.fsub(totalMax, next)), weight = emitExp(b, b.fsub(max, next));
  auto join = [&](Value total, Value merged, Value partial) {
    return b.select(mask, b.select(merges, merged, partial), total);
  };
  storeRowState(join(totalMax, next, max), tile, AttentionLayout::TotalMax);
  storeRowState(join(totalSum, b.fma(sum, weight, b.fmul(totalSum, a)), sum), tile, AttentionLayout::TotalSum);
  storeRowState(b.select(mask, minusInfinity(), max), tile, AttentionLayout::Max);
  Value zero = b.zeros(layout.lanes);
  storeRowState(b.select(mask, zero, sum), tile, AttentionLayout::Sum);
  forColumns(run.part, [&](Value c) {
    Value partialAt = vectorAt(inTile(tile, layout.partialOffset()), c);
    Value totalAt = vectorAt(inTile(tile, layout.totalOffset()), c);
    Value partial = loadVector(partialAt), total = loadVector(totalAt);
    b.storeFloats(join(total, b.fma(partial, weight, b.fmul(total, a)), partial), totalAt, DType::F32);
    b.storeFloats(b.select(mask, zero, partial), partialAt, DType::F32);
  });
}

void AttentionEmitter::finishTile(const Run &run, Value tile) {
  Value positions = loadIntegers(tile, AttentionLayout::Position);
  Value restarts = loadIntegers(tile, AttentionLayout::Restart);
  // Positions ascend; only from the first restart on has a lane more than one partial.
  Value several = b.compare(Compare::Ge, b.extend(b.lane(positions, layout.lanes - 1)), softmaxRestart(0));
  b.when(several, [&] {
    closePartials(run, tile, b.laneMask(layout.lanes, 0, layout.lanes), b.compare(Compare::Ge, positions, restarts));
  });
  auto either = [&](Value total, Value partial) { return b.select(several, total, partial); };
  Value sum = either(loadRowState(tile, AttentionLayout::TotalSum), loadRowState(tile, AttentionLayout::Sum));
  Value offset = either(b.constant(layout.totalOffset()), b.constant(layout.partialOffset()));
  Value factor = b.fdiv(b.constantFloat(sum.getType(), 1.0f), sum);
  Value rows = rowPointers(run, tile, [&](Value token, Value head) { return source.output(token, head); });
  storeRows(run.part, b.atBytes(inTile(tile, 0), offset), factor, rows, output);
}

/// Columns of the part, vectors of lanes at `from`, times `factor` when there is one, to the row of each lane.
void AttentionEmitter::storeRows(const ValuePart &part, Value from, Value factor, Value pointers, DType type) {
  int64_t perUnit = unitBytes / byteWidth(type), chunk = layout.lanes * perUnit;
  int64_t whole = layout.valueDim / chunk * chunk;
  assert(valuePartColumns(layout.lanes) % chunk == 0 && "a part begins where a vector does");
  auto turn = [&](Value first, int64_t columns) {
    auto column = [&](int64_t c) {
      if (c >= columns)
        return b.zeros(layout.lanes);
      Value value = loadVector(vectorAt(from, b.add(first, c)));
      return factor ? b.fmul(value, factor) : value;
    };
    Values units;
    for (int64_t c = 0; c < chunk; c += perUnit)
      units.push_back(perUnit == 2 ? roundToPairs(b, column(c), column(c + 1)) : b.bitsOf(column(c)));
    for (auto [lane, row] : llvm::enumerate(transpose(b, units)))
      storeUnits(b, row, b.at(b.loadPtr(pointers, b.constant(lane)), first, type), type, columns);
  };
  b.loop(part.begin, b.min(part.end, whole), chunk, [&](Value first) { turn(first, chunk); });
  if (whole < layout.valueDim)
    b.when(b.compare(Compare::Gt, part.end, whole), [&] { turn(b.constant(whole), layout.valueDim - whole); });
}

/// The columns of the run's part; who has the first column writes m and l.
void AttentionEmitter::storePartial(const Run &run, Value tile) {
  Value rows = rowPointers(run, tile, [&](Value token, Value head) {
    return run.partial.buffer->partialAt(token, head, run.partial.index);
  });
  storeRows(run.part, inTile(tile, layout.partialOffset()), Value(), rows, DType::F32);
  b.when(b.compare(Compare::Eq, run.part.begin, 0), [&] {
    b.loop(0, layout.lanes, 1, [&](Value lane) {
      auto copy = [&](AttentionLayout::RowState which, int64_t column) {
        Value element = b.loadFloats(b.at(rowState(tile, which), lane, DType::F32), DType::F32, 0);
        b.storeFloats(element, b.at(b.loadPtr(rows, lane), column, DType::F32), DType::F32);
      };
      copy(AttentionLayout::Max, layout.valueDim);
      copy(AttentionLayout::Sum, layout.valueDim + 1);
    });
  });
}

} // namespace k2c::emit

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
#include <limits>

namespace k2c::emit {

AttentionLayout attentionLayout(const TileConfig &tile, int64_t heads, int64_t keyDim, int64_t valueDim, bool pairs) {
  int64_t rows = tile.rowsPerItem * heads;
  return {tile.lanes, pairs ? (keyDim + 1) / 2 : keyDim, valueDim, (rows + tile.lanes - 1) / tile.lanes};
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
    emitRun({first, b.sub(last, first), firstHead, heads, sequence, part, partial, Value()});
  });
}

void AttentionEmitter::emitRun(Run run) {
  Value rows = b.mul(run.tokens, run.heads);
  Value tiles = b.div(b.add(rows, layout.lanes - 1), layout.lanes);
  Value lastToken = b.sub(b.add(run.firstToken, run.tokens), 1);
  Value lastPosition = b.extend(b.loadI32(b.stepField(abi::step::positions), lastToken));
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
    b.loop(b.constant(0), tiles, 1, [&](Value tile) {
      Value lastRow = b.sub(b.min(b.mul(b.add(tile, 1), layout.lanes), rows), 1);
      Value token = b.add(run.firstToken, b.div(lastRow, run.heads));
      Value position = b.extend(b.loadI32(b.stepField(abi::step::positions), token));
      Value keys = b.min(b.sub(b.add(position, 1), start), softmaxBlock);
      b.when(b.compare(Compare::Gt, keys, 0), [&] {
        restart(run, tile, start);
        scores(tile, slot, keys);
        auto attend = [&](Sight sight) {
          Value alpha = softmax(tile, start, keys, sight);
          weigh(run, tile, slot, start, keys, alpha, sight);
        };
        Value firstToken = b.add(run.firstToken, b.div(b.mul(tile, layout.lanes), run.heads));
        Value firstPosition = b.extend(b.loadI32(b.stepField(abi::step::positions), firstToken));
        b.choose(
            b.compare(Compare::Ge, firstPosition, b.sub(b.add(start, keys), 1)), [&] { attend(Sight::All); },
            [&] { attend(Sight::Some); });
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
                       b.loadFloats(b.at(single(tile, AttentionLayout::Largest), lane, DType::F32), DType::F32, 0));
      });
    });
}

/// The page of a block of the token's sequence, which is read soon.
void AttentionEmitter::fetchPages(Value token, Value block) {
  Value sequence = b.extend(b.loadI32(b.stepField(abi::step::row_seq), token));
  Value position = b.extend(b.loadI32(b.stepField(abi::step::positions), token));
  Value table = b.loadPtr(b.stepField(abi::step::block_tables), b.constant(shape.group));
  Value page = b.extend(b.loadI32(table, b.add(b.mul(sequence, b.stepField(abi::step::block_stride)), block)));
  Value keys = b.sub(b.add(position, 1), b.mul(block, softmaxBlock));
  source.fetch(b.mul(page, softmaxBlock), b.min(keys, softmaxBlock));
}

void AttentionEmitter::forLanes(const Run &run, Value tile,
                                llvm::function_ref<void(Value lane, Value token, Value head)> body) {
  Value first = b.mul(tile, layout.lanes);
  Value count = b.min(b.sub(b.mul(run.tokens, run.heads), first), layout.lanes);
  b.loop(b.constant(0), count, 1, [&](Value lane) {
    Value row = b.add(first, lane);
    body(lane, b.add(run.firstToken, b.div(row, run.heads)), b.add(run.firstHead, b.rem(row, run.heads)));
  });
}

void AttentionEmitter::forColumns(const ValuePart &part, llvm::function_ref<void(Value column)> body) {
  b.loop(part.begin, part.end, 1, body);
}

/// Queries to [k][lanes], positions and C(p) of the lanes, an empty state. Lanes without a row are before every key.
void AttentionEmitter::startTile(const Run &run, Value tile) {
  Value zero = b.zeros(layout.lanes);
  b.loop(0, layout.queryVectors, 1, [&](Value k) { b.storeFloats(zero, vectorAt(inTile(tile, 0), k), DType::F32); });
  forColumns(run.part, [&](Value c) {
    b.storeFloats(zero, vectorAt(inTile(tile, layout.partialOffset()), c), DType::F32);
    b.storeFloats(zero, vectorAt(inTile(tile, layout.totalOffset()), c), DType::F32);
  });
  storeSingle(minusInfinity(), tile, AttentionLayout::Max);
  storeSingle(zero, tile, AttentionLayout::Sum);
  storeSingle(zero, tile, AttentionLayout::TotalMax);
  storeSingle(zero, tile, AttentionLayout::TotalSum);
  storeSingle(minusInfinity(), tile, AttentionLayout::Largest);
  Type integers = b.vec(b.i32(), layout.lanes);
  storeSingle(b.fromBits(b.constant(integers, -1)), tile, AttentionLayout::Position);
  storeSingle(b.fromBits(b.constant(integers, 1024)), tile, AttentionLayout::Restart);
  Value positions = b.stepField(abi::step::positions);
  forLanes(run, tile, [&](Value lane, Value token, Value head) {
    Value position = b.loadI32(positions, token);
    b.store(position, b.at(single(tile, AttentionLayout::Position), lane, DType::I32), DType::I32);
    // The smallest power of two from 1024 on that is at least (p + 1) / 16.
    Value sixteenth = b.max(b.shr(b.add(position, 16), 4), 1024);
    Value bits = b.sub(b.constant(b.i32(), 32), b.leadingZeros(b.sub(sixteenth, 1)));
    Value restart = b.shl(b.constant(b.i32(), 1), bits);
    b.store(restart, b.at(single(tile, AttentionLayout::Restart), lane, DType::I32), DType::I32);
    packQuery(tile, lane, source.query(token, head));
  });
}

/// One lane of the tile's queries. Of pairs, the earlier element is in the low half; a last one alone has a zero above.
void AttentionEmitter::packQuery(Value tile, Value lane, const Pieces &query) {
  int64_t step = pairs ? 2 : 1, offset = 0;
  for (const Piece &piece : query) {
    Value to = b.at(inTile(tile, offset * layout.vectorBytes()), lane, DType::F32);
    b.loop(0, piece.width / step, 1, [&](Value k) {
      Value from = b.at(piece.pointer, b.mul(k, step), piece.type);
      Value element = pairs ? b.fromBits(b.load(b.i32(), from, piece.type)) : b.loadFloats(from, piece.type, 0);
      b.storeFloats(element, vectorAt(to, k), DType::F32);
    });
    if (piece.width % step != 0) {
      Value last = b.loadFloats(b.at(piece.pointer, piece.width - 1, piece.type), piece.type, 0);
      b.storeFloats(b.fromBits(b.shr(b.bitsOf(last), 16)), vectorAt(to, b.constant(piece.width / step)), DType::F32);
    }
    offset += (piece.width + step - 1) / step;
  }
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
  Value max = loadSingle(tile, AttentionLayout::Max), sum = loadSingle(tile, AttentionLayout::Sum);
  Value totalMax = loadSingle(tile, AttentionLayout::TotalMax), totalSum = loadSingle(tile, AttentionLayout::TotalSum);
  Value next = larger(totalMax, max);
  Value a = emitExp(b, b.fsub(totalMax, next)), weight = emitExp(b, b.fsub(max, next));
  auto join = [&](Value total, Value merged, Value partial) {
    return b.select(mask, b.select(merges, merged, partial), total);
  };
  storeSingle(join(totalMax, next, max), tile, AttentionLayout::TotalMax);
  storeSingle(join(totalSum, b.fma(sum, weight, b.fmul(totalSum, a)), sum), tile, AttentionLayout::TotalSum);
  storeSingle(b.select(mask, minusInfinity(), max), tile, AttentionLayout::Max);
  Value zero = b.zeros(layout.lanes);
  storeSingle(b.select(mask, zero, sum), tile, AttentionLayout::Sum);
  forColumns(run.part, [&](Value c) {
    Value partialAt = vectorAt(inTile(tile, layout.partialOffset()), c);
    Value totalAt = vectorAt(inTile(tile, layout.totalOffset()), c);
    Value partial = loadVector(partialAt), total = loadVector(totalAt);
    b.storeFloats(join(total, b.fma(partial, weight, b.fmul(total, a)), partial), totalAt, DType::F32);
    b.storeFloats(b.select(mask, zero, partial), partialAt, DType::F32);
  });
}

void AttentionEmitter::finishTile(const Run &run, Value tile) {
  Value positions = loadIntegers(tile, AttentionLayout::Position),
        restarts = loadIntegers(tile, AttentionLayout::Restart);
  closePartials(run, tile, b.laneMask(layout.lanes, 0, layout.lanes), b.compare(Compare::Ge, positions, restarts));
  Value sum = loadSingle(tile, AttentionLayout::TotalSum), total = inTile(tile, layout.totalOffset());
  forColumns(run.part, [&](Value c) {
    Value o = b.fdiv(loadVector(vectorAt(total, c)), sum);
    b.storeFloats(b.rounded(o, output), vectorAt(total, c), DType::F32);
  });
  forLanes(run, tile, [&](Value lane, Value token, Value head) {
    Value from = b.at(total, lane, DType::F32), to = source.output(token, head);
    // Rounded already: a bf16 is the upper half of its f32.
    bool halves = output == DType::BF16;
    Type bits = halves ? b.builder().getI16Type() : b.i32();
    forColumns(run.part, [&](Value c) {
      Value element = b.atBytes(vectorAt(from, c), b.constant(halves ? 2 : 0));
      b.store(b.load(bits, element, output), b.at(to, c, output), output);
    });
  });
}

/// The columns of the run's part, from the lanes to rows; who has the first column writes m and l.
void AttentionEmitter::storePartial(const Run &run, Value tile) {
  Value partial = inTile(tile, layout.partialOffset());
  forLanes(run, tile, [&](Value lane, Value token, Value head) {
    Value to = run.partial.buffer->partialAt(token, head, run.partial.index);
    auto copy = [&](Value from, Value column) {
      Value element = b.loadFloats(b.at(from, lane, DType::F32), DType::F32, 0);
      b.storeFloats(element, b.at(to, column, DType::F32), DType::F32);
    };
    forColumns(run.part, [&](Value c) { copy(vectorAt(partial, c), c); });
    b.when(b.compare(Compare::Eq, run.part.begin, 0), [&] {
      copy(single(tile, AttentionLayout::Max), b.constant(layout.valueDim));
      copy(single(tile, AttentionLayout::Sum), b.constant(layout.valueDim + 1));
    });
  });
}

} // namespace k2c::emit

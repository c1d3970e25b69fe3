//===- Rows.cpp - Kernels whose item is a row: embed, append, element-wise, ... ---------------===//
#include "Emitters.h"
#include "Math.h"

namespace k2c::emit {

void copyRow(KernelBuilder &b, Value from, DType fromType, Value to, DType toType, int64_t width) {
  b.columns(width, [&](const Chunk &chunk) { b.storeFloats(b.loadFloats(from, fromType, chunk), to, toType, chunk); });
}

/// The id of a token row, of the step's `ids`; below zero: it names no sample.
static Value idOfToken(KernelBuilder &b, Value ids, Value row) {
  Value given = b.loadI32(ids, row);
  return b.choose(
      b.compare(Compare::Lt, given, 0), b.i32(),
      [&] {
        Value sample = b.extend(b.bitNot(given)); // -1 - id
        Value known = b.compare(Compare::Lt, sample, b.stepField(abi::step::earlier_rows));
        return b.choose(
            known, b.i32(), [&] { return Values{b.loadI32(b.stepField(abi::step::earlier_samples), sample)}; },
            [&] { return Values{given}; });
      },
      [&] { return Values{given}; })[0];
}

/// Row `id` of `table` as row `row` of y.
static void lookUp(KernelBuilder &b, Value table, DType type, int64_t vocab, Value id, Value y, const Rows &rows,
                   Value row) {
  Value valid = b.bitAnd(b.compare(Compare::Ge, id, 0), b.compare(Compare::Lt, id, vocab));
  b.fail(b.bitNot(valid), K2RT_STATUS_OUT_OF_RANGE);
  b.when(valid, [&] {
    Value entry = b.at(table, b.mul(b.extend(id), rows.width), type);
    copyRow(b, entry, type, b.row(y, rows, row), rows.type, rows.width);
  });
}

void emitBody(KernelBuilder &b, const EmbedDesc &d, const TileConfig &) {
  Value table = b.argument(0), y = b.argument(2), ids = b.stepField(abi::step::token_ids);
  b.items([&](Value row) { lookUp(b, table, d.table, d.vocab, idOfToken(b, ids, row), y, d.y, row); });
}

void emitBody(KernelBuilder &b, const TokenIdsDesc &, const TileConfig &) {
  Value given = b.stepField(abi::step::token_ids), ids = b.argument(1);
  b.items([&](Value row) {
    Value id = idOfToken(b, given, row);
    b.fail(b.compare(Compare::Lt, id, 0), K2RT_STATUS_OUT_OF_RANGE);
    b.storeI32(id, ids, row);
  });
}

void emitBody(KernelBuilder &b, const LookupDesc &d, const TileConfig &) {
  Value ids = b.argument(0), table = b.argument(1), y = b.argument(2);
  b.items([&](Value row) { lookUp(b, table, d.table, d.vocab, b.loadI32(ids, row), y, d.y, row); });
}

void emitBody(KernelBuilder &b, const AppendDesc &d, const TileConfig &) {
  int64_t planes = d.planes.size();
  Value slots = b.loadPtr(b.stepField(abi::step::append_slots), b.constant(d.group));
  b.items([&](Value row) {
    Value slot = b.load(b.i64(), b.at(slots, row, DType::I64), DType::I64);
    for (int64_t i = 0; i < planes; ++i) {
      Value to = b.at(b.argument(planes + i), b.mul(slot, d.x[i].width), d.planes[i]);
      copyRow(b, b.row(b.argument(i), d.x[i], row), d.x[i].type, to, d.planes[i], d.x[i].width);
    }
  });
}

void emitBody(KernelBuilder &b, const RowwiseDesc &d, const TileConfig &) {
  b.items([&](Value row) {
    Values from;
    for (auto [i, input] : llvm::enumerate(d.inputs))
      from.push_back(b.row(b.argument(i), input, row));
    Value to = b.row(b.argument(d.inputs.size()), d.y, row);
    b.columns(d.y.width, [&](const Chunk &chunk) {
      Value result = emitElementwise(b, d.list, chunk.lanes, [&](int64_t input) {
        return b.loadFloats(from[input], d.inputs[input].type, chunk);
      });
      b.storeFloats(result, to, d.y.type, chunk);
    });
  });
}

void emitBody(KernelBuilder &b, const OutputRowsDesc &d, const TileConfig &) {
  Value x = b.argument(0), y = b.argument(2), outputs = b.stepField(abi::step::outputs);
  b.items([&](Value row) {
    Value wanted = b.extend(b.loadI32(outputs, row));
    Value valid =
        b.bitAnd(b.compare(Compare::Ge, wanted, 0), b.compare(Compare::Lt, wanted, b.rowCount(RowSpace::Token, 1)));
    b.fail(b.bitNot(valid), K2RT_STATUS_OUT_OF_RANGE);
    b.when(valid, [&] { copyRow(b, b.row(x, d.x, wanted), d.x.type, b.row(y, d.y, row), d.y.type, d.y.width); });
  });
}

void emitBody(KernelBuilder &b, const CaptureDesc &d, const TileConfig &) {
  Value x = b.argument(0), layer = b.integerOf(b.argument(2));
  Value capture = b.stepField(abi::step::capture_hidden);
  b.when(b.compare(Compare::Ne, b.integerOf(capture), 0), [&] {
    Value rows = b.stepField(abi::step::layer_rows);
    b.items([&](Value row) {
      Value to = b.at(capture, b.mul(b.add(b.mul(layer, rows), row), d.x.width), DType::F32);
      copyRow(b, b.row(x, d.x, row), d.x.type, to, DType::F32, d.x.width);
    });
  });
}

void forRuns(KernelBuilder &b, FormFilter filter, Value first, Value last,
             llvm::function_ref<void(Value, Value)> body) {
  if (filter == FormFilter::All)
    return b.when(b.compare(Compare::Lt, first, last), [&] { body(first, last); });
  Value forms = b.stepField(abi::step::row_form);
  int32_t wanted = filter == FormFilter::Expanded ? K2RT_FORM_EXPANDED : K2RT_FORM_ABSORBED;
  auto scan = [&](Value from, Compare wrong) {
    return b.advance(from, last, [&](Value row) { return b.compare(wrong, b.loadI32(forms, row), wanted); });
  };
  b.repeat(first, [&](ValueRange state) {
    Value runFirst = scan(state[0], Compare::Ne), runLast = scan(runFirst, Compare::Eq);
    b.when(b.compare(Compare::Lt, runFirst, runLast), [&] { body(runFirst, runLast); });
    return Values{b.compare(Compare::Lt, runLast, last), runLast};
  });
}

} // namespace k2c::emit

//===- SharedRows.cpp - Rows that all members of a group work on ----------===//
//
// They are counted in one item, as all go to each member, and copied in an item a row.
//
//===----------------------------------------------------------------------===//
#include "Emitters.h"
#include "ExchangeCounts.h"

namespace k2c::emit {

/// Of `rows` rows that go to each member, for which each returns `back`.
static void shareWithAll(KernelBuilder &b, int64_t members, Counts &sent, Value rows, Counts &returned, Value back) {
  b.loop(0, members, 1, [&](Value member) {
    sent.setCount(member, rows);
    sent.setFirst(member, b.constant(0));
    returned.setCount(member, back);
  });
  returned.addUp();
}

void emitBody(KernelBuilder &b, const SharePlanDesc &d, const TileConfig &) {
  Counts sent{b, b.argument(0), d.members}, returned{b, b.argument(1), d.members};
  b.items([&](Value) {
    Value rows = b.rowCount(d.space, 1);
    shareWithAll(b, d.members, sent, rows, returned, rows);
  });
}

void emitBody(KernelBuilder &b, const CloseGapsDesc &d, const TileConfig &) {
  Value x = b.argument(0), y = b.argument(2);
  Counts came{b, b.argument(1), d.members};
  const Rows apart{RowSpace::Token, d.y.width, d.y.width, d.y.type};
  b.items([&](Value row) {
    copyRow(b, b.row(x, apart, placeWithGaps(b, came, row)), d.y.type, b.row(y, d.y, row), d.y.type, d.y.width);
  });
}

void emitBody(KernelBuilder &b, const ShareReturnDesc &d, const TileConfig &) {
  Counts came{b, b.argument(0), d.members}, back{b, b.argument(1), d.members};
  b.items([&](Value) {
    b.loop(0, d.members, 1, [&](Value member) { back.setCount(member, came.count(member)); });
    back.addUp();
  });
}

void emitBody(KernelBuilder &b, const JoinColumnsDesc &d, const TileConfig &) {
  Value parts = b.argument(0), y = b.argument(2);
  Counts returned{b, b.argument(1), d.members};
  b.items([&](Value row) {
    b.loop(0, d.members, 1, [&](Value member) {
      Value to = b.at(b.row(y, d.y, row), b.mul(member, d.x.width), d.y.type);
      copyRow(b, b.row(parts, d.x, b.add(returned.first(member), row)), d.x.type, to, d.y.type, d.x.width);
    });
  });
}

void emitBody(KernelBuilder &b, const PartPlanDesc &d, const TileConfig &) {
  Value slots = b.argument(0), routes = b.argument(1), none = b.constant(b.i32(), -1);
  Counts sent{b, b.argument(2), d.members}, returned{b, b.argument(3), d.members};
  b.items([&](Value) {
    Value rows = b.rowCount(RowSpace::Token, 1);
    Value choices = b.loop(b.constant(0), rows, 1, b.constant(0), [&](Value row, ValueRange before) {
      Value own = b.at(routes, b.mul(row, 3 * d.topK), DType::I32);
      return b.loop(0, d.topK, 1, before, [&](Value k, ValueRange known) {
        Value slot = b.loadI32(slots, b.add(b.mul(row, d.topK), k)), isThere = b.compare(Compare::Ge, slot, 0);
        b.storeI32(b.select(isThere, b.truncate(row), none), own, k);
        b.storeI32(b.select(isThere, slot, none), own, b.add(k, d.topK));
        b.storeI32(b.select(isThere, b.truncate(known[0]), none), own, b.add(k, 2 * d.topK));
        return Values{b.select(isThere, b.add(known[0], 1), known[0])};
      });
    })[0];
    shareWithAll(b, d.members, sent, rows, returned, choices);
  });
}

void emitBody(KernelBuilder &b, const AddPartsDesc &d, const TileConfig &) {
  Value parts = b.argument(0), routes = b.argument(2), weights = b.argument(3), y = b.argument(4);
  Counts returned{b, b.argument(1), d.members};
  b.items([&](Value row) {
    b.loop(0, d.topK, 1, [&](Value k) {
      Value number = b.loadI32(routes, b.add(b.add(b.mul(row, 3 * d.topK), 2 * d.topK), k));
      b.when(b.compare(Compare::Ge, number, 0), [&] {
        Value weight = b.load(b.f32(), b.at(weights, b.add(b.mul(row, d.topK), k), DType::F32), DType::F32);
        Values from;
        for (int64_t member = 0; member < d.members; ++member)
          from.push_back(b.row(parts, d.x, b.add(returned.first(b.constant(member)), b.extend(number))));
        Value to = b.row(y, d.y, b.extend(number));
        b.columns(d.y.width, [&](const Chunk &chunk) {
          Values sums;
          for (Value part : from)
            sums.push_back(b.loadFloats(part, d.x.type, chunk));
          for (; sums.size() > 1; sums.resize(sums.size() / 2))
            for (size_t pair = 0; pair < sums.size() / 2; ++pair)
              sums[pair] = b.fadd(sums[2 * pair], sums[2 * pair + 1]);
          b.storeFloats(b.fmul(sums[0], b.splat(weight, chunk.lanes)), to, d.y.type, chunk);
        });
      });
    });
  });
}

} // namespace k2c::emit

//===- SharedRows.cpp - Rows that all ranks of a stage work on ------------===//
//
// They are counted in one item, as all go to each member, and copied in an item a row.
//
//===----------------------------------------------------------------------===//
#include "Emitters.h"
#include "ExchangeCounts.h"

namespace k2c::emit {

void emitBody(KernelBuilder &b, const SharePlanDesc &d, const TileConfig &) {
  Counts sent{b, b.argument(0), d.members}, returned{b, b.argument(1), d.members};
  b.items([&](Value) {
    Value rows = b.rowCount(d.space, 1);
    b.loop(0, d.members, 1, [&](Value member) {
      sent.setCount(member, rows);
      sent.setFirst(member, b.constant(0));
      returned.setCount(member, rows);
    });
    returned.addUp();
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

} // namespace k2c::emit

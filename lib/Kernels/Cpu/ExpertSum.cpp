//===- ExpertSum.cpp - The sum of a token's experts (N5) ------------------===//
//
// Rows, sorted by expert, pass over a stack of open subtrees; two neighbours meet at the subtree of
// bitLength(leaf ^ leaf'), and all links up to a new row's are closed before it is pushed:
//
//   experts' leaves  1 2 3 6    links 2 1 3    push 1, push 2, push 3: close (2 + 3), push 6: close 1 + (2 + 3), end: +
//   6
//
// A row may be the sum of a whole subtree: any of its experts stands for it, as all of them meet others at the same
// place.
//
//===----------------------------------------------------------------------===//
#include "ExpertSum.h"
#include "Emitters.h"

namespace k2c::emit {

ExpertSum::ExpertSum(KernelBuilder &b, Value base, const Rows &rows, int64_t perLeaf, int64_t most)
    : b(b), base(base), rows(rows), perLeaf(perLeaf), count(b.stack(8)), sortedExperts(b.stack(most * 4)),
      sortedRows(b.stack(most * 4)), openRows(b.stack(most * 4)), links(b.stack(most * 4)) {}

void ExpertSum::begin() { b.store(b.constant(0), count, DType::I64); }

/// Insertion sort.
void ExpertSum::insert(Value expert, Value row) {
  Value known = number();
  Value place = b.repeat(known, [&](ValueRange at) {
    Value before = b.max(b.sub(at[0], 1), 0), other = b.loadI32(sortedExperts, before);
    Value move = b.bitAnd(b.compare(Compare::Gt, at[0], 0), b.compare(Compare::Gt, other, expert));
    b.when(move, [&] {
      b.storeI32(other, sortedExperts, at[0]);
      b.storeI32(b.loadI32(sortedRows, before), sortedRows, at[0]);
    });
    return Values{move, b.select(move, before, at[0])};
  })[0];
  b.storeI32(expert, sortedExperts, place);
  b.storeI32(row, sortedRows, place);
  b.store(b.add(known, 1), count, DType::I64);
}

void ExpertSum::addUp(bool once) {
  Value depth = b.loop(b.constant(0), number(), 1, b.constant(0), [&](Value i, ValueRange state) {
    Value expert = b.loadI32(sortedExperts, i), row = b.loadI32(sortedRows, i);
    Value previous = b.max(b.sub(i, 1), 0);
    Value link = linkOf(b.loadI32(sortedExperts, previous), expert);
    auto take = [&] {
      Value depth = close(state[0], link);
      push(depth, row, link);
      return Values{b.add(depth, 1)};
    };
    if (!once)
      return take();
    Value isNew = b.bitOr(b.compare(Compare::Eq, i, 0), b.compare(Compare::Ne, row, b.loadI32(sortedRows, previous)));
    return b.choose(isNew, b.i64(), take, [&] { return Values(state); });
  })[0];
  close(depth, b.constant(b.i32(), 64));
}

void ExpertSum::push(Value depth, Value row, Value link) {
  b.storeI32(row, openRows, depth);
  b.storeI32(link, links, depth);
}

/// Levels up to the subtree that holds both leaves: bitLength(leaf ^ leaf').
Value ExpertSum::linkOf(Value expert, Value other) {
  Value differing = b.bitXor(b.div(expert, perLeaf), b.div(other, perLeaf));
  return b.sub(b.constant(b.i32(), 32), b.leadingZeros(differing));
}

/// Adds the top of the stack to the one below while their link is at most `link`; the new depth.
Value ExpertSum::close(Value depth, Value link) {
  return b.repeat(depth, [&](ValueRange at) {
    Value top = b.max(b.sub(at[0], 1), 0), below = b.max(b.sub(at[0], 2), 0);
    Value closing = b.bitAnd(b.compare(Compare::Ge, at[0], 2), b.compare(Compare::Le, b.loadI32(links, top), link));
    b.when(closing, [&] { addRow(b.loadI32(openRows, below), b.loadI32(openRows, top)); });
    return Values{closing, b.select(closing, top, at[0])};
  })[0];
}

void ExpertSum::addRow(Value left, Value right) {
  Value to = b.row(base, rows, b.extend(left)), from = b.row(base, rows, b.extend(right));
  b.columns(rows.width, [&](const Chunk &chunk) {
    Value sum = b.fadd(b.loadFloats(to, rows.type, chunk), b.loadFloats(from, rows.type, chunk));
    b.storeFloats(sum, to, rows.type, chunk);
  });
}

void ExpertSum::storeTo(Value to, const Rows &y) {
  b.choose(
      b.compare(Compare::Gt, number(), 0),
      [&] {
        Value from = b.row(base, rows, b.extend(b.loadI32(openRows, b.constant(0))));
        copyRow(b, from, rows.type, to, y.type, y.width);
      },
      [&] { b.columns(y.width, [&](const Chunk &chunk) { b.storeFloats(b.zeros(chunk.lanes), to, y.type, chunk); }); });
}

} // namespace k2c::emit

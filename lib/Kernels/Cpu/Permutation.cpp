//===- Permutation.cpp - Tokens to slots and back: permutation, permute, unpermute -----------------------===//
//
// The permutation is one item: a stable counting sort of the routes by expert. Permute and unpermute take a token an
// item; the sum is that of ExpertSum.h.
//
//===----------------------------------------------------------------------===//
#include "Emitters.h"
#include "ExpertSum.h"

namespace k2c::emit {

Permutation Permutation::of(KernelBuilder &b, Value pointer, int64_t experts, int64_t topK) {
  Value routeOfSlot = b.at(pointer, experts + 1, DType::I32);
  Value routes = b.mul(b.rowCount(RowSpace::Token, 1), topK);
  return {pointer, routeOfSlot, b.at(routeOfSlot, routes, DType::I32)};
}

void emitBody(KernelBuilder &b, const PermutationDesc &d, const TileConfig &) {
  Value experts = b.argument(0), next = b.scratch(0);
  Permutation permutation = Permutation::of(b, b.argument(1), d.experts, d.topK);
  Value routes = b.mul(b.rowCount(RowSpace::Token, 1), d.topK);
  Value zero = b.constant(b.i32(), 0);
  b.items([&](Value) {
    b.loop(0, d.experts + 1, 1, [&](Value e) { b.storeI32(zero, permutation.offsets, e); });
    b.loop(b.constant(0), routes, 1, [&](Value route) {
      Value expert = b.loadI32(experts, route);
      b.fail(b.compare(Compare::Ge, expert, d.experts), 1);
      Value present = b.bitAnd(b.compare(Compare::Ge, expert, 0), b.compare(Compare::Lt, expert, d.experts));
      b.when(present, [&] {
        Value count = b.at(permutation.offsets, b.add(b.extend(expert), 1), DType::I32);
        b.store(b.add(b.load(b.i32(), count, DType::I32), 1), count, DType::I32);
      });
    });
    b.loop(0, d.experts, 1, zero, [&](Value e, ValueRange sum) {
      b.storeI32(sum[0], next, e);
      Value total = b.add(sum[0], b.loadI32(permutation.offsets, b.add(e, 1)));
      b.storeI32(total, permutation.offsets, b.add(e, 1));
      return Values{total};
    });
    b.loop(b.constant(0), routes, 1, [&](Value route) {
      Value expert = b.loadI32(experts, route);
      Value present = b.bitAnd(b.compare(Compare::Ge, expert, 0), b.compare(Compare::Lt, expert, d.experts));
      Value slot = b.choose(
          present, b.i32(),
          [&] {
            Value cursor = b.at(next, b.extend(expert), DType::I32), slot = b.load(b.i32(), cursor, DType::I32);
            b.store(b.add(slot, 1), cursor, DType::I32);
            b.storeI32(b.truncate(route), permutation.routeOfSlot, b.extend(slot));
            return Values{slot};
          },
          [&] { return Values{b.constant(b.i32(), -1)}; })[0];
      b.storeI32(slot, permutation.slotOfRoute, route);
    });
  });
}

void emitBody(KernelBuilder &b, const PermuteDesc &d, const TileConfig &) {
  Value x = b.argument(0), y = b.argument(2);
  Permutation permutation = Permutation::of(b, b.argument(1), d.experts, d.topK);
  b.items([&](Value token) {
    Value from = b.row(x, d.x, token);
    b.loop(0, d.topK, 1, [&](Value k) {
      Value slot = b.extend(b.loadI32(permutation.slotOfRoute, b.add(b.mul(token, d.topK), k)));
      b.when(b.compare(Compare::Ge, slot, 0),
             [&] { copyRow(b, from, d.x.type, b.row(y, d.y, slot), d.y.type, d.y.width); });
    });
  });
}

void emitBody(KernelBuilder &b, const UnpermuteDesc &d, const TileConfig &) {
  Value experts = b.argument(2), y = b.argument(3);
  Permutation permutation = Permutation::of(b, b.argument(1), d.experts, d.topK);
  ExpertSum sum(b, b.argument(0), d.x, d.experts / d.leaves, d.topK);
  b.items([&](Value token) {
    Value first = b.mul(token, d.topK);
    sum.begin();
    b.loop(0, d.topK, 1, [&](Value k) {
      Value route = b.add(first, k), expert = b.loadI32(experts, route);
      b.when(b.compare(Compare::Ge, expert, 0), [&] { sum.insert(expert, b.loadI32(permutation.slotOfRoute, route)); });
    });
    sum.addUp();
    sum.storeTo(b.row(y, d.y, token), d.y);
  });
}

} // namespace k2c::emit

//===- Permutation.cpp - Tokens to slots and back: permutation, permute, unpermute -----------------------===//
//
// The permutation is one item: a stable counting sort of the routes by expert. Permute and unpermute take a token an
// item. Unpermute adds in place on the token's slot rows: its routes, sorted by expert, pass over a stack of open
// subtrees; two neighbours meet at the subtree of bitLength(leaf ^ leaf'), and all links up to a new row's are closed
// before it is pushed:
//
//   experts' leaves  1 2 3 6    links 2 1 3    push 1, push 2, push 3: close (2 + 3), push 6: close 1 + (2 + 3), end: +
//   6
//
//===----------------------------------------------------------------------===//
#include "Emitters.h"

namespace k2c::emit {

Permutation Permutation::of(KernelBuilder &b, Value pointer, int64_t experts, int64_t topK) {
  Value routeOfSlot = b.at(pointer, experts + 1, DType::I32);
  Value routes = b.mul(b.rowCount(RowSpace::Token, 1), topK);
  return {pointer, routeOfSlot, b.at(routeOfSlot, routes, DType::I32)};
}

static void storeI32(KernelBuilder &b, Value value, Value array, Value index) {
  b.store(value, b.at(array, index, DType::I32), DType::I32);
}

void emitBody(KernelBuilder &b, const PermutationDesc &d, const TileConfig &) {
  Value experts = b.argument(0), next = b.scratch(0);
  Permutation permutation = Permutation::of(b, b.argument(1), d.experts, d.topK);
  Value routes = b.mul(b.rowCount(RowSpace::Token, 1), d.topK);
  Value zero = b.constant(b.i32(), 0);
  b.items([&](Value) {
    b.loop(0, d.experts + 1, 1, [&](Value e) { storeI32(b, zero, permutation.offsets, e); });
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
      storeI32(b, sum[0], next, e);
      Value total = b.add(sum[0], b.loadI32(permutation.offsets, b.add(e, 1)));
      storeI32(b, total, permutation.offsets, b.add(e, 1));
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
            storeI32(b, b.truncate(route), permutation.routeOfSlot, b.extend(slot));
            return Values{slot};
          },
          [&] { return Values{b.constant(b.i32(), -1)}; })[0];
      storeI32(b, slot, permutation.slotOfRoute, route);
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

namespace {

/// One token's unpermute.
class UnpermuteEmitter {
public:
  UnpermuteEmitter(KernelBuilder &b, const UnpermuteDesc &d)
      : b(b), d(d), x(b.argument(0)), experts(b.argument(2)), y(b.argument(3)),
        permutation(Permutation::of(b, b.argument(1), d.experts, d.topK)), sortedExperts(b.stack(d.topK * 4)),
        sortedSlots(b.stack(d.topK * 4)), openSlots(b.stack(d.topK * 4)), links(b.stack(d.topK * 4)) {}

  void emitToken(Value token) {
    Value count = sortRoutes(token);
    Value depth = b.loop(b.constant(0), count, 1, b.constant(0), [&](Value i, ValueRange state) {
      Value expert = b.loadI32(sortedExperts, i);
      Value before = b.loadI32(sortedExperts, b.max(b.sub(i, 1), 0));
      Value link = linkOf(before, expert);
      Value depth = close(state[0], link);
      storeI32(b, b.loadI32(sortedSlots, i), openSlots, depth);
      storeI32(b, link, links, depth);
      return Values{b.add(depth, 1)};
    })[0];
    close(depth, b.constant(b.i32(), 64));
    finish(token, b.compare(Compare::Gt, count, 0));
  }

private:
  /// Insertion sort of the token's present routes by expert; their number.
  Value sortRoutes(Value token) {
    Value first = b.mul(token, d.topK);
    return b.loop(0, d.topK, 1, b.constant(0), [&](Value k, ValueRange count) {
      Value route = b.add(first, k), expert = b.loadI32(experts, route);
      return b.choose(
          b.compare(Compare::Ge, expert, 0), b.i64(),
          [&] {
            Value place = b.repeat(count[0], [&](ValueRange at) {
              Value before = b.max(b.sub(at[0], 1), 0), other = b.loadI32(sortedExperts, before);
              Value move = b.bitAnd(b.compare(Compare::Gt, at[0], 0), b.compare(Compare::Gt, other, expert));
              b.when(move, [&] {
                storeI32(b, other, sortedExperts, at[0]);
                storeI32(b, b.loadI32(sortedSlots, before), sortedSlots, at[0]);
              });
              return Values{move, b.select(move, before, at[0])};
            })[0];
            storeI32(b, expert, sortedExperts, place);
            storeI32(b, b.loadI32(permutation.slotOfRoute, route), sortedSlots, place);
            return Values{b.add(count[0], 1)};
          },
          [&] { return Values(count); });
    })[0];
  }

  /// Levels up to the subtree that holds both leaves: bitLength(leaf ^ leaf').
  Value linkOf(Value expert, Value other) {
    int64_t perLeaf = d.experts / d.leaves;
    Value differing = b.bitXor(b.div(expert, perLeaf), b.div(other, perLeaf));
    return b.sub(b.constant(b.i32(), 32), b.leadingZeros(differing));
  }

  /// Adds the top of the stack to the one below while their link is at most `link`; the new depth.
  Value close(Value depth, Value link) {
    return b.repeat(depth, [&](ValueRange at) {
      Value top = b.max(b.sub(at[0], 1), 0), below = b.max(b.sub(at[0], 2), 0);
      Value closing = b.bitAnd(b.compare(Compare::Ge, at[0], 2), b.compare(Compare::Le, b.loadI32(links, top), link));
      b.when(closing, [&] { addRow(b.loadI32(openSlots, below), b.loadI32(openSlots, top)); });
      return Values{closing, b.select(closing, top, at[0])};
    })[0];
  }

  void addRow(Value left, Value right) {
    Value to = b.row(x, d.x, b.extend(left)), from = b.row(x, d.x, b.extend(right));
    b.columns(d.x.width, [&](const Chunk &chunk) {
      Value sum = b.fadd(b.loadFloats(to, d.x.type, chunk), b.loadFloats(from, d.x.type, chunk));
      b.storeFloats(sum, to, d.x.type, chunk);
    });
  }

  void finish(Value token, Value present) {
    Value to = b.row(y, d.y, token);
    b.choose(
        present,
        [&] {
          Value from = b.row(x, d.x, b.extend(b.loadI32(openSlots, b.constant(0))));
          copyRow(b, from, d.x.type, to, d.y.type, d.y.width);
        },
        [&] {
          b.columns(d.y.width, [&](const Chunk &chunk) { b.storeFloats(b.zeros(chunk.lanes), to, d.y.type, chunk); });
        });
  }

  KernelBuilder &b;
  const UnpermuteDesc &d;
  Value x, experts, y;
  Permutation permutation;
  Value sortedExperts, sortedSlots; ///< the token's routes, ascending in expert
  Value openSlots, links;           ///< the stack: a subtree's slot row, and its link to the one below
};

} // namespace

void emitBody(KernelBuilder &b, const UnpermuteDesc &d, const TileConfig &) {
  UnpermuteEmitter unpermute(b, d);
  b.items([&](Value token) { unpermute.emitToken(token); });
}

} // namespace k2c::emit

//===- Exchange.cpp - Experts on several ranks ----------------------------===//
//
// The plans are one item each, as a permutation is: they number what they find, a token after the other. Messages and
// sums are counted in place, in the counts that they give, and become rows of the whole when all counts are known:
//
//   sent   2 3 | 0 2     messages of rank 1, counted 0 1 2, are rows 2 3 4
//
// A token writes its own messages (pack), a row that arrived finds its own (unpack) and writes its own sums
// (reduce_subtrees), so these have an item a row.
//
//===----------------------------------------------------------------------===//
#include "Emitters.h"
#include "ExpertSum.h"
#include "k2rt/placement.h"

namespace k2c::emit {

namespace {

/// int64 [2][ranks].
struct Counts {
  KernelBuilder &b;
  Value rows;
  int64_t ranks;

  Value at(Value index) { return b.at(rows, index, DType::I64); }
  Value count(Value rank) { return b.load(b.i64(), at(rank), DType::I64); }
  Value first(Value rank) { return b.load(b.i64(), at(b.add(rank, ranks)), DType::I64); }
  void setCount(Value rank, Value count) { b.store(count, at(rank), DType::I64); }
  void setFirst(Value rank, Value first) { b.store(first, at(b.add(rank, ranks)), DType::I64); }
  /// The count as it was; it becomes one larger.
  Value next(Value rank) {
    Value before = count(rank);
    setCount(rank, b.add(before, 1));
    return before;
  }
  void clear() {
    b.loop(0, ranks, 1, [&](Value rank) { setCount(rank, b.constant(0)); });
  }
  /// Firsts from counts.
  void addUp() {
    b.loop(0, ranks, 1, b.constant(0), [&](Value rank, ValueRange sum) {
      setFirst(rank, sum[0]);
      return Values{b.add(sum[0], count(rank))};
    });
  }
};

/// A layer's table, as k2rt/placement.h lays it out.
struct Placement {
  Value slotOfExpert, subtreeOfExpert;

  Placement(KernelBuilder &b, Value table, int64_t experts, int64_t slots)
      : slotOfExpert(table), subtreeOfExpert(b.at(table, experts + slots, DType::I32)) {}
};

/// The first of the numbers before `end` in `list` that is `value`; -1: none is.
Value earlier(KernelBuilder &b, Value list, Value end, Value value) {
  return b.loop(b.constant(0), end, 1, b.constant(-1), [&](Value i, ValueRange found) {
    Value isFirst = b.bitAnd(b.compare(Compare::Lt, found[0], 0), b.compare(Compare::Eq, b.loadI32(list, i), value));
    return Values{b.select(isFirst, i, found[0])};
  })[0];
}

/// The choices of a message at `message`.
struct Choices {
  KernelBuilder &b;
  Value base;

  Choices(KernelBuilder &b, Value message, int64_t rowBytes)
      : b(b), base(b.atBytes(message, b.constant(k2rt_choices_offset(rowBytes)))) {}
  Value slot(Value k) { return b.at(base, b.mul(k, 2), DType::I32); }
  Value weight(Value k) { return b.at(base, b.add(b.mul(k, 2), 1), DType::F32); }
  void set(Value k, Value slotValue, Value weightValue) {
    b.store(slotValue, slot(k), DType::I32);
    b.store(weightValue, weight(k), DType::F32);
  }
};

int64_t bytesOf(const Rows &rows) { return rows.width * byteWidth(rows.type); }

Value messageAt(KernelBuilder &b, Value messages, Value number, const Rows &rows, int64_t topK) {
  return b.atBytes(messages, b.mul(number, k2rt_message_bytes(bytesOf(rows), topK)));
}

/// One step's messages and sums.
class RoutePlanEmitter {
public:
  RoutePlanEmitter(KernelBuilder &b, const RoutePlanDesc &d)
      : b(b), d(d), experts(b.argument(0)), placement(b, b.argument(1), d.experts, d.ranks * d.slots),
        routes(b.argument(2)), sent{b, b.argument(3), d.ranks}, returned{b, b.argument(4), d.ranks},
        ranksOfToken(b.stack(d.topK * 4)), subtreesOfToken(b.stack(d.topK * 4)) {}

  void emit() {
    Value tokens = b.rowCount(RowSpace::Token, 1);
    sent.clear();
    returned.clear();
    b.loop(b.constant(0), tokens, 1, [&](Value token) { b.loop(0, d.topK, 1, [&](Value k) { count(token, k); }); });
    sent.addUp();
    returned.addUp();
    b.loop(b.constant(0), tokens, 1, [&](Value token) { b.loop(0, d.topK, 1, [&](Value k) { number(token, k); }); });
  }

private:
  Value own(Value token) { return b.at(routes, b.mul(token, 3 * d.topK), DType::I32); }
  Value expertOf(Value token, Value k) { return b.loadI32(experts, b.add(b.mul(token, d.topK), k)); }
  Value isPresent(Value expert) {
    return b.bitAnd(b.compare(Compare::Ge, expert, 0), b.compare(Compare::Lt, expert, d.experts));
  }

  /// The number that choice `k` shares with the first of its kind in `list`, or the next of `rank`.
  Value shared(Value list, Value k, Value kind, Value numbers, Counts &counts, Value rank) {
    Value known = earlier(b, list, k, kind);
    return b.choose(
        b.compare(Compare::Ge, known, 0), b.i32(), [&] { return Values{b.loadI32(numbers, known)}; },
        [&] { return Values{b.truncate(counts.next(rank))}; })[0];
  }

  /// Numbers within the rank.
  void count(Value token, Value k) {
    Value expert = expertOf(token, k), none = b.constant(b.i32(), -1);
    Value messages = own(token), slots = b.at(messages, d.topK, DType::I32), sums = b.at(slots, d.topK, DType::I32);
    b.fail(b.compare(Compare::Ge, expert, d.experts), K2RT_STATUS_OUT_OF_RANGE);
    b.choose(
        isPresent(expert),
        [&] {
          Value slot = b.loadI32(placement.slotOfExpert, b.extend(expert)), rank = b.div(slot, d.slots);
          Value subtree = b.loadI32(placement.subtreeOfExpert, b.extend(expert));
          b.storeI32(shared(ranksOfToken, k, rank, messages, sent, b.extend(rank)), messages, k);
          b.storeI32(b.rem(slot, d.slots), slots, k);
          b.storeI32(shared(subtreesOfToken, k, subtree, sums, returned, b.extend(rank)), sums, k);
          b.storeI32(rank, ranksOfToken, k);
          b.storeI32(subtree, subtreesOfToken, k);
        },
        [&] {
          for (Value list : {messages, slots, sums, ranksOfToken, subtreesOfToken})
            b.storeI32(none, list, k);
        });
  }

  /// Numbers of all ranks.
  void number(Value token, Value k) {
    Value expert = expertOf(token, k), messages = own(token), sums = b.at(messages, 2 * d.topK, DType::I32);
    b.when(isPresent(expert), [&] {
      Value rank = b.extend(b.div(b.loadI32(placement.slotOfExpert, b.extend(expert)), d.slots));
      b.storeI32(b.add(b.loadI32(messages, k), b.truncate(sent.first(rank))), messages, k);
      b.storeI32(b.add(b.loadI32(sums, k), b.truncate(returned.first(rank))), sums, k);
    });
  }

  KernelBuilder &b;
  const RoutePlanDesc &d;
  Value experts;
  Placement placement;
  Value routes;
  Counts sent, returned;
  Value ranksOfToken, subtreesOfToken; ///< of the token's choices so far, -1 without expert
};

/// Lists the subtrees of a row's choices at `list`, -1 where a choice is none.
void listSubtrees(KernelBuilder &b, Value slots, int64_t topK, Value held, const Placement &placement, Value list) {
  b.loop(0, topK, 1, [&](Value k) {
    Value slot = b.loadI32(slots, k);
    Value subtree = b.choose(
        b.compare(Compare::Ge, slot, 0), b.i32(),
        [&] {
          Value expert = b.loadI32(held, b.extend(slot));
          return Values{b.loadI32(placement.subtreeOfExpert, b.extend(expert))};
        },
        [&] { return Values{b.constant(b.i32(), -1)}; })[0];
    b.storeI32(subtree, list, k);
  });
}

/// Whether choice `k` is the first of its subtree.
Value isFirstOfSubtree(KernelBuilder &b, Value list, Value k) {
  Value subtree = b.loadI32(list, k);
  return b.bitAnd(b.compare(Compare::Ge, subtree, 0), b.compare(Compare::Lt, earlier(b, list, k, subtree), 0));
}

} // namespace

void emitBody(KernelBuilder &b, const RoutePlanDesc &d, const TileConfig &) {
  RoutePlanEmitter plan(b, d);
  b.items([&](Value) { plan.emit(); });
}

void emitBody(KernelBuilder &b, const PackDesc &d, const TileConfig &) {
  Value x = b.argument(0), weights = b.argument(1), routes = b.argument(2), messages = b.argument(3);
  b.items([&](Value token) {
    Value own = b.at(routes, b.mul(token, 3 * d.topK), DType::I32), slots = b.at(own, d.topK, DType::I32);
    b.loop(0, d.topK, 1, [&](Value k) {
      Value number = b.loadI32(own, k);
      b.when(b.compare(Compare::Ge, number, 0), [&] {
        Value message = messageAt(b, messages, b.extend(number), d.x, d.topK);
        Choices choices(b, message, bytesOf(d.x));
        b.when(b.compare(Compare::Lt, earlier(b, own, k, number), 0), [&] {
          copyRow(b, b.row(x, d.x, token), d.x.type, message, d.x.type, d.x.width);
          b.loop(0, d.topK, 1, [&](Value other) { choices.set(other, b.constant(b.i32(), -1), b.number(0)); });
        });
        Value weight = b.load(b.f32(), b.at(weights, b.add(b.mul(token, d.topK), k), DType::F32), DType::F32);
        choices.set(k, b.loadI32(slots, k), weight);
      });
    });
  });
}

void emitBody(KernelBuilder &b, const UnpackDesc &d, const TileConfig &) {
  Value messages = b.argument(0), y = b.argument(2), slots = b.argument(3), weights = b.argument(4);
  Counts came{b, b.argument(1), d.ranks};
  b.items([&](Value row) {
    Values from = b.repeat({b.constant(0), b.constant(0)}, [&](ValueRange at) { // rank, rows of those before it
      Value end = b.add(at[1], came.count(at[0])), isBehind = b.compare(Compare::Ge, row, end);
      return Values{isBehind, b.select(isBehind, b.add(at[0], 1), at[0]), b.select(isBehind, end, at[1])};
    });
    Value number = b.add(came.first(from[0]), b.sub(row, from[1]));
    Value message = messageAt(b, messages, number, d.y, d.topK);
    copyRow(b, message, d.y.type, b.row(y, d.y, row), d.y.type, d.y.width);
    Choices choices(b, message, bytesOf(d.y));
    b.loop(0, d.topK, 1, [&](Value k) {
      Value route = b.add(b.mul(row, d.topK), k);
      b.storeI32(b.load(b.i32(), choices.slot(k), DType::I32), slots, route);
      b.store(b.load(b.f32(), choices.weight(k), DType::F32), b.at(weights, route, DType::F32), DType::F32);
    });
  });
}

void emitBody(KernelBuilder &b, const ReturnPlanDesc &d, const TileConfig &) {
  Value slots = b.argument(0), held = b.argument(3), sums = b.argument(4), list = b.stack(d.topK * 4);
  Counts came{b, b.argument(1), d.ranks}, back{b, b.argument(5), d.ranks};
  Placement placement(b, b.argument(2), d.experts, d.ranks * d.slots);
  b.items([&](Value) {
    b.loop(0, d.ranks, 1, {b.constant(0), b.constant(0)}, [&](Value rank, ValueRange before) { // rows, sums
      Value end = b.add(before[0], came.count(rank));
      Value all = b.loop(before[0], end, 1, before[1], [&](Value row, ValueRange first) {
        listSubtrees(b, b.at(slots, b.mul(row, d.topK), DType::I32), d.topK, held, placement, list);
        Value count = b.loop(0, d.topK, 1, b.constant(0), [&](Value k, ValueRange known) {
          return Values{b.select(isFirstOfSubtree(b, list, k), b.add(known[0], 1), known[0])};
        })[0];
        b.storeI32(b.truncate(first[0]), sums, b.mul(row, 2));
        b.storeI32(b.truncate(count), sums, b.add(b.mul(row, 2), 1));
        return Values{b.add(first[0], count)};
      })[0];
      back.setCount(rank, b.sub(all, before[1]));
      back.setFirst(rank, before[1]);
      return Values{end, all};
    });
  });
}

void emitBody(KernelBuilder &b, const ReduceSubtreesDesc &d, const TileConfig &) {
  Value slots = b.argument(2), sums = b.argument(3), held = b.argument(5), y = b.argument(6);
  Value list = b.stack(d.topK * 4);
  Permutation permutation = Permutation::of(b, b.argument(1), d.slots, d.topK);
  Placement placement(b, b.argument(4), d.experts, d.ranks * d.slots);
  ExpertSum sum(b, b.argument(0), d.x, d.experts / d.leaves, d.topK);
  b.items([&](Value row) {
    Value routes = b.mul(row, d.topK), own = b.at(slots, routes, DType::I32);
    listSubtrees(b, own, d.topK, held, placement, list);
    b.loop(0, d.topK, 1, b.extend(b.loadI32(sums, b.mul(row, 2))), [&](Value k, ValueRange next) {
      return b.choose(
          isFirstOfSubtree(b, list, k), b.i64(),
          [&] {
            Value subtree = b.loadI32(list, k);
            sum.begin();
            b.loop(k, b.constant(d.topK), 1, [&](Value other) {
              b.when(b.compare(Compare::Eq, b.loadI32(list, other), subtree), [&] {
                sum.insert(b.loadI32(held, b.extend(b.loadI32(own, other))),
                           b.loadI32(permutation.slotOfRoute, b.add(routes, other)));
              });
            });
            sum.addUp();
            sum.storeTo(b.row(y, d.y, next[0]), d.y);
            return Values{b.add(next[0], 1)};
          },
          [&] { return Values(next); });
    });
  });
}

void emitBody(KernelBuilder &b, const CombineDesc &d, const TileConfig &) {
  Value routes = b.argument(1), experts = b.argument(2), y = b.argument(3);
  ExpertSum sum(b, b.argument(0), d.x, d.experts / d.leaves, d.topK);
  b.items([&](Value token) {
    Value returned = b.at(routes, b.add(b.mul(token, 3 * d.topK), 2 * d.topK), DType::I32);
    sum.begin();
    b.loop(0, d.topK, 1, [&](Value k) {
      Value expert = b.loadI32(experts, b.add(b.mul(token, d.topK), k));
      b.when(b.compare(Compare::Ge, expert, 0), [&] { sum.insert(expert, b.loadI32(returned, k)); });
    });
    sum.addUpOnce();
    sum.storeTo(b.row(y, d.y, token), d.y);
  });
}

} // namespace k2c::emit

//===- Exchange.cpp - Experts on several ranks ----------------------------===//
//
// The plans are one item each, as a permutation is: they number what they find, a token after the other. Messages and
// sums are counted in place, in the counts that they give, and become rows of the whole when all counts are known:
//
//   sent   2 3 | 0 2     messages of member 1, counted 0 1 2, are rows 2 3 4
//
// A token finds its own slots (locate) and writes its own messages (pack), a row that arrived finds its own (unpack)
// and writes its own sums (reduce_subtrees, merge_subtrees), so these have an item a row.
//
//===----------------------------------------------------------------------===//
#include "Emitters.h"
#include "ExchangeCounts.h"
#include "ExpertSum.h"
#include "k2rt/placement.h"

namespace k2c::emit {

namespace {

/// What a holder has of a layer's placement: arguments `first` and `first` + 1.
struct Held {
  KernelBuilder &b;
  Value experts, subtrees;

  Held(KernelBuilder &b, unsigned first) : b(b), experts(b.argument(first)), subtrees(b.argument(first + 1)) {}
  Value expertOf(Value slot) { return b.loadI32(experts, b.extend(slot)); }
  Value subtreeOf(Value slot) { return b.loadI32(subtrees, b.extend(expertOf(slot))); }
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

/// The slots of a token's experts: those of experts with one place first, then, knowing their nodes, the others.
class LocateEmitter {
public:
  LocateEmitter(KernelBuilder &b, const LocateDesc &d)
      : b(b), d(d), experts(b.argument(0)), firstPlace(b.argument(1)),
        place(b.at(firstPlace, b.constant(d.experts + 1), DType::I32)), slots(b.argument(2)) {}

  void emitRow(Value row) {
    Value first = b.mul(row, d.topK);
    Value chosen = b.at(experts, first, DType::I32), own = b.at(slots, first, DType::I32);
    b.loop(0, d.topK, 1, [&](Value k) {
      Value expert = b.loadI32(chosen, k);
      b.fail(b.compare(Compare::Ge, expert, d.experts), K2RT_STATUS_OUT_OF_RANGE);
      Value slot = b.choose(
          isChoice(expert), b.i32(), [&] { return Values{slotAt(begin(expert))}; },
          [&] { return Values{b.constant(b.i32(), -1)}; })[0];
      b.storeI32(slot, own, k);
    });
    b.loop(0, d.topK, 1, [&](Value k) {
      Value expert = b.loadI32(chosen, k);
      b.when(isChoice(expert), [&] {
        b.when(b.compare(Compare::Gt, places(expert), 1), [&] { b.storeI32(placeOf(expert, chosen, own), own, k); });
      });
    });
  }

private:
  Value isChoice(Value expert) {
    return b.bitAnd(b.compare(Compare::Ge, expert, 0), b.compare(Compare::Lt, expert, d.experts));
  }
  Value begin(Value expert) { return b.loadI32(firstPlace, b.extend(expert)); }
  Value end(Value expert) { return b.loadI32(firstPlace, b.add(b.extend(expert), 1)); }
  Value places(Value expert) { return b.sub(end(expert), begin(expert)); }
  Value slotAt(Value number) { return b.loadI32(place, b.extend(number)); }

  /// The first of the places of `expert` on a node of an expert with one place, else its first.
  Value placeOf(Value expert, Value chosen, Value own) {
    Value first = b.extend(begin(expert)), last = b.extend(end(expert)), none = b.constant(b.i32(), -1);
    Value found = b.loop(first, last, 1, none, [&](Value at, ValueRange found) {
      Value slot = b.loadI32(place, at), node = b.div(slot, d.slotsOfNode);
      Value isMet = b.loop(b.constant(0), b.constant(d.topK), 1, b.constant(b.i1(), 0), [&](Value k, ValueRange met) {
        Value other = b.loadI32(chosen, k);
        Value isThere = b.choose(
            isChoice(other), b.i1(),
            [&] {
              Value isSame = b.compare(Compare::Eq, b.div(b.loadI32(own, k), d.slotsOfNode), node);
              return Values{b.bitAnd(b.compare(Compare::Eq, places(other), 1), isSame)};
            },
            [&] { return Values{b.constant(b.i1(), 0)}; })[0];
        return Values{b.bitOr(met[0], isThere)};
      })[0];
      return Values{b.select(b.bitAnd(b.compare(Compare::Lt, found[0], 0), isMet), slot, found[0])};
    })[0];
    return b.select(b.compare(Compare::Lt, found, 0), b.loadI32(place, first), found);
  }

  KernelBuilder &b;
  const LocateDesc &d;
  Value experts, firstPlace, place, slots;
};

/// One step's messages and sums.
class RoutePlanEmitter {
public:
  RoutePlanEmitter(KernelBuilder &b, const RoutePlanDesc &d)
      : b(b), d(d), chosen(b.argument(0)), held(b, 1), routes(b.argument(3)), sent{b, b.argument(4), d.members},
        returned{b, b.argument(5), d.members}, membersOfRow(b.stack(d.topK * 4)), subtreesOfRow(b.stack(d.topK * 4)) {}

  void emit() {
    Value rows = b.rowCount(RowSpace::Token, 1);
    sent.clear();
    returned.clear();
    b.loop(b.constant(0), rows, 1, [&](Value row) { b.loop(0, d.topK, 1, [&](Value k) { count(row, k); }); });
    sent.addUp();
    returned.addUp();
    b.loop(b.constant(0), rows, 1, [&](Value row) { b.loop(0, d.topK, 1, [&](Value k) { number(row, k); }); });
  }

private:
  Value own(Value row) { return b.at(routes, b.mul(row, 3 * d.topK), DType::I32); }
  Value slotOf(Value row, Value k) { return b.loadI32(chosen, b.add(b.mul(row, d.topK), k)); }
  Value isPresent(Value slot) { return b.compare(Compare::Ge, slot, 0); }

  /// The number that choice `k` shares with the first of its kind in `list`, or the next of `member`.
  Value shared(Value list, Value k, Value kind, Value numbers, Counts &counts, Value member) {
    Value known = earlier(b, list, k, kind);
    return b.choose(
        b.compare(Compare::Ge, known, 0), b.i32(), [&] { return Values{b.loadI32(numbers, known)}; },
        [&] { return Values{b.truncate(counts.next(member))}; })[0];
  }

  /// Numbers within the member.
  void count(Value row, Value k) {
    Value slot = slotOf(row, k), none = b.constant(b.i32(), -1);
    Value messages = own(row), slots = b.at(messages, d.topK, DType::I32), sums = b.at(slots, d.topK, DType::I32);
    b.choose(
        isPresent(slot),
        [&] {
          Value member = b.div(slot, d.slots), subtree = held.subtreeOf(slot);
          b.storeI32(shared(membersOfRow, k, member, messages, sent, b.extend(member)), messages, k);
          b.storeI32(b.rem(slot, d.slots), slots, k);
          b.storeI32(shared(subtreesOfRow, k, subtree, sums, returned, b.extend(member)), sums, k);
          b.storeI32(member, membersOfRow, k);
          b.storeI32(subtree, subtreesOfRow, k);
        },
        [&] {
          for (Value list : {messages, slots, sums, membersOfRow, subtreesOfRow})
            b.storeI32(none, list, k);
        });
  }

  /// Numbers of all members.
  void number(Value row, Value k) {
    Value slot = slotOf(row, k), messages = own(row), sums = b.at(messages, 2 * d.topK, DType::I32);
    b.when(isPresent(slot), [&] {
      Value member = b.extend(b.div(slot, d.slots));
      b.storeI32(b.add(b.loadI32(messages, k), b.truncate(sent.first(member))), messages, k);
      b.storeI32(b.add(b.loadI32(sums, k), b.truncate(returned.first(member))), sums, k);
    });
  }

  KernelBuilder &b;
  const RoutePlanDesc &d;
  Value chosen;
  Held held;
  Value routes;
  Counts sent, returned;
  Value membersOfRow, subtreesOfRow; ///< of the row's choices so far, -1 without expert
};

/// Lists the subtrees of a row's choices at `list`, -1 where a choice is none.
void listSubtrees(KernelBuilder &b, Value slots, int64_t topK, Held &held, Value list) {
  b.loop(0, topK, 1, [&](Value k) {
    Value slot = b.loadI32(slots, k);
    Value subtree = b.choose(
        b.compare(Compare::Ge, slot, 0), b.i32(), [&] { return Values{held.subtreeOf(slot)}; },
        [&] { return Values{b.constant(b.i32(), -1)}; })[0];
    b.storeI32(subtree, list, k);
  });
}

/// Whether choice `k` is the first of its subtree.
Value isFirstOfSubtree(KernelBuilder &b, Value list, Value k) {
  Value subtree = b.loadI32(list, k);
  return b.bitAnd(b.compare(Compare::Ge, subtree, 0), b.compare(Compare::Lt, earlier(b, list, k, subtree), 0));
}

/// The sums of a row's subtrees, from slots, sums, held and subtrees, arguments `first` to `first` + 3, to the next
/// one; rowOf(row, k): the row of `x` that choice k contributes, which several may share where `once`.
template <class Desc>
void sumSubtrees(KernelBuilder &b, const Desc &d, bool once, llvm::function_ref<Value(Value, Value)> rowOf) {
  Value slots = b.argument(2), sums = b.argument(3), y = b.argument(6);
  Value list = b.stack(d.topK * 4);
  Held held(b, 4);
  ExpertSum sum(b, b.argument(0), d.x, d.experts / d.leaves, d.topK);
  b.items([&](Value row) {
    Value own = b.at(slots, b.mul(row, d.topK), DType::I32);
    listSubtrees(b, own, d.topK, held, list);
    b.loop(0, d.topK, 1, b.extend(b.loadI32(sums, b.mul(row, 2))), [&](Value k, ValueRange next) {
      return b.choose(
          isFirstOfSubtree(b, list, k), b.i64(),
          [&] {
            Value subtree = b.loadI32(list, k);
            sum.begin();
            b.loop(k, b.constant(d.topK), 1, [&](Value other) {
              b.when(b.compare(Compare::Eq, b.loadI32(list, other), subtree),
                     [&] { sum.insert(held.expertOf(b.loadI32(own, other)), rowOf(row, other)); });
            });
            once ? sum.addUpOnce() : sum.addUp();
            sum.storeTo(b.row(y, d.y, next[0]), d.y);
            return Values{b.add(next[0], 1)};
          },
          [&] { return Values(next); });
    });
  });
}

} // namespace

void emitBody(KernelBuilder &b, const LocateDesc &d, const TileConfig &) {
  LocateEmitter locate(b, d);
  b.items([&](Value row) { locate.emitRow(row); });
}

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
  Counts came{b, b.argument(1), d.members};
  b.items([&](Value row) {
    Value message = messageAt(b, messages, placeWithGaps(b, came, row), d.y, d.topK);
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
  Value slots = b.argument(0), sums = b.argument(4), list = b.stack(d.topK * 4);
  Counts came{b, b.argument(1), d.members}, back{b, b.argument(5), d.members};
  Held held(b, 2);
  b.items([&](Value) {
    b.loop(0, d.members, 1, {b.constant(0), b.constant(0)}, [&](Value member, ValueRange before) { // rows, sums
      Value end = b.add(before[0], came.count(member));
      Value all = b.loop(before[0], end, 1, before[1], [&](Value row, ValueRange first) {
        listSubtrees(b, b.at(slots, b.mul(row, d.topK), DType::I32), d.topK, held, list);
        Value count = b.loop(0, d.topK, 1, b.constant(0), [&](Value k, ValueRange known) {
          return Values{b.select(isFirstOfSubtree(b, list, k), b.add(known[0], 1), known[0])};
        })[0];
        b.storeI32(b.truncate(first[0]), sums, b.mul(row, 2));
        b.storeI32(b.truncate(count), sums, b.add(b.mul(row, 2), 1));
        return Values{b.add(first[0], count)};
      })[0];
      back.setCount(member, b.sub(all, before[1]));
      back.setFirst(member, before[1]);
      return Values{end, all};
    });
  });
}

void emitBody(KernelBuilder &b, const ReduceSubtreesDesc &d, const TileConfig &) {
  Permutation permutation = Permutation::of(b, b.argument(1), d.slots, d.topK);
  sumSubtrees(b, d, /*once=*/false,
              [&](Value row, Value k) { return b.loadI32(permutation.slotOfRoute, b.add(b.mul(row, d.topK), k)); });
}

void emitBody(KernelBuilder &b, const MergeSubtreesDesc &d, const TileConfig &) {
  Value routes = b.argument(1);
  sumSubtrees(b, d, /*once=*/true, [&](Value row, Value k) {
    return b.loadI32(routes, b.add(b.add(b.mul(row, 3 * d.topK), 2 * d.topK), k));
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

//===- Routing.cpp - Choosing the experts of a token ----------------------===//
//
// The order "larger first, NaN last, then the lower index" is that of integers (SortKeys.h). Choosing is then a vector
// maximum over keys, and a few entries are kept sorted by insertion.
//
//   scores, keys of choices -> [keys outside the best groups := none] -> [keys outside the home node fall]
//   -> [keys outside the best nodes := none] -> topK times: take the largest key -> weights -> [forced weights]
//   -> sorted by weight -> experts, weights, captures
//
// Nodes are rated like groups, but say by the placement which experts they have. An expert may be in two slots of a
// node, and on two nodes: the best choices of a node are taken out of the keys and put back, so that each counts once,
// and experts of the nodes that stay are marked.
//
//===----------------------------------------------------------------------===//
#include "Emitters.h"
#include "Math.h"
#include "SortKeys.h"

namespace k2c::emit {

namespace {

int64_t paddedExperts(const RoutingDesc &d, int64_t lanes) { return (d.experts + lanes - 1) / lanes * lanes; }

/// A short list of (key, expert, weight), sorted by falling key, then rising expert.
class SortedList {
public:
  SortedList(KernelBuilder &b, int64_t capacity)
      : b(b), keys(b.stack(capacity * 4)), experts(b.stack(capacity * 4)), weights(b.stack(capacity * 4)) {}

  Value key(Value i) { return b.loadI32(keys, i); }
  Value expert(Value i) { return b.loadI32(experts, i); }
  Value weight(Value i) { return b.loadFloats(b.at(weights, i, DType::F32), DType::F32, 0); }
  void set(Value i, Value key, Value expert, Value weight) {
    b.store(key, b.at(keys, i, DType::I32), DType::I32);
    b.store(expert, b.at(experts, i, DType::I32), DType::I32);
    b.store(weight, b.at(weights, i, DType::F32), DType::F32);
  }
  void insert(Value count, Value newKey, Value newExpert, Value newWeight) {
    Value place = b.repeat(count, [&](ValueRange at) {
      Value before = b.max(b.sub(at[0], 1), 0), other = key(before);
      Value first = b.bitAnd(b.compare(Compare::Eq, newKey, other), b.compare(Compare::Lt, newExpert, expert(before)));
      Value precedes = b.bitOr(b.compare(Compare::Gt, newKey, other), first);
      Value move = b.bitAnd(b.compare(Compare::Gt, at[0], 0), precedes);
      b.when(move, [&] { set(at[0], other, expert(before), weight(before)); });
      return Values{move, b.select(move, before, at[0])};
    })[0];
    set(place, newKey, newExpert, newWeight);
  }

private:
  KernelBuilder &b;
  Value keys, experts, weights;
};

class RoutingEmitter {
public:
  RoutingEmitter(KernelBuilder &b, const RoutingDesc &d)
      : b(b), d(d), padded(paddedExperts(d, b.lanes())), next(d.bias ? 2 : 1), chosen(b, d.topK), sorted(b, d.topK),
        scores(b.scratch(0)), keys(b.scratch(padded * 4)), groupKeys(b.scratch(2 * padded * 4)) {
    layer = b.integerOf(b.argument(next + 1));
    if (d.bound.isBound()) {
      nodeKeys = b.scratch((2 * padded + d.groups) * 4);
      choices = b.scratch((2 * padded + d.groups + d.bound.nodes) * 4);
      marks = b.scratch((3 * padded + d.groups + d.bound.nodes) * 4);
      held = b.argument(next + 2);
      ++next;
    }
    experts = b.argument(next + 2);
    weights = b.argument(next + 3);
  }

  void emitRow(Value row);

private:
  Value keyOf(Value floats) { return emit::keyOf(b, floats); }
  void scoreRow(Value logits);
  void softmaxRow(Value logits);
  void limitGroups();
  Value rateNode(Value node, int64_t counted);
  void markExpertsOf(Value node);
  void markBestNodes(int64_t count, int64_t among);
  void lowerAway();
  void limitNodes();
  Best bestOf(Value array, Value first, int64_t count);
  Value chooseBest();
  Value chooseForced(Value forced);
  void weigh(Value count, Value forced, Value forcedWeights);
  void write(Value count, Value experts, Value weights, Value first);
  /// Element offset `at` of a step's array, or null when that is null.
  Value shifted(Value array, Value at) {
    Value null = b.compare(Compare::Eq, b.integerOf(array), 0);
    return b.select(null, array, b.at(array, at, DType::I32));
  }
  Value isThere(Value pointer) { return b.compare(Compare::Ne, b.integerOf(pointer), 0); }
  Value score(Value expert) { return b.loadFloats(b.at(scores, b.extend(expert), DType::F32), DType::F32, 0); }
  /// What expert `e` (i64) is chosen by.
  Value choice(Value e) {
    Value value = score(b.truncate(e));
    return d.bias ? b.fadd(value, b.loadFloats(b.at(b.argument(1), e, DType::F32), DType::F32, 0)) : value;
  }
  void storeKey(Value key, Value array, Value i) { b.store(key, b.at(array, i, DType::I32), DType::I32); }
  Value none() { return b.constant(b.i32(), noChoice); }

  KernelBuilder &b;
  const RoutingDesc &d;
  int64_t padded, next;
  SortedList chosen, sorted; ///< by choice, by weight
  Value scores, keys, groupKeys, layer, experts, weights;
  Value held, nodeKeys, choices, marks; ///< of a bound; choices are those behind the keys
};

void RoutingEmitter::softmaxRow(Value logits) {
  auto load = [&](Value from, Value i, DType type) { return b.loadFloats(b.at(from, i, type), type, 0); };
  Value max = b.loop(0, d.experts, 1, load(logits, b.constant(0), d.logits.type), [&](Value e, ValueRange state) {
    Value x = load(logits, e, d.logits.type);
    return Values{b.select(b.fcompare(Compare::Gt, state[0], x), state[0], x)};
  })[0];
  b.columns(d.experts, [&](const Chunk &chunk) {
    Value x = b.fsub(b.loadFloats(logits, d.logits.type, chunk), b.splat(max, chunk.lanes));
    b.storeFloats(emitExp(b, x), scores, DType::F32, chunk);
  });
  Value sum = b.loop(0, d.experts, 1, b.number(0.0f), [&](Value e, ValueRange state) {
    return Values{b.fadd(state[0], load(scores, e, DType::F32))};
  })[0];
  b.columns(d.experts, [&](const Chunk &chunk) {
    Value score = b.loadFloats(scores, DType::F32, chunk);
    b.storeFloats(b.fdiv(score, b.splat(sum, chunk.lanes)), scores, DType::F32, chunk);
  });
}

void RoutingEmitter::scoreRow(Value logits) {
  if (d.scoring == Scoring::Softmax)
    softmaxRow(logits);
  b.columns(d.experts, [&](const Chunk &chunk) {
    Value score;
    if (d.scoring == Scoring::Sigmoid) {
      score = emitSigmoid(b, b.loadFloats(logits, d.logits.type, chunk));
      b.storeFloats(score, scores, DType::F32, chunk);
    } else {
      score = b.loadFloats(scores, DType::F32, chunk);
    }
    if (d.bias)
      score = b.fadd(score, b.loadFloats(b.argument(1), DType::F32, chunk));
    if (d.bound.isBound())
      b.storeFloats(score, choices, DType::F32, chunk);
    Value key = keyOf(score);
    if (chunk.mask)
      key = b.select(chunk.mask, key, b.constant(key.getType(), noChoice));
    b.store(key, b.at(keys, chunk.column, DType::I32), DType::I32);
  });
}

/// The largest of `count` keys from `first` on, and its index: the first among equals.
Best RoutingEmitter::bestOf(Value array, Value first, int64_t count) {
  const int64_t lanes = b.lanes(), whole = count / lanes * lanes;
  Type vector = b.vec(b.i32(), lanes);
  Value from = b.at(array, first, DType::I32), nothing = b.constant(vector, noChoice);
  auto indices = [&](Value at) {
    return b.add(b.laneIds(b.i32(), lanes), b.splat(b.truncate(b.add(first, at)), lanes));
  };
  auto compare = [&](Value at, Value mask, ValueRange best) {
    Value key = b.load(vector, b.at(from, at, DType::I32), DType::I32, mask);
    if (mask)
      key = b.select(mask, key, nothing);
    const Best found = better(b, {best[0], best[1]}, key, indices(at));
    return Values{found.key, found.index};
  };
  Values best = b.loop(0, whole, lanes, {nothing, indices(b.constant(0))},
                       [&](Value at, ValueRange state) { return compare(at, Value(), state); });
  if (whole < count)
    best = compare(b.constant(whole), b.laneMask(lanes, 0, count - whole), best);
  return bestLane(b, {best[0], best[1]});
}

/// A group counts its best choice, or two; keys outside the best groups become "none".
void RoutingEmitter::limitGroups() {
  int64_t size = d.experts / d.groups;
  b.loop(0, d.groups, 1, [&](Value group) {
    Value first = b.mul(group, size);
    Value best = b.extend(bestOf(keys, first, size).index), count = choice(best);
    if (d.groupBest == 2 && size >= 2) {
      Value key = b.loadI32(keys, best);
      storeKey(none(), keys, best);
      count = b.fadd(count, choice(b.extend(bestOf(keys, first, size).index)));
      storeKey(key, keys, best);
    }
    storeKey(keyOf(count), groupKeys, group);
  });
  b.loop(0, d.topkGroups, 1,
         [&](Value) { storeKey(none(), groupKeys, b.extend(bestOf(groupKeys, b.constant(0), d.groups).index)); });
  b.loop(0, d.groups, 1, [&](Value group) {
    b.when(b.compare(Compare::Ne, b.loadI32(groupKeys, group), noChoice), [&] {
      Value from = b.at(keys, b.mul(group, size), DType::I32);
      b.columns(size, [&](const Chunk &chunk) {
        Value nothing = b.constant(b.vec(b.i32(), chunk.lanes), noChoice);
        b.store(nothing, b.at(from, chunk.column, DType::I32), DType::I32, chunk.mask);
      });
    });
  });
}

/// The key of the sum of a node's best `counted` choices; none where it has none.
Value RoutingEmitter::rateNode(Value node, int64_t counted) {
  Value first = b.mul(node, d.bound.slots), last = b.add(first, d.bound.slots), taken = b.stack(counted * 4);
  Value nobody = b.constant(b.i32(), -1);
  Values all = b.loop(0, counted, 1, {b.number(0.0f), b.constant(0)}, [&](Value, ValueRange state) {
    Values best = b.loop(first, last, 1, {nobody, none()}, [&](Value slot, ValueRange found) {
      Value expert = b.loadI32(held, slot), key = b.loadI32(keys, b.extend(b.max(expert, 0)));
      Value better = b.bitAnd(b.compare(Compare::Ge, expert, 0), b.compare(Compare::Gt, key, found[1]));
      return Values{b.select(better, expert, found[0]), b.select(better, key, found[1])};
    });
    return b.choose(
        b.compare(Compare::Ge, best[0], 0), {b.f32(), b.i64()},
        [&] {
          Value expert = b.extend(best[0]);
          b.storeI32(best[0], taken, state[1]);
          storeKey(none(), keys, expert);
          Value own = b.loadFloats(b.at(choices, expert, DType::F32), DType::F32, 0);
          return Values{b.fadd(state[0], own), b.add(state[1], 1)};
        },
        [&] { return Values{state[0], state[1]}; });
  });
  b.loop(b.constant(0), all[1], 1, [&](Value i) {
    Value expert = b.extend(b.loadI32(taken, i));
    storeKey(keyOf(b.loadFloats(b.at(choices, expert, DType::F32), DType::F32, 0)), keys, expert);
  });
  return b.select(b.compare(Compare::Gt, all[1], 0), keyOf(all[0]), none());
}

void RoutingEmitter::markExpertsOf(Value node) {
  Value first = b.mul(node, d.bound.slots);
  b.loop(first, b.add(first, d.bound.slots), 1, [&](Value slot) {
    Value expert = b.loadI32(held, slot);
    b.when(b.compare(Compare::Ge, expert, 0), [&] { b.storeI32(b.constant(b.i32(), 1), marks, b.extend(expert)); });
  });
}

/// Marks the experts of the best `count` nodes, by their ceil(topK / among) best choices, and no others.
void RoutingEmitter::markBestNodes(int64_t count, int64_t among) {
  const int64_t lanes = b.lanes(), counted = (d.topK + among - 1) / among;
  b.loop(0, d.bound.nodes, 1, [&](Value node) { storeKey(rateNode(node, counted), nodeKeys, node); });
  b.loop(0, padded, lanes,
         [&](Value e) { b.store(b.constant(b.vec(b.i32(), lanes), 0), b.at(marks, e, DType::I32), DType::I32); });
  // Where fewer nodes have experts that can be chosen, one that has none is the best of those left.
  b.loop(0, count, 1, [&](Value) {
    Value node = b.extend(bestOf(nodeKeys, b.constant(0), d.bound.nodes).index);
    storeKey(none(), nodeKeys, node);
    markExpertsOf(node);
  });
}

/// Choices of experts that the home node has not fall by the penalty.
void RoutingEmitter::lowerAway() {
  markBestNodes(1, d.bound.nodes);
  b.columns(d.experts, [&](const Chunk &chunk) {
    auto numbers = [&](Value array) {
      return b.load(b.vec(b.i32(), chunk.lanes), b.at(array, chunk.column, DType::I32), DType::I32, chunk.mask);
    };
    Value own = b.loadFloats(choices, DType::F32, chunk), key = numbers(keys);
    Value lowered = b.fsub(own, b.constantFloat(own.getType(), float(d.bound.penalty)));
    lowered = b.select(b.compare(Compare::Ne, numbers(marks), 0), own, lowered);
    b.storeFloats(lowered, choices, DType::F32, chunk);
    key = b.select(b.compare(Compare::Eq, key, noChoice), key, keyOf(lowered));
    b.store(key, b.at(keys, chunk.column, DType::I32), DType::I32, chunk.mask);
  });
}

/// Keys of experts that none of the best nodes has become "none".
void RoutingEmitter::limitNodes() {
  markBestNodes(d.bound.most, d.bound.most);
  Type vector = b.vec(b.i32(), b.lanes());
  b.loop(0, padded, b.lanes(), [&](Value e) {
    Value place = b.at(keys, e, DType::I32), mark = b.load(vector, b.at(marks, e, DType::I32), DType::I32);
    Value key = b.load(vector, place, DType::I32);
    b.store(b.select(b.compare(Compare::Ne, mark, 0), key, b.constant(vector, noChoice)), place, DType::I32);
  });
}

/// The experts of the topK largest keys into `chosen`, in falling choice; their number.
Value RoutingEmitter::chooseBest() {
  if (d.groups > 1 && d.topkGroups < d.groups)
    limitGroups();
  const bool isLowered = d.bound.isBound() && d.bound.penalty > 0;
  if (isLowered)
    lowerAway();
  if (d.bound.isBound() && d.bound.most > 0)
    limitNodes();
  return b.loop(0, d.topK, 1, b.constant(0), [&](Value k, ValueRange count) {
    const Best best = bestOf(keys, b.constant(0), d.experts);
    Value key = best.key, expert = best.index;
    Value found = b.compare(Compare::Ne, key, noChoice);
    b.when(found, [&] {
      if (isLowered)
        chosen.insert(k, keyOf(choice(b.extend(expert))), expert, b.number(0.0f));
      else
        chosen.set(k, key, expert, b.number(0.0f));
      storeKey(none(), keys, b.extend(expert));
    });
    return Values{b.select(found, b.add(count[0], 1), count[0])};
  })[0];
}

/// The forced experts into `chosen`; their number.
Value RoutingEmitter::chooseForced(Value forced) {
  return b.loop(0, d.topK, 1, b.constant(0), [&](Value k, ValueRange count) {
    Value expert = b.loadI32(forced, k);
    Value valid = b.compare(Compare::Lt, expert, d.experts);
    b.fail(b.bitNot(valid), K2RT_STATUS_OUT_OF_RANGE);
    Value present = b.bitAnd(valid, b.compare(Compare::Ge, expert, 0));
    b.when(present, [&] { chosen.insert(count[0], b.loadI32(keys, b.extend(expert)), expert, b.number(0.0f)); });
    return Values{b.select(present, b.add(count[0], 1), count[0])};
  })[0];
}

void RoutingEmitter::weigh(Value count, Value forced, Value forcedWeights) {
  Value zero = b.constant(0);
  Value sum = b.loop(zero, count, 1, b.number(0.0f),
                     [&](Value k, ValueRange state) { return Values{b.fadd(state[0], score(chosen.expert(k)))}; })[0];
  Value divisor = b.fadd(sum, b.number(RoutingDesc::normalizerEps));
  Value replaces = b.bitAnd(isThere(forced), isThere(forcedWeights));
  b.loop(zero, count, 1, [&](Value k) {
    Value expert = chosen.expert(k), weight = score(expert);
    weight = b.fmul(d.normalize ? b.fdiv(weight, divisor) : weight, b.number(float(d.scale)));
    weight = b.choose(
        replaces, b.f32(),
        [&] {
          return b.loop(0, d.topK, 1, weight, [&](Value i, ValueRange state) {
            Value given = b.loadFloats(b.at(forcedWeights, i, DType::F32), DType::F32, 0);
            Value use =
                b.bitAnd(b.compare(Compare::Eq, b.loadI32(forced, i), expert), b.bitNot(b.unordered(given, given)));
            return Values{b.select(use, given, state[0])};
          });
        },
        [&] { return Values{weight}; })[0];
    sorted.insert(k, keyOf(weight), expert, weight);
  });
}

void RoutingEmitter::write(Value count, Value expertsTo, Value weightsTo, Value first) {
  b.loop(0, d.topK, 1, [&](Value k) {
    Value present = b.compare(Compare::Lt, k, count), at = b.add(first, k);
    b.when(isThere(expertsTo), [&] {
      Value expert = b.select(present, sorted.expert(k), b.constant(b.i32(), -1));
      b.store(expert, b.at(expertsTo, at, DType::I32), DType::I32);
    });
    b.when(isThere(weightsTo), [&] {
      Value weight = b.select(present, sorted.weight(k), b.number(0.0f));
      b.store(weight, b.at(weightsTo, at, DType::F32), DType::F32);
    });
  });
}

void RoutingEmitter::emitRow(Value row) {
  scoreRow(b.row(b.argument(0), d.logits, row));
  Value place = b.mul(b.add(b.mul(layer, b.stepField(abi::step::layer_rows)), row), d.topK);
  Value forced = shifted(b.stepField(abi::step::forced_experts), place);
  Value forcedWeights = shifted(b.stepField(abi::step::forced_weights), place);
  Value isForced = b.choose(
      isThere(forced), b.i1(),
      [&] { return Values{b.compare(Compare::Ne, b.loadI32(forced, b.constant(0)), K2RT_ROUTE_FREE)}; },
      [&] { return Values{b.constant(b.i1(), 0)}; })[0];
  Value nobody = b.nullPointer();
  Values state = b.choose(
      isForced, {b.i64(), b.ptr()}, [&] { return Values{chooseForced(forced), forced}; },
      [&] { return Values{chooseBest(), nobody}; });
  weigh(state[0], state[1], forcedWeights);
  write(state[0], experts, weights, b.mul(row, d.topK));
  write(state[0], b.stepField(abi::step::capture_experts), b.stepField(abi::step::capture_weights), place);
}

} // namespace

int64_t routingBytes(const RoutingDesc &desc, int64_t lanes) {
  const int64_t bound = desc.bound.isBound() ? 2 * paddedExperts(desc, lanes) + desc.bound.nodes : 0;
  return (2 * paddedExperts(desc, lanes) + desc.groups + bound) * byteWidth(DType::I32);
}

void emitBody(KernelBuilder &b, const RoutingDesc &d, const TileConfig &) {
  RoutingEmitter router(b, d);
  b.items([&](Value row) { router.emitRow(row); });
}

} // namespace k2c::emit

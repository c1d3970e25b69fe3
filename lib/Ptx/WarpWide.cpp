//===- WarpWide.cpp - What lanes of a warp do together --------------------===//
//
// PTX ISA, shfl.sync, and Parallel Synchronization and Communication Instructions: shfl, vote, match, activemask,
// redux, elect. The lanes of the mask meet first.
//
//===----------------------------------------------------------------------===//
#include "Integers.h"

#include <algorithm>

namespace k2c::ptx {

namespace {

enum ShuffleKind { Up, Down, Butterfly, Index };

/// sources: value, b, c, mask; destinations: value and, unless it is noSlot, whether the lane read is in range.
template <ShuffleKind kind> Outcome shuffle(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  if (const Outcome met = membersAreHere(machine, warp, o, active, o.sources[3]); met != Outcome::Next)
    return met;
  const uint32_t *a = warp.source<uint32_t>(o.sources[0]), *b = warp.source<uint32_t>(o.sources[1]),
                 *c = warp.source<uint32_t>(o.sources[2]);
  uint32_t values[warpLanes] = {}, inRange = 0, strangers = 0;
  forLanes(active, [&](int lane) {
    const uint32_t by = b[lane] & 31, clamp = c[lane] & 31, segment = c[lane] >> 8 & 31;
    const uint32_t own = uint32_t(lane), last = (own & segment) | (clamp & ~segment), first = own & segment;
    uint32_t from = own;
    bool isIn = false;
    if (kind == Up) {
      from = own - by;
      isIn = int32_t(from) >= int32_t(last);
    } else if (kind == Down) {
      from = own + by;
      isIn = from <= last;
    } else if (kind == Butterfly) {
      from = own ^ by;
      isIn = from <= last;
    } else {
      from = first | (by & ~segment);
      isIn = from <= last;
    }
    if (!isIn)
      from = own;
    if (!(active >> from & 1))
      strangers |= uint32_t(1) << lane;
    values[lane] = a[from];
    inRange |= uint32_t(isIn) << lane;
  });
  if (strangers != 0)
    return machine.fail(warp, o, strangers, "they read lanes that do not take part", "name those in the mask");
  uint32_t *d = warp.destination<uint32_t>(o.destinations[0]);
  forLanes(active, [&](int lane) { d[lane] = values[lane]; });
  if (o.destinations[1] != noSlot)
    warp.setPredicate(o.destinations[1], active, inRange);
  return Outcome::Next;
}

void decodeShuffle(Decoder &d) {
  if (!d.accept("sync"))
    return decodeForm(d, nullptr, {});
  static constexpr Handler all[] = {shuffle<Up>, shuffle<Down>, shuffle<Butterfly>, shuffle<Index>};
  const int kind = d.acceptOneOf({"up", "down", "bfly", "idx"});
  const Type type = d.takeType();
  d.expectOperands(5, 5);
  if (kind < 0 || type != Type::B32 || d.hasFailed())
    return decodeForm(d, nullptr, {});
  Operation &made = d.operation();
  made.run = all[kind];
  for (size_t i = 0; i < 4; ++i)
    made.sources[i] = d.source(i + 1, Type::B32);
  const Operand &to = d.operandAt(0);
  const bool isPair = to.kind == Operand::Kind::Pair;
  made.destinations[0] = d.destinationOf(isPair ? to.parts[0] : to, Type::B32);
  if (isPair)
    made.destinations[1] = d.destinationOrSink(to.parts[1], Type::Pred);
}

enum VoteKind { All, Any, Uniform, Ballot };

/// sources: predicate, mask; `isSigned`: the predicate is negated.
template <VoteKind kind> Outcome vote(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  if (const Outcome met = membersAreHere(machine, warp, o, active, o.sources[1]); met != Outcome::Next)
    return met;
  const uint32_t word = warp.predicate(o.sources[0]), lanes = (o.isSigned ? ~word : word) & active;
  if (kind == Ballot) {
    uint32_t *d = warp.destination<uint32_t>(o.destinations[0]);
    forLanes(active, [&](int lane) { d[lane] = lanes; });
    return Outcome::Next;
  }
  const bool holds = kind == All ? lanes == active : kind == Any ? lanes != 0 : lanes == active || lanes == 0;
  warp.setPredicate(o.destinations[0], active, holds ? allLanes : 0);
  return Outcome::Next;
}

void decodeVote(Decoder &d) {
  if (!d.accept("sync"))
    return decodeForm(d, nullptr, {});
  static constexpr Handler all[] = {vote<All>, vote<Any>, vote<Uniform>, vote<Ballot>};
  const int kind = d.acceptOneOf({"all", "any", "uni", "ballot"});
  const Type type = d.takeType();
  d.expectOperands(3, 3);
  if (kind < 0 || type != (kind == Ballot ? Type::B32 : Type::Pred) || d.hasFailed())
    return decodeForm(d, nullptr, {});
  Operation &made = d.operation();
  made.run = all[kind];
  made.sources[0] = d.source(1, Type::Pred);
  made.isSigned = d.operandAt(1).isNegated;
  made.sources[1] = d.source(2, Type::B32);
  made.destinations[0] = d.destination(0, type);
}

/// match.any: the lanes that have the same value; match.all: all, if all have, else none.
template <class T, bool isAll> Outcome match(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  if (const Outcome met = membersAreHere(machine, warp, o, active, o.sources[1]); met != Outcome::Next)
    return met;
  const T *a = warp.source<T>(o.sources[0]);
  uint32_t same[warpLanes] = {};
  forLanes(active, [&](int lane) {
    forLanes(active, [&](int other) { same[lane] |= uint32_t(a[lane] == a[other]) << other; });
    if (isAll && same[lane] != active)
      same[lane] = 0;
  });
  uint32_t *d = warp.destination<uint32_t>(o.destinations[0]);
  forLanes(active, [&](int lane) { d[lane] = same[lane]; });
  if (o.destinations[1] != noSlot)
    warp.setPredicate(o.destinations[1], active, same[__builtin_ctz(active)] != 0 ? allLanes : 0);
  return Outcome::Next;
}

void decodeMatch(Decoder &d) {
  const int kind = d.acceptOneOf({"any", "all"});
  if (!d.accept("sync") || kind < 0)
    return decodeForm(d, nullptr, {});
  const Type type = d.takeType();
  d.expectOperands(3, 3);
  if (!isBits(type) || bitsOf(type) < 32 || d.hasFailed())
    return decodeForm(d, nullptr, {});
  Operation &made = d.operation();
  const bool isWide = bitsOf(type) == 64;
  made.run = kind == 1 ? (isWide ? match<uint64_t, true> : match<uint32_t, true>)
                       : (isWide ? match<uint64_t, false> : match<uint32_t, false>);
  made.sources[0] = d.source(1, type);
  made.sources[1] = d.source(2, Type::B32);
  const Operand &to = d.operandAt(0);
  const bool isPair = to.kind == Operand::Kind::Pair;
  made.destinations[0] = d.destinationOf(isPair ? to.parts[0] : to, Type::B32);
  if (isPair)
    made.destinations[1] = d.destinationOrSink(to.parts[1], Type::Pred);
}

template <class T, T (*apply)(T, T)> Outcome reduce(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  if (const Outcome met = membersAreHere(machine, warp, o, active, o.sources[1]); met != Outcome::Next)
    return met;
  const uint32_t *a = warp.source<uint32_t>(o.sources[0]);
  T all = valueOf<T>(a[__builtin_ctz(active)]);
  forLanes(active & (active - 1), [&](int lane) { all = apply(all, valueOf<T>(a[lane])); });
  uint32_t *d = warp.destination<uint32_t>(o.destinations[0]);
  forLanes(active, [&](int lane) { d[lane] = bitsOf<T>(all); });
  return Outcome::Next;
}

template <class T> T sum(T a, T b) { return T(uint32_t(a) + uint32_t(b)); }
template <class T> T least(T a, T b) { return std::min(a, b); }
template <class T> T greatest(T a, T b) { return std::max(a, b); }
uint32_t both(uint32_t a, uint32_t b) { return a & b; }
uint32_t either(uint32_t a, uint32_t b) { return a | b; }
uint32_t one(uint32_t a, uint32_t b) { return a ^ b; }

void decodeRedux(Decoder &d) {
  if (!d.accept("sync"))
    return decodeForm(d, nullptr, {});
  static constexpr Handler words[] = {
      reduce<uint32_t, sum<uint32_t>>, reduce<uint32_t, least<uint32_t>>, reduce<uint32_t, greatest<uint32_t>>,
      reduce<uint32_t, both>,          reduce<uint32_t, either>,          reduce<uint32_t, one>};
  static constexpr Handler numbers[] = {reduce<int32_t, sum<int32_t>>, reduce<int32_t, least<int32_t>>,
                                        reduce<int32_t, greatest<int32_t>>};
  const int which = d.acceptOneOf({"add", "min", "max", "and", "or", "xor"});
  const Type type = d.takeType();
  const bool isLogic = which >= 3;
  const Handler handler = which < 0           ? nullptr
                          : isLogic           ? (type == Type::B32 ? words[which] : nullptr)
                          : type == Type::U32 ? words[which]
                          : type == Type::S32 ? numbers[which]
                                              : nullptr;
  decodeForm(d, handler, {type, type, Type::B32});
}

Outcome activeMask(Machine &, Warp &warp, const Operation &o, uint32_t active) {
  uint32_t *d = warp.destination<uint32_t>(o.destinations[0]);
  forLanes(active, [=](int lane) { d[lane] = active; });
  return Outcome::Next;
}

/// One of the mask's lanes: the first that is here.
Outcome elect(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  if (const Outcome met = membersAreHere(machine, warp, o, active, o.sources[0]); met != Outcome::Next)
    return met;
  const auto leader = static_cast<uint32_t>(__builtin_ctz(active));
  if (o.destinations[0] != noSlot) {
    uint32_t *d = warp.destination<uint32_t>(o.destinations[0]);
    forLanes(active, [=](int lane) { d[lane] = leader; });
  }
  warp.setPredicate(o.destinations[1], active, uint32_t(1) << leader);
  return Outcome::Next;
}

} // namespace

void addWarpWide(Opcodes &opcodes) {
  opcodes["shfl"] = decodeShuffle;
  opcodes["vote"] = decodeVote;
  opcodes["match"] = decodeMatch;
  opcodes["redux"] = decodeRedux;
  opcodes["activemask"] = [](Decoder &d) {
    const Type type = d.takeType();
    decodeForm(d, type == Type::B32 ? activeMask : nullptr, {type});
  };
  opcodes["elect"] = [](Decoder &d) {
    if (!d.accept("sync") || d.operandCount() != 2 || d.operandAt(0).kind != Operand::Kind::Pair)
      return decodeForm(d, nullptr, {});
    d.operation().run = elect;
    d.operation().sources[0] = d.source(1, Type::B32);
    d.operation().destinations[0] = d.destinationOrSink(d.operandAt(0).parts[0], Type::B32);
    d.operation().destinations[1] = d.destinationOf(d.operandAt(0).parts[1], Type::Pred);
  };
}

} // namespace k2c::ptx

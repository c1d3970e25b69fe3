//===- Atomics.cpp - Atomic operations and fences -------------------------===//
//
// PTX ISA, Parallel Synchronization and Communication Instructions: atom, red, fence, membar. Lanes of an instruction
// go one after another, in an order that is drawn.
//
//===----------------------------------------------------------------------===//
#include "Halves.h"
#include "Integers.h"
#include "Pieces.h"
#include "Races.h"

#include <algorithm>

namespace k2c::ptx {

namespace {

enum Kind : uint64_t { Add, Min, Max, And, Or, Xor, Exchange, CompareExchange, Increment, Decrement };

template <class T> T applied(Kind kind, T old, T b, T c) {
  using Bits = Stored<T>;
  switch (kind) {
  case Add:
    if constexpr (std::is_floating_point_v<T>)
      return old + b;
    else
      return T(Bits(old) + Bits(b));
  case Min:
    return std::min(old, b);
  case Max:
    return std::max(old, b);
  case And:
    return valueOf<T>(bitsOf<T>(old) & bitsOf<T>(b));
  case Or:
    return valueOf<T>(bitsOf<T>(old) | bitsOf<T>(b));
  case Xor:
    return valueOf<T>(bitsOf<T>(old) ^ bitsOf<T>(b));
  case Exchange:
    return b;
  case CompareExchange:
    return old == b ? c : old;
  case Increment:
    return old >= b ? T(0) : T(old + 1);
  case Decrement:
    return old == T(0) || old > b ? b : T(old - 1);
  }
  return old;
}

/// The same of what memory holds of a T.
template <class T, class B> B appliedToBits(Kind kind, B old, B b, B c) {
  return static_cast<B>(bitsOf<T>(applied<T>(kind, valueOf<T>(old), valueOf<T>(b), valueOf<T>(c))));
}

/// Sums of one or two halves.
template <class B, bool isBrain> B halfSums(Kind, B old, B b, B) {
  constexpr HalfFormat format = isBrain ? bf16Format : f16Format;
  uint32_t made = 0;
  for (unsigned shift = 0; shift < 8 * sizeof(B); shift += 16)
    made |= uint32_t(halfOf(valueOfHalf(static_cast<uint16_t>(old >> shift), format) +
                                valueOfHalf(static_cast<uint16_t>(b >> shift), format),
                            format, false))
            << shift;
  return static_cast<B>(made);
}

/// sources: address, b, c; destinations: the old value, unless it is noSlot.
template <class B, B (*apply)(Kind, B, B, B)>
Outcome atomic(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  int order[warpLanes], count = 0;
  for (uint32_t left = active; left != 0; left &= left - 1)
    order[count++] = __builtin_ctz(left);
  std::shuffle(order, order + count, machine.random);
  const auto *b = warp.source<Stored<B>>(o.sources[1]);
  const auto *c = o.sources[2] == noSlot ? b : warp.source<Stored<B>>(o.sources[2]);
  for (int i = 0; i < count; ++i) {
    const int lane = order[i];
    std::byte *reached = machine.reach(warp, o, addressOf(warp, o, lane), lane, sizeof(B), Access::ReadWrite);
    if (!reached)
      return Outcome::Failed;
    B bits;
    std::memcpy(&bits, reached, sizeof bits);
    const B made = apply(static_cast<Kind>(o.target), bits, static_cast<B>(b[lane]), static_cast<B>(c[lane]));
    if (made != bits)
      machine.quiet = 0;
    std::memcpy(reached, &made, sizeof made);
    if (o.destinations[0] != noSlot)
      warp.destination<Stored<B>>(o.destinations[0])[lane] = bits;
  }
  return Outcome::Next;
}

/// The form of an operation for a type: `Form<T, B>` of a number that memory holds as B, `Halves<B, isBrain>` of sums
/// of halves.
template <template <class, class> class Form, template <class, bool> class Halves, class Made>
Made formOf(Kind kind, Type type) {
  const bool isLogic = kind >= And && kind <= Xor, isSwap = kind == Exchange || kind == CompareExchange;
  switch (type) {
  case Type::B16:
    return isSwap ? Form<uint16_t, uint16_t>::made : nullptr;
  case Type::B32:
    return isLogic || isSwap ? Form<uint32_t, uint32_t>::made : nullptr;
  case Type::B64:
    return isLogic || isSwap ? Form<uint64_t, uint64_t>::made : nullptr;
  case Type::U32:
    return isLogic || isSwap ? nullptr : Form<uint32_t, uint32_t>::made;
  case Type::U64:
    return kind <= Max ? Form<uint64_t, uint64_t>::made : nullptr;
  case Type::S32:
    return kind <= Max ? Form<int32_t, uint32_t>::made : nullptr;
  case Type::S64:
    return kind == Min || kind == Max ? Form<int64_t, uint64_t>::made : nullptr;
  case Type::F32:
    return kind == Add ? Form<float, uint32_t>::made : nullptr;
  case Type::F64:
    return kind == Add ? Form<double, uint64_t>::made : nullptr;
  case Type::F16:
    return kind == Add ? Halves<uint16_t, false>::made : nullptr;
  case Type::BF16:
    return kind == Add ? Halves<uint16_t, true>::made : nullptr;
  case Type::F16x2:
    return kind == Add ? Halves<uint32_t, false>::made : nullptr;
  case Type::BF16x2:
    return kind == Add ? Halves<uint32_t, true>::made : nullptr;
  default:
    return nullptr;
  }
}

template <class T, class B> struct AtomicForm {
  static constexpr Handler made = atomic<B, appliedToBits<T, B>>;
};
template <class B, bool isBrain> struct AtomicHalves {
  static constexpr Handler made = atomic<B, halfSums<B, isBrain>>;
};

/// Reductions of bulk copies choose their kind in the type of a function, as they have no operation when they are done.
template <class B, B (*apply)(Kind, B, B, B)> struct Combines {
  template <Kind kind> static void combine(std::byte *to, const std::byte *from, uint32_t bytes) {
    for (uint32_t at = 0; at < bytes; at += sizeof(B)) {
      B a, b;
      std::memcpy(&a, to + at, sizeof a);
      std::memcpy(&b, from + at, sizeof b);
      a = apply(kind, a, b, b);
      std::memcpy(to + at, &a, sizeof a);
    }
  }
  static Combine of(Kind kind) {
    static constexpr Combine all[] = {combine<Add>, combine<Min>, combine<Max>,
                                      combine<And>, combine<Or>,  combine<Xor>};
    return kind <= Xor ? all[kind] : nullptr;
  }
};
using CombineOf = Combine (*)(Kind);
template <class T, class B> struct CombineForm {
  static constexpr CombineOf made = Combines<B, appliedToBits<T, B>>::of;
};
template <class B, bool isBrain> struct CombineHalves {
  static constexpr CombineOf made = Combines<B, halfSums<B, isBrain>>::of;
};

bool isOfHalves(Type type) {
  return kindOf(type) == TypeKind::Packed || (kindOf(type) == TypeKind::Float && bitsOf(type) == 16);
}

void decodeAtomic(Decoder &d, bool hasResult) {
  Operation &made = d.operation();
  made.strength = Strength::Relaxed;
  made.scope = Scope::Gpu;
  const int order = d.acceptOneOf({"relaxed", "acquire", "release", "acq_rel"});
  if (order > 0)
    made.strength = order == 1 ? Strength::Acquire : order == 2 ? Strength::Release : Strength::AcquireRelease;
  for (const std::string_view scope : {"cta", "cluster", "gpu", "sys"})
    if (d.nextModifier() == scope)
      made.scope = takeScope(d);
  Window window = Window::Generic;
  const int space = d.acceptOneOf({"global", "shared", "shared::cta", "shared::cluster"});
  if (space >= 0)
    window = space == 0 ? Window::Global : Window::Shared;
  if (space < 0 && order < 0)
    for (const std::string_view scope : {"cta", "cluster", "gpu", "sys"})
      if (d.nextModifier() == scope)
        made.scope = takeScope(d);
  const int kind = d.acceptOneOf({"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"});
  const bool isUnflushed = d.accept("noftz");
  const Type type = d.takeType();
  const Handler handler = kind < 0 || isUnflushed != isOfHalves(type)
                              ? nullptr
                              : formOf<AtomicForm, AtomicHalves, Handler>(static_cast<Kind>(kind), type);
  const bool isCompare = kind == CompareExchange;
  if (!handler || d.hasFailed() || (!hasResult && (isCompare || kind == Exchange)))
    return decodeForm(d, nullptr, {});
  const size_t first = hasResult ? 1 : 0, count = first + (isCompare ? 3 : 2);
  d.expectOperands(count, count);
  if (d.hasFailed())
    return;
  made.run = handler;
  made.target = static_cast<uint32_t>(kind);
  made.sources[1] = d.source(first + 1, type);
  if (isCompare)
    made.sources[2] = d.source(first + 2, type);
  d.address(d.operandAt(first), 0, window);
  if (hasResult)
    made.destinations[0] = d.destinationOrSink(d.operandAt(0), type);
}

Outcome nothing(Machine &, Warp &, const Operation &, uint32_t) { return Outcome::Next; }

Outcome fence(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  if (machine.races)
    machine.races->fence(warp, o, active);
  return Outcome::Next;
}

Outcome fenceMade(Machine &machine, Warp &warp, const Operation &, uint32_t active) {
  if (machine.races)
    machine.races->fenceMade(warp, active);
  return Outcome::Next;
}

void decodeFence(Decoder &d) {
  Operation &made = d.operation();
  if (d.accept("proxy")) {
    if (d.accept("tensormap::generic")) { // maps are read as they are
      const bool isAcquire = d.accept("acquire");
      if (!isAcquire && !d.accept("release"))
        return decodeForm(d, nullptr, {});
      takeScope(d);
      d.expectOperands(isAcquire ? 2 : 0, isAcquire ? 2 : 0);
      if (isAcquire && !d.hasFailed()) {
        d.addAddress(d.operandAt(0));
        d.constant(d.operandAt(1), "the number of bytes");
      }
      made.run = nothing;
      return;
    }
    if (!d.accept("async"))
      return decodeForm(d, nullptr, {});
    const int where = d.acceptOneOf({"shared::cta", "shared::cluster", "global"});
    made.target = where < 0 ? 3 : where == 2 ? 2 : 1;
    d.expectOperands(0, 0);
    made.run = fenceProxy;
    return;
  }
  if (d.accept("mbarrier_init")) {
    if (!d.accept("release") || !d.accept("cluster"))
      return decodeForm(d, nullptr, {});
    d.expectOperands(0, 0);
    made.run = fenceMade;
    return;
  }
  const int kind = d.acceptOneOf({"acq_rel", "sc", "acquire", "release"});
  made.target = kind == 2   ? Races::Acquires
                : kind == 3 ? Races::Releases
                            : Races::Acquires | Races::Releases | (kind == 1 ? uint32_t(Races::IsSequential) : 0u);
  made.scope = takeScope(d);
  made.strength = Strength::AcquireRelease;
  d.expectOperands(0, 0);
  made.run = fence;
}

} // namespace

std::optional<uint32_t> takeReductionKind(Decoder &d) {
  constexpr uint32_t kinds[] = {Add, Min, Max, And, Or, Xor};
  const int kind = d.acceptOneOf({"add", "min", "max", "and", "or", "xor"});
  return kind < 0 ? std::nullopt : std::optional<uint32_t>(kinds[kind]);
}

Combine reductionOf(uint32_t kind, Type type) {
  const CombineOf made = formOf<CombineForm, CombineHalves, CombineOf>(static_cast<Kind>(kind), type);
  return made ? made(static_cast<Kind>(kind)) : nullptr;
}

Combine takeReduction(Decoder &d) {
  const std::optional<uint32_t> kind = takeReductionKind(d);
  const bool isUnflushed = d.accept("noftz");
  const Type type = d.takeType();
  if (!kind || d.hasFailed() || isUnflushed != isOfHalves(type))
    return nullptr;
  d.operation().bytes = static_cast<uint8_t>(bytesOf(type));
  return reductionOf(*kind, type);
}

void addAtomics(Opcodes &opcodes) {
  opcodes["atom"] = [](Decoder &d) { decodeAtomic(d, true); };
  opcodes["red"] = [](Decoder &d) { decodeAtomic(d, false); };
  opcodes["fence"] = decodeFence;
  opcodes["membar"] = [](Decoder &d) {
    Operation &made = d.operation();
    const int level = d.acceptOneOf({"cta", "gl", "sys"});
    if (level < 0)
      return decodeForm(d, nullptr, {});
    made.scope = level == 0 ? Scope::Cta : level == 1 ? Scope::Gpu : Scope::System;
    made.strength = Strength::AcquireRelease;
    made.target = Races::Acquires | Races::Releases | Races::IsSequential;
    d.expectOperands(0, 0);
    made.run = fence;
  };
}

} // namespace k2c::ptx

//===- Compare.cpp - setp and selp ----------------------------------------===//
//
// PTX ISA, Comparison and Selection Instructions. A comparison of numbers is false where one operand is no number,
// unless its name ends in u.
//
//===----------------------------------------------------------------------===//
#include "Floats.h"
#include "Halves.h"
#include "Integers.h"

namespace k2c::ptx {

namespace {

enum Comparison { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };

template <class T, Comparison c> bool holds(T a, T b) {
  const bool isUnordered = a != a || b != b;
  switch (c) {
  case Eq:
    return a == b;
  case Ne:
    return !isUnordered && a != b;
  case Lt:
    return a < b;
  case Le:
    return a <= b;
  case Gt:
    return a > b;
  case Ge:
    return a >= b;
  case Equ:
    return isUnordered || a == b;
  case Neu:
    return isUnordered || a != b;
  case Ltu:
    return isUnordered || a < b;
  case Leu:
    return isUnordered || a <= b;
  case Gtu:
    return isUnordered || a > b;
  case Geu:
    return isUnordered || a >= b;
  case Num:
    return !isUnordered;
  case Nan:
    return isUnordered;
  }
  return false;
}

enum Join : uint64_t { None, And, Or, Xor, NegatedThird = 4, Flushed = 8 };

/// p|q = comparison, its negation; each joined with a third predicate.
template <class T, Comparison c> Outcome setp(Machine &, Warp &warp, const Operation &o, uint32_t active) {
  const auto *a = warp.source<Stored<T>>(o.sources[0]), *b = warp.source<Stored<T>>(o.sources[1]);
  uint32_t lanes = 0;
  forLanes(active, [&, isFlushed = (o.immediate & Flushed) != 0](int lane) {
    T x = valueOf<T>(a[lane]), y = valueOf<T>(b[lane]);
    if constexpr (std::is_same_v<T, float>)
      if (isFlushed) {
        x = std::abs(x) < std::numeric_limits<float>::min() ? 0 : x;
        y = std::abs(y) < std::numeric_limits<float>::min() ? 0 : y;
      }
    lanes |= uint32_t(holds<T, c>(x, y)) << lane;
  });
  uint32_t other = ~lanes;
  if (const uint64_t join = o.immediate & 3; join != None) {
    uint32_t third = warp.predicate(o.sources[2]);
    if (o.immediate & NegatedThird)
      third = ~third;
    lanes = join == And ? lanes & third : join == Or ? lanes | third : lanes ^ third;
    other = join == And ? other & third : join == Or ? other | third : other ^ third;
  }
  if (o.destinations[0] != noSlot)
    warp.setPredicate(o.destinations[0], active, lanes);
  if (o.destinations[1] != noSlot)
    warp.setPredicate(o.destinations[1], active, other);
  return Outcome::Next;
}

/// Halves become f32; `count`: two of them give a predicate each.
template <Comparison c> Outcome setpOfHalves(Machine &, Warp &warp, const Operation &o, uint32_t active) {
  const auto *a = warp.source<uint32_t>(o.sources[0]), *b = warp.source<uint32_t>(o.sources[1]);
  const HalfFormat format = o.isSigned ? bf16Format : f16Format;
  uint32_t lanes[2] = {};
  forLanes(active, [&](int lane) {
    for (int half = 0; half < 2; ++half)
      lanes[half] |= uint32_t(holds<double, c>(valueOfHalf(static_cast<uint16_t>(a[lane] >> 16 * half), format),
                                               valueOfHalf(static_cast<uint16_t>(b[lane] >> 16 * half), format)))
                     << lane;
  });
  if (o.count == 1)
    lanes[1] = ~lanes[0];
  for (int i = 0; i < 2; ++i)
    if (o.destinations[i] != noSlot)
      warp.setPredicate(o.destinations[i], active, lanes[i]);
  return Outcome::Next;
}

/// set.CmpOp.f32.f32 and .u32.f32: 1 and all bits set, where the comparison holds.
template <Comparison c> Outcome set(Machine &, Warp &warp, const Operation &o, uint32_t active) {
  const auto *a = warp.source<uint32_t>(o.sources[0]), *b = warp.source<uint32_t>(o.sources[1]);
  auto *d = warp.destination<uint32_t>(o.destinations[0]);
  forLanes(active, [&](int lane) {
    d[lane] = holds<float, c>(valueOf<float>(a[lane]), valueOf<float>(b[lane])) ? uint32_t(o.immediate) : 0;
  });
  return Outcome::Next;
}

/// Handlers of `function` for each comparison.
#define K2C_PTX_COMPARISONS(function)                                                                                  \
  {function<Eq>,  function<Ne>,  function<Lt>,  function<Le>,  function<Gt>,  function<Ge>,  function<Equ>,            \
   function<Neu>, function<Ltu>, function<Leu>, function<Gtu>, function<Geu>, function<Num>, function<Nan>}

template <class T> constexpr std::array<Handler, 14> comparisonsOf() {
  return {setp<T, Eq>,  setp<T, Ne>,  setp<T, Lt>,  setp<T, Le>,  setp<T, Gt>,  setp<T, Ge>,  setp<T, Equ>,
          setp<T, Neu>, setp<T, Ltu>, setp<T, Leu>, setp<T, Gtu>, setp<T, Geu>, setp<T, Num>, setp<T, Nan>};
}

Handler comparison(Type type, int which) {
  static constexpr auto u16 = comparisonsOf<uint16_t>(), u32 = comparisonsOf<uint32_t>(),
                        u64 = comparisonsOf<uint64_t>(), s16 = comparisonsOf<int16_t>(), s32 = comparisonsOf<int32_t>(),
                        s64 = comparisonsOf<int64_t>(), f32 = comparisonsOf<float>(), f64 = comparisonsOf<double>();
  const auto at = static_cast<size_t>(which);
  const bool isFloat = type == Type::F32 || type == Type::F64;
  if (!isFloat && (which > Ge || (isBits(type) && which > Ne)))
    return nullptr;
  switch (type) {
  case Type::F32:
    return f32[at];
  case Type::F64:
    return f64[at];
  default: {
    const Handlers all{u16[at], u32[at], u64[at], s16[at], s32[at], s64[at]};
    return isInteger(type) || isBits(type) ? all.of(type) : nullptr;
  }
  }
}

int acceptComparison(Decoder &d) {
  return d.acceptOneOf({"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"});
}

void decodeSetpOfHalves(Decoder &d, int which) {
  static constexpr Handler all[] = K2C_PTX_COMPARISONS(setpOfHalves);
  const Type type = d.takeType();
  d.expectOperands(3, 3);
  if (which < 0 || d.hasFailed())
    return decodeForm(d, nullptr, {});
  Operation &made = d.operation();
  made.run = all[which];
  made.isSigned = type == Type::BF16 || type == Type::BF16x2;
  made.count = kindOf(type) == TypeKind::Packed ? 2 : 1;
  made.sources[0] = d.source(1, type);
  made.sources[1] = d.source(2, type);
  const Operand &to = d.operandAt(0);
  const bool isPair = to.kind == Operand::Kind::Pair;
  made.destinations[0] = d.destinationOrSink(isPair ? to.parts[0] : to, Type::Pred);
  if (isPair)
    made.destinations[1] = d.destinationOrSink(to.parts[1], Type::Pred);
}

void decodeSet(Decoder &d) {
  static constexpr Handler all[] = K2C_PTX_COMPARISONS(set);
  const int which = acceptComparison(d);
  const Type to = d.takeType(), from = d.takeType();
  const bool isKnown = which >= 0 && from == Type::F32 && (to == Type::F32 || to == Type::U32 || to == Type::S32);
  decodeForm(d, isKnown ? all[which] : nullptr, {to, from, from});
  d.operation().immediate = to == Type::F32 ? bitsOf<float>(1) : 0xffffffffu;
}

void decodeSetp(Decoder &d) {
  int which = acceptComparison(d);
  if (isHalf(d))
    return decodeSetpOfHalves(d, which);
  const bool isUnsignedName = which < 0;
  if (isUnsignedName)
    if (const int name = d.acceptOneOf({"lo", "ls", "hi", "hs"}); name >= 0)
      which = Lt + name;
  const int join = d.acceptOneOf({"and", "or", "xor"});
  const bool isFlushed = d.accept("ftz");
  const Type type = d.takeType();
  const bool isRefused = isUnsignedName && kindOf(type) != TypeKind::Unsigned;
  const Handler handler =
      which < 0 || isRefused || (isFlushed && type != Type::F32) ? nullptr : comparison(type, which);
  if (!handler || d.hasFailed())
    return decodeForm(d, nullptr, {});
  d.expectOperands(join < 0 ? 3 : 4, join < 0 ? 3 : 4);
  Operation &made = d.operation();
  made.run = handler;
  made.immediate = static_cast<uint64_t>(join + 1) | (isFlushed ? uint64_t(Flushed) : 0);
  made.sources[0] = d.source(1, type);
  made.sources[1] = d.source(2, type);
  if (join >= 0) {
    made.sources[2] = d.source(3, Type::Pred);
    made.immediate |= d.operandAt(3).isNegated ? uint64_t(NegatedThird) : 0;
  }
  const Operand &to = d.operandAt(0);
  const bool isPair = to.kind == Operand::Kind::Pair;
  made.destinations[0] = d.destinationOrSink(isPair ? to.parts[0] : to, Type::Pred);
  if (isPair)
    made.destinations[1] = d.destinationOrSink(to.parts[1], Type::Pred);
}

template <class T> Outcome selp(Machine &, Warp &warp, const Operation &o, uint32_t active) {
  const T *a = warp.source<T>(o.sources[0]), *b = warp.source<T>(o.sources[1]);
  T *d = warp.destination<T>(o.destinations[0]);
  forLanes(active,
           [=, chosen = warp.predicate(o.sources[2])](int lane) { d[lane] = chosen >> lane & 1 ? a[lane] : b[lane]; });
  return Outcome::Next;
}

} // namespace

void addComparisons(Opcodes &opcodes) {
  opcodes["setp"] = decodeSetp;
  opcodes["set"] = decodeSet;
  opcodes["selp"] = [](Decoder &d) {
    const Type type = d.takeType();
    decodeForm(d,
               bitsOf(type) == 64   ? selp<uint64_t>
               : bitsOf(type) >= 16 ? selp<uint32_t>
                                    : nullptr,
               {type, type, type, Type::Pred});
  };
}

} // namespace k2c::ptx

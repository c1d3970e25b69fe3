//===- Bits.cpp - Logic, shifts and bit fields ----------------------------===//
//
// PTX ISA, Integer Arithmetic Instructions (bit fields, counts), Logic and Shift Instructions: and, or, xor, not, lop3,
// shl, shr, shf, bfe, bfi, bfind, brev, clz, popc, prmt. Predicates are words of lanes.
//
//===----------------------------------------------------------------------===//
#include "Integers.h"

#include <algorithm>

namespace k2c::ptx {

namespace {

template <class T> using Unsigned = std::make_unsigned_t<T>;
template <class T> constexpr uint32_t widthOf = 8 * sizeof(T);

template <class T> T conjunction(T a, T b) { return a & b; }
template <class T> T disjunction(T a, T b) { return a | b; }
template <class T> T exclusion(T a, T b) { return a ^ b; }
template <class T> T complement(T a) { return T(~a); }
template <class T> T shiftLeft(T a, uint32_t by) { return by >= widthOf<T> ? T(0) : T(Unsigned<T>(a) << by); }
template <class T> T shiftRight(T a, uint32_t by) { return by < widthOf<T> ? T(a >> by) : a < 0 ? T(-1) : T(0); }
template <class T> uint32_t leadingZeros(T a) {
  return a == 0 ? widthOf<T> : uint32_t(__builtin_clzll(Unsigned<T>(a))) - (64 - widthOf<T>);
}
template <class T> uint32_t setBits(T a) { return uint32_t(__builtin_popcountll(Unsigned<T>(a))); }
template <class T> T reversed(T a) {
  Unsigned<T> made = 0;
  for (uint32_t i = 0; i < widthOf<T>; ++i)
    made |= Unsigned<T>((Unsigned<T>(a) >> i & 1) << (widthOf<T> - 1 - i));
  return T(made);
}
/// The position of the highest bit that differs from the sign; all bits set where none does.
template <class T> uint32_t highestBit(T a) {
  const auto bits = Unsigned<T>(a < 0 ? ~a : a);
  return bits == 0 ? ~uint32_t(0) : widthOf<T> - 1 - leadingZeros<Unsigned<T>>(bits);
}
/// Bits beyond the value are those of the field's sign, or 0.
template <class T> T extractField(T a, uint32_t position, uint32_t length) {
  const uint32_t from = position & 0xff, count = length & 0xff;
  if (count == 0)
    return 0;
  const auto bits = Unsigned<T>(a);
  const bool sign = std::is_signed_v<T> && (bits >> std::min(from + count - 1, widthOf<T> - 1) & 1);
  Unsigned<T> made = from < widthOf<T> ? Unsigned<T>(bits >> from) : Unsigned<T>(0);
  const uint32_t held = from < widthOf<T> ? std::min(count, widthOf<T> - from) : 0; ///< bits of it that exist
  if (held < widthOf<T>) {
    const auto mask = Unsigned<T>((Unsigned<T>(1) << held) - 1);
    made = sign ? made | Unsigned<T>(~mask) : made & mask;
  }
  return T(made);
}
template <class T> T insertField(T a, T b, uint32_t position, uint32_t length) {
  const uint32_t from = position & 0xff, count = length & 0xff;
  if (count == 0 || from >= widthOf<T>)
    return b;
  const Unsigned<T> ones = count >= widthOf<T> ? Unsigned<T>(-1) : Unsigned<T>((Unsigned<T>(1) << count) - 1);
  const auto mask = Unsigned<T>(ones << from);
  return T((Unsigned<T>(b) & ~mask) | (Unsigned<T>(Unsigned<T>(a) << from) & mask));
}
uint32_t permuteBytes(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t bytes = uint64_t(b) << 32 | a;
  uint32_t made = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t choice = selector >> (4 * i) & 0xf, byte = uint32_t(bytes >> (8 * (choice & 7)) & 0xff);
    made |= (choice & 8 ? (byte & 0x80 ? 0xff : 0) : byte) << (8 * i);
  }
  return made;
}
template <bool isLeft, bool isClamped> uint32_t funnelShift(uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t by = isClamped ? std::min<uint32_t>(c, 32) : c & 31;
  const uint64_t both = uint64_t(b) << 32 | a;
  return isLeft ? uint32_t(both << by >> 32) : uint32_t(both >> by);
}

template <uint32_t (*apply)(uint32_t, uint32_t)>
Outcome predicates(Machine &, Warp &warp, const Operation &o, uint32_t active) {
  warp.setPredicate(o.destinations[0], active, apply(warp.predicate(o.sources[0]), warp.predicate(o.sources[1])));
  return Outcome::Next;
}

Outcome notPredicate(Machine &, Warp &warp, const Operation &o, uint32_t active) {
  warp.setPredicate(o.destinations[0], active, ~warp.predicate(o.sources[0]));
  return Outcome::Next;
}

/// `immediate`: the truth table.
Outcome lop3(Machine &, Warp &warp, const Operation &o, uint32_t active) {
  const auto *a = warp.source<uint32_t>(o.sources[0]), *b = warp.source<uint32_t>(o.sources[1]),
             *c = warp.source<uint32_t>(o.sources[2]);
  auto *d = warp.destination<uint32_t>(o.destinations[0]);
  forLanes(active, [=, table = o.immediate](int lane) {
    uint32_t made = 0;
    for (uint32_t row = 0; row < 8; ++row)
      if (table >> row & 1)
        made |= (row & 4 ? a[lane] : ~a[lane]) & (row & 2 ? b[lane] : ~b[lane]) & (row & 1 ? c[lane] : ~c[lane]);
    d[lane] = made;
  });
  return Outcome::Next;
}

template <class T> Outcome insert(Machine &, Warp &warp, const Operation &o, uint32_t active) {
  const auto *a = warp.source<Stored<T>>(o.sources[0]), *b = warp.source<Stored<T>>(o.sources[1]);
  const auto *position = warp.source<uint32_t>(o.sources[2]), *length = warp.source<uint32_t>(o.sources[3]);
  auto *d = warp.destination<Stored<T>>(o.destinations[0]);
  forLanes(active, [=](int lane) { d[lane] = insertField<T>(a[lane], b[lane], position[lane], length[lane]); });
  return Outcome::Next;
}

template <uint32_t (*ofPredicates)(uint32_t, uint32_t)> void decodeLogic(Decoder &d, const Handlers &all) {
  const Type type = d.takeType();
  decodeForm(d,
             type == Type::Pred ? Handler(predicates<ofPredicates>)
             : isBits(type)     ? all.of(type)
                                : nullptr,
             {type, type, type});
}

void decodeCount(Decoder &d, const Handlers &all) {
  const Type type = d.takeType();
  decodeForm(d, isBits(type) && bitsOf(type) >= 32 ? all.of(type) : nullptr, {Type::U32, type});
}

void addLogic(Opcodes &opcodes) {
  opcodes["and"] = [](Decoder &d) {
    static constexpr Handlers all = K2C_PTX_BINARY(conjunction);
    decodeLogic<conjunction<uint32_t>>(d, all);
  };
  opcodes["or"] = [](Decoder &d) {
    static constexpr Handlers all = K2C_PTX_BINARY(disjunction);
    decodeLogic<disjunction<uint32_t>>(d, all);
  };
  opcodes["xor"] = [](Decoder &d) {
    static constexpr Handlers all = K2C_PTX_BINARY(exclusion);
    decodeLogic<exclusion<uint32_t>>(d, all);
  };
  opcodes["not"] = [](Decoder &d) {
    static constexpr Handlers all = K2C_PTX_UNARY(Same, complement);
    const Type type = d.takeType();
    decodeForm(d, type == Type::Pred ? Handler(notPredicate) : isBits(type) ? all.of(type) : nullptr, {type, type});
  };
  opcodes["lop3"] = [](Decoder &d) {
    const Type type = d.takeType();
    d.expectOperands(5, 5);
    if (type != Type::B32)
      return decodeForm(d, nullptr, {});
    Operation &made = d.operation();
    made.run = lop3;
    for (size_t i = 0; i < 3; ++i)
      made.sources[i] = d.source(i + 1, type);
    made.immediate = d.constant(d.operandAt(4), "the table");
    made.destinations[0] = d.destination(0, type);
  };
}

void addShifts(Opcodes &opcodes) {
  opcodes["shl"] = [](Decoder &d) {
    static constexpr Handlers all = {binary<uint16_t, uint16_t, uint32_t, shiftLeft<uint16_t>>,
                                     binary<uint32_t, uint32_t, uint32_t, shiftLeft<uint32_t>>,
                                     binary<uint64_t, uint64_t, uint32_t, shiftLeft<uint64_t>>,
                                     nullptr,
                                     nullptr,
                                     nullptr};
    const Type type = d.takeType();
    decodeForm(d, isBits(type) ? all.of(type) : nullptr, {type, type, Type::U32});
  };
  opcodes["shr"] = [](Decoder &d) {
    static constexpr Handlers all = {binary<uint16_t, uint16_t, uint32_t, shiftRight<uint16_t>>,
                                     binary<uint32_t, uint32_t, uint32_t, shiftRight<uint32_t>>,
                                     binary<uint64_t, uint64_t, uint32_t, shiftRight<uint64_t>>,
                                     binary<int16_t, int16_t, uint32_t, shiftRight<int16_t>>,
                                     binary<int32_t, int32_t, uint32_t, shiftRight<int32_t>>,
                                     binary<int64_t, int64_t, uint32_t, shiftRight<int64_t>>};
    const Type type = d.takeType();
    decodeForm(d, isBits(type) || isInteger(type) ? all.of(type) : nullptr, {type, type, Type::U32});
  };
  opcodes["shf"] = [](Decoder &d) {
    static constexpr Handler all[] = {ternary<uint32_t, uint32_t, uint32_t, uint32_t, funnelShift<true, true>>,
                                      ternary<uint32_t, uint32_t, uint32_t, uint32_t, funnelShift<true, false>>,
                                      ternary<uint32_t, uint32_t, uint32_t, uint32_t, funnelShift<false, true>>,
                                      ternary<uint32_t, uint32_t, uint32_t, uint32_t, funnelShift<false, false>>};
    const int side = d.acceptOneOf({"l", "r"}), beyond = d.acceptOneOf({"clamp", "wrap"});
    const Type type = d.takeType();
    decodeForm(d, side >= 0 && beyond >= 0 && type == Type::B32 ? all[2 * side + beyond] : nullptr,
               {type, type, type, Type::U32});
  };
}

void addFields(Opcodes &opcodes) {
  opcodes["bfe"] = [](Decoder &d) {
    static constexpr Handlers all = {nullptr,
                                     ternary<uint32_t, uint32_t, uint32_t, uint32_t, extractField<uint32_t>>,
                                     ternary<uint64_t, uint64_t, uint32_t, uint32_t, extractField<uint64_t>>,
                                     nullptr,
                                     ternary<int32_t, int32_t, uint32_t, uint32_t, extractField<int32_t>>,
                                     ternary<int64_t, int64_t, uint32_t, uint32_t, extractField<int64_t>>};
    const Type type = d.takeType();
    decodeForm(d, isInteger(type) ? all.of(type) : nullptr, {type, type, Type::U32, Type::U32});
  };
  opcodes["bfi"] = [](Decoder &d) {
    const Type type = d.takeType();
    decodeForm(d,
               type == Type::B32   ? insert<uint32_t>
               : type == Type::B64 ? insert<uint64_t>
                                   : nullptr,
               {type, type, type, Type::U32, Type::U32});
  };
  opcodes["bfind"] = [](Decoder &d) {
    static constexpr Handlers all = K2C_PTX_UNARY(Word, highestBit);
    const Type type = d.takeType();
    decodeForm(d, isInteger(type) && bitsOf(type) >= 32 ? all.of(type) : nullptr, {Type::U32, type});
  };
  opcodes["brev"] = [](Decoder &d) {
    static constexpr Handlers all = K2C_PTX_UNARY(Same, reversed);
    const Type type = d.takeType();
    decodeForm(d, isBits(type) && bitsOf(type) >= 32 ? all.of(type) : nullptr, {type, type});
  };
  opcodes["clz"] = [](Decoder &d) {
    static constexpr Handlers all = K2C_PTX_UNARY(Word, leadingZeros);
    decodeCount(d, all);
  };
  opcodes["popc"] = [](Decoder &d) {
    static constexpr Handlers all = K2C_PTX_UNARY(Word, setBits);
    decodeCount(d, all);
  };
  opcodes["prmt"] = [](Decoder &d) {
    const Type type = d.takeType();
    decodeForm(d, type == Type::B32 ? Handler(ternary<uint32_t, uint32_t, uint32_t, uint32_t, permuteBytes>) : nullptr,
               {type, type, type, type});
  };
}

} // namespace

void addBits(Opcodes &opcodes) {
  addLogic(opcodes);
  addShifts(opcodes);
  addFields(opcodes);
}

} // namespace k2c::ptx

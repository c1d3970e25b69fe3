//===- Convert.cpp - cvt --------------------------------------------------===//
//
// PTX ISA, cvt. A value becomes an exact one of 64 bits, integer or float, is rounded, clamped and stored;
// registers may be wider than the types. What integers cannot hold is clamped, and what is no number becomes 0.
//
//===----------------------------------------------------------------------===//
#include "Halves.h"
#include "Integers.h"
#include "Operands.h"

#include <algorithm>

namespace k2c::ptx {

namespace {

/// A number of any type, exactly.
struct Exact {
  bool isFloat;
  int64_t integer; ///< as bits of 64, where its type is unsigned
  bool isUnsigned;
  double value;
};

Exact exactOf(uint64_t bits, Type type, bool isFlushed) {
  switch (type) {
  case Type::F16:
    return {true, 0, false, valueOfHalf(static_cast<uint16_t>(bits), f16Format)};
  case Type::BF16:
    return {true, 0, false, valueOfHalf(static_cast<uint16_t>(bits), bf16Format)};
  case Type::F32: {
    float value = valueOf<float>(static_cast<uint32_t>(bits));
    if (isFlushed && std::abs(value) < std::numeric_limits<float>::min())
      value = std::copysign(0.0f, value);
    return {true, 0, false, value};
  }
  case Type::F64:
    return {true, 0, false, valueOf<double>(bits)};
  default: {
    const int unused = 64 - bitsOf(type);
    const bool isSigned = kindOf(type) == TypeKind::Signed;
    const uint64_t high = bits << unused;
    return {false, isSigned ? static_cast<int64_t>(high) >> unused : static_cast<int64_t>(high >> unused), !isSigned,
            0};
  }
  }
}

double integral(double value, Rounding rounding) {
  switch (rounding) {
  case Rounding::Nearest:
    return std::nearbyint(value);
  case Rounding::Zero:
    return std::trunc(value);
  case Rounding::Down:
    return std::floor(value);
  case Rounding::Up:
    return std::ceil(value);
  }
  return value;
}

uint64_t integerOf(const Exact &exact, const Conversion &c) {
  const bool isSigned = kindOf(c.to) == TypeKind::Signed;
  const int bits = bitsOf(c.to);
  const uint64_t highest = isSigned     ? (uint64_t(1) << (bits - 1)) - 1
                           : bits == 64 ? ~uint64_t(0)
                                        : (uint64_t(1) << bits) - 1;
  if (exact.isFloat) {
    const double value = integral(exact.value, c.rounding);
    if (value != value)
      return 0;
    const double lowest = isSigned ? -std::ldexp(1.0, bits - 1) : 0.0,
                 above = std::ldexp(1.0, isSigned ? bits - 1 : bits);
    if (value <= lowest)
      return isSigned ? ~highest : 0;
    if (value >= above)
      return highest;
    return value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value)) : static_cast<uint64_t>(value);
  }
  const auto value = static_cast<uint64_t>(exact.integer);
  if (!c.isClamped)
    return value;
  if (exact.isUnsigned || exact.integer >= 0)
    return std::min(value, highest);
  return !isSigned ? 0 : exact.integer < -static_cast<int64_t>(highest) - 1 ? ~highest : value;
}

/// A float of 32 or 64 bits next to an exact value.
template <class T, class Source> T nearby(Source value, Rounding rounding) {
  const T nearest = static_cast<T>(value);
  if (rounding == Rounding::Nearest || std::isinf(static_cast<double>(value)))
    return nearest;
  const auto exact = static_cast<long double>(value), got = static_cast<long double>(nearest);
  const T infinity = std::numeric_limits<T>::infinity();
  if (rounding == Rounding::Zero)
    return std::abs(got) > std::abs(exact) ? std::nextafter(nearest, T(0)) : nearest;
  if (rounding == Rounding::Down)
    return got > exact ? std::nextafter(nearest, -infinity) : nearest;
  return got < exact ? std::nextafter(nearest, infinity) : nearest;
}

template <class T> T floatNearby(const Exact &exact, Rounding rounding) {
  if (exact.isFloat)
    return nearby<T>(exact.value, rounding);
  return exact.isUnsigned ? nearby<T>(static_cast<uint64_t>(exact.integer), rounding)
                          : nearby<T>(exact.integer, rounding);
}

uint64_t floatOf(Exact exact, const Conversion &c) {
  if (exact.isFloat) {
    if (c.isIntegral)
      exact.value = integral(exact.value, c.rounding);
    if (c.isClamped)
      exact.value = exact.value >= 0 ? std::min(exact.value, 1.0) : 0.0;
    if (c.isRectified && (exact.value < 0 || (exact.value == 0 && std::signbit(exact.value))))
      exact.value = 0;
  }
  switch (c.to) {
  case Type::F64:
    return k2c::ptx::bitsOf<double>(floatNearby<double>(exact, c.rounding));
  case Type::F32: {
    float value = floatNearby<float>(exact, c.rounding);
    if (c.isFlushed && std::abs(value) < std::numeric_limits<float>::min())
      value = std::copysign(0.0f, value);
    return value == value ? k2c::ptx::bitsOf<float>(value) : 0x7fffffffu;
  }
  default:
    return halfOf(exact.isFloat ? exact.value : floatNearby<double>(exact, c.rounding),
                  c.to == Type::F16 ? f16Format : bf16Format, c.rounding == Rounding::Zero);
  }
}

bool isFloatType(Type type) { return kindOf(type) == TypeKind::Float; }

Outcome convert(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  const Conversion &c = machine.program.conversions[o.immediate];
  forLanes(active, [&](int lane) {
    const uint64_t bits =
        c.fromBytes == 8 ? warp.source<uint64_t>(o.sources[0])[lane] : warp.source<uint32_t>(o.sources[0])[lane];
    const Exact exact = exactOf(bits, c.from, c.isFlushed);
    uint64_t made = isFloatType(c.to) ? floatOf(exact, c) : integerOf(exact, c);
    if (!isFloatType(c.to)) { // to the width of the register
      const int unused = 64 - bitsOf(c.to);
      made = kindOf(c.to) == TypeKind::Signed ? static_cast<uint64_t>(static_cast<int64_t>(made << unused) >> unused)
                                              : made << unused >> unused;
      made &= o.valueMask;
    }
    if (c.toBytes == 8)
      warp.destination<uint64_t>(o.destinations[0])[lane] = made;
    else
      warp.destination<uint32_t>(o.destinations[0])[lane] = static_cast<uint32_t>(made);
  });
  return Outcome::Next;
}

/// Two f32 into one register, the first in its upper half.
Outcome convertPair(Machine &machine, Warp &warp, const Operation &o, uint32_t active) {
  const Conversion &c = machine.program.conversions[o.immediate];
  const auto *a = warp.source<uint32_t>(o.sources[0]), *b = warp.source<uint32_t>(o.sources[1]);
  auto *d = warp.destination<uint32_t>(o.destinations[0]);
  forLanes(active, [&](int lane) {
    const uint64_t high = floatOf(exactOf(a[lane], Type::F32, c.isFlushed), c);
    const uint64_t low = floatOf(exactOf(b[lane], Type::F32, c.isFlushed), c);
    d[lane] = static_cast<uint32_t>(high << 16 | low);
  });
  return Outcome::Next;
}

/// Conversions of addresses and counters between integers of 32 and 64 bits.
template <class R, class T> R extended(T value) { return static_cast<R>(value); }

Handler plain(const Conversion &c) {
  if (c.isClamped || c.toBytes != bytesOf(c.to) || c.fromBytes != bytesOf(c.from))
    return nullptr;
  const auto is = [&](Type to, Type from) { return c.to == to && c.from == from; };
  if (is(Type::S64, Type::S32))
    return unary<int64_t, int32_t, extended<int64_t, int32_t>>;
  if (is(Type::U64, Type::U32) || is(Type::S64, Type::U32))
    return unary<uint64_t, uint32_t, extended<uint64_t, uint32_t>>;
  if (is(Type::U32, Type::U64) || is(Type::S32, Type::S64))
    return unary<uint32_t, uint64_t, extended<uint32_t, uint64_t>>;
  if (is(Type::F32, Type::S32) && c.rounding == Rounding::Nearest)
    return unary<float, int32_t, extended<float, int32_t>>;
  return nullptr;
}

/// cvt.rn.satfinite.e4m3x2.f32, and to e5m2x2: two numbers to bytes, the first to the upper one; `isSigned`: .relu.
Outcome convertToBytes(Machine &, Warp &warp, const Operation &o, uint32_t active) {
  const auto *a = warp.source<uint32_t>(o.sources[0]), *b = warp.source<uint32_t>(o.sources[1]);
  auto *d = warp.destination<uint32_t>(o.destinations[0]);
  forLanes(active, [&](int lane) {
    uint32_t made = 0;
    for (const uint32_t *from : {a, b}) {
      float value = valueOf<float>(from[lane]);
      if (o.isSigned && value <= 0)
        value = 0;
      made = made << 8 | byteOf(static_cast<Element>(o.immediate), value);
    }
    d[lane] = made;
  });
  return Outcome::Next;
}

/// cvt.rn.f16x2.e4m3x2, exactly.
Outcome convertFromBytes(Machine &, Warp &warp, const Operation &o, uint32_t active) {
  const auto *a = warp.source<uint32_t>(o.sources[0]);
  auto *d = warp.destination<uint32_t>(o.destinations[0]);
  forLanes(active, [&](int lane) {
    const auto half = [&](int shift) {
      return uint32_t(halfOf(valueOf(static_cast<Element>(o.immediate), a[lane] >> shift), f16Format, false));
    };
    d[lane] = half(8) << 16 | half(0);
  });
  return Outcome::Next;
}

/// cvt.rna.tf32.f32: ties away from zero.
uint32_t roundedToTf32(uint32_t bits) {
  return (bits & 0x7f800000) == 0x7f800000 ? bits & 0xffffe000 : (bits + 0x1000) & 0xffffe000;
}

/// Formats that are no types of registers; false: it is none of them.
bool decodeTensorFormats(Decoder &d) {
  Operation &made = d.operation();
  for (const auto &[name, element] : {std::pair("e4m3x2", Element::E4M3), std::pair("e5m2x2", Element::E5M2)})
    if (d.hasModifier(name)) {
      const bool isRounded = d.accept("rn"), isTo = d.accept("satfinite");
      made.immediate = static_cast<uint64_t>(element);
      if (isTo && isRounded && d.accept(name)) {
        made.isSigned = d.accept("relu");
        decodeForm(d, d.accept("f32") ? convertToBytes : nullptr, {Type::B16, Type::F32, Type::F32});
      } else {
        decodeForm(d, isRounded && !isTo && d.accept("f16x2") && d.accept(name) ? convertFromBytes : nullptr,
                   {Type::B32, Type::B16});
      }
      return true;
    }
  if (!d.hasModifier("tf32"))
    return false;
  decodeForm(
      d, d.accept("rna") && d.accept("tf32") && d.accept("f32") ? unary<uint32_t, uint32_t, roundedToTf32> : nullptr,
      {Type::B32, Type::F32});
  return true;
}

void decodeCvt(Decoder &d) {
  if (decodeTensorFormats(d))
    return;
  Conversion c{};
  const int rounding = d.acceptOneOf({"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi"});
  c.rounding = static_cast<Rounding>(std::max(rounding, 0) & 3);
  c.isIntegral = rounding >= 4;
  c.isRectified = d.accept("relu");
  c.isFlushed = d.accept("ftz");
  c.isClamped = d.accept("sat");
  c.to = d.takeType();
  c.from = d.takeType();
  if (d.hasFailed())
    return;
  const bool isToFloat = isFloatType(c.to), isFromFloat = isFloatType(c.from),
             isPair = kindOf(c.to) == TypeKind::Packed;
  const bool isNarrowing = isToFloat && isFromFloat && bitsOf(c.to) < bitsOf(c.from);
  const bool isHalf = c.to == Type::F16 || c.to == Type::BF16 || isPair;
  const bool isRounded = isPair || isNarrowing || (isToFloat && !isFromFloat) || c.isIntegral;
  if (isBits(c.to) || isBits(c.from) || c.to == Type::Pred || c.from == Type::Pred ||
      kindOf(c.from) == TypeKind::Packed || (isPair && c.from != Type::F32) || (rounding >= 0) != isRounded ||
      (!isToFloat && !isPair && isFromFloat && !c.isIntegral) || (c.isIntegral && !isFromFloat) ||
      (isHalf && c.rounding > Rounding::Zero) || (c.isRectified && !isHalf) || (c.isClamped && isHalf))
    return decodeForm(d, nullptr, {});
  Operation &made = d.operation();
  if (isPair) {
    c.to = c.to == Type::F16x2 ? Type::F16 : Type::BF16;
    decodeForm(d, convertPair, {Type::B32, Type::F32, Type::F32});
    made.immediate = d.addConversion(c);
    return;
  }
  d.expectOperands(2, 2);
  if (d.hasFailed())
    return;
  const auto laneBytes = [&](const Operand &operand, Type type) {
    const int bits = operand.kind == Operand::Kind::Register ? bitsOf(d.typeOfRegister(operand)) : bitsOf(type);
    if (&operand == &d.operandAt(0) && bits < 64)
      made.valueMask = (uint64_t(1) << bits) - 1;
    return static_cast<uint8_t>(bits == 64 ? 8 : 4);
  };
  c.toBytes = laneBytes(d.operandAt(0), c.to);
  c.fromBytes = laneBytes(d.operandAt(1), c.from);
  made.sources[0] = d.source(1, c.from, true);
  made.destinations[0] = d.destination(0, c.to, true);
  const Handler fast = plain(c);
  made.run = fast ? fast : convert;
  if (!fast)
    made.immediate = d.addConversion(c);
}

} // namespace

void addConversions(Opcodes &opcodes) { opcodes["cvt"] = decodeCvt; }

} // namespace k2c::ptx

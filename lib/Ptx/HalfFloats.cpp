//===- HalfFloats.cpp - Floating point of 16 bits, and other roundings ----===//
//
// PTX ISA, Half Precision and Mixed Precision Floating-Point Instructions: add, sub, mul, fma, min, max, neg, abs, ex2
// and tanh of f16, bf16 and pairs of them; add, sub, mul, fma, div, rcp and sqrt of f32 and f64 that round towards
// zero, down or up. A sum of two products of 16 bits is rounded to odd in f64, so that rounding it once more is as if
// it had been exact.
//
//===----------------------------------------------------------------------===//
#include "Floats.h"
#include "Halves.h"
#include "Integers.h"

#include <cfenv>

namespace k2c::ptx {

namespace {

/// a b + c, rounded to odd: an inexact one has its last bit set.
double fusedToOdd(double a, double b, double c) {
  const double product = a * b, sum = product + c; // the product is exact
  if (!std::isfinite(sum))
    return sum;
  const double other = sum - product, error = (product - (sum - other)) + (c - other);
  uint64_t bits = k2c::ptx::bitsOf<double>(sum);
  if (error == 0 || (bits & 1))
    return sum;
  return std::nextafter(sum, error > 0 ? HUGE_VAL : -HUGE_VAL);
}

uint16_t extreme(uint16_t x, uint16_t y, HalfFormat format, bool isMaximum, bool isNan) {
  const double a = valueOfHalf(x, format), b = valueOfHalf(y, format);
  if (a != a || b != b)
    return isNan || (a != a && b != b) ? format.none : a != a ? y : x;
  const bool isLess = a < b || (a == b && (x >> 15) > (y >> 15)); // -0 is less than +0
  return isLess == isMaximum ? y : x;
}

/// What a half operation does, in Operation::immediate.
struct HalfChoice {
  enum : uint64_t { IsBrain = 1, IsFlushed = 2, IsClamped = 4, IsRectified = 8, IsNan = 16 };
};

uint16_t halfResult(HalfKind kind, const uint16_t *x, uint64_t choice) {
  const HalfFormat format = choice & HalfChoice::IsBrain ? bf16Format : f16Format;
  uint16_t in[3];
  for (int i = 0; i < 3; ++i) {
    in[i] = x[i];
    if ((choice & HalfChoice::IsFlushed) && (in[i] >> format.fraction() & ((1 << format.exponent) - 1)) == 0)
      in[i] &= 0x8000;
  }
  const double a = valueOfHalf(in[0], format), b = valueOfHalf(in[1], format), c = valueOfHalf(in[2], format);
  double value = 0;
  switch (kind) {
  case HalfKind::Add:
    value = fusedToOdd(a, 1, b);
    break;
  case HalfKind::Subtract:
    value = fusedToOdd(a, 1, -b);
    break;
  case HalfKind::Multiply:
    value = a * b;
    break;
  case HalfKind::Fused:
    value = fusedToOdd(a, b, c);
    break;
  case HalfKind::Minimum:
  case HalfKind::Maximum:
    return extreme(in[0], in[1], format, kind == HalfKind::Maximum, choice & HalfChoice::IsNan);
  case HalfKind::Negate:
    return in[0] ^ 0x8000;
  case HalfKind::Magnitude:
    return in[0] & 0x7fff;
  case HalfKind::Power:
    value = std::exp2(a);
    break;
  case HalfKind::Tangent:
    value = std::tanh(a);
    break;
  }
  if (choice & HalfChoice::IsClamped)
    value = value >= 0 ? std::min(value, 1.0) : 0;
  if ((choice & HalfChoice::IsRectified) && std::signbit(value) && value == value)
    value = 0;
  uint16_t made = halfOf(value, format, false);
  if ((choice & HalfChoice::IsFlushed) && (made >> format.fraction() & ((1 << format.exponent) - 1)) == 0)
    made &= 0x8000;
  return made;
}

/// sources: as many as the operation has; `count`: halves of a register; `target`: the kind.
Outcome halves(Machine &, Warp &warp, const Operation &o, uint32_t active) {
  const uint32_t *sources[3];
  for (int i = 0; i < 3; ++i)
    sources[i] = warp.source<uint32_t>(o.sources[i] == noSlot ? o.sources[0] : o.sources[i]);
  auto *d = warp.destination<uint32_t>(o.destinations[0]);
  forLanes(active, [&](int lane) {
    uint32_t made = 0;
    for (int half = 0; half < o.count; ++half) {
      uint16_t in[3];
      for (int i = 0; i < 3; ++i)
        in[i] = static_cast<uint16_t>(sources[i][lane] >> (16 * half));
      made |= uint32_t(halfResult(static_cast<HalfKind>(o.target), in, o.immediate)) << (16 * half);
    }
    d[lane] = made;
  });
  return Outcome::Next;
}

template <class T> T flushed(T value, bool isFlushed) {
  return isFlushed && std::abs(value) < std::numeric_limits<T>::min() ? std::copysign(T(0), value) : value;
}

/// Rounded as the mode says that the processor is set to.
template <class T> T rounded(RoundedKind kind, T x, T y, T z) {
  volatile T a = x, b = y, c = z, made = 0; // computed while the mode is set
  switch (kind) {
  case RoundedKind::Add:
    made = a + b;
    break;
  case RoundedKind::Subtract:
    made = a - b;
    break;
  case RoundedKind::Multiply:
    made = a * b;
    break;
  case RoundedKind::Fused:
    made = std::fma(T(a), T(b), T(c));
    break;
  case RoundedKind::Divide:
    made = a / b;
    break;
  case RoundedKind::Reciprocal:
    made = T(1) / a;
    break;
  case RoundedKind::Root:
    made = std::sqrt(T(a));
    break;
  }
  return made;
}

/// `count`: the rounding; `isSigned`: whether subnormal numbers are flushed; `immediate`: whether it is clamped.
template <class T> Outcome directed(Machine &, Warp &warp, const Operation &o, uint32_t active) {
  static constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  const Stored<T> *sources[3];
  for (int i = 0; i < 3; ++i)
    sources[i] = warp.source<Stored<T>>(o.sources[i] == noSlot ? o.sources[0] : o.sources[i]);
  auto *d = warp.destination<Stored<T>>(o.destinations[0]);
  T made[warpLanes];
  std::fesetround(modes[o.count]);
  for (uint32_t left = active; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const auto at = [&](int i) { return flushed(valueOf<T>(sources[i][lane]), o.isSigned); };
    made[lane] = flushed(rounded<T>(static_cast<RoundedKind>(o.target), at(0), at(1), at(2)), o.isSigned);
  }
  std::fesetround(FE_TONEAREST);
  forLanes(active, [&](int lane) {
    T value = made[lane];
    if (o.immediate)
      value = value >= T(0) ? (value < T(1) ? value : T(1)) : T(0);
    d[lane] = value == value || sizeof(T) == 8 ? bitsOf<T>(value) : Stored<T>(0x7fffffff);
  });
  return Outcome::Next;
}

} // namespace

bool isHalf(const Decoder &d) {
  for (const std::string_view word : {"f16", "f16x2", "bf16", "bf16x2"})
    if (d.hasModifier(word))
      return true;
  return false;
}

void decodeHalf(Decoder &d, HalfKind kind) {
  const bool isSum = kind <= HalfKind::Fused, isExtreme = kind == HalfKind::Minimum || kind == HalfKind::Maximum,
             isApproximate = kind >= HalfKind::Power;
  const bool isRounded = isSum && d.accept("rn"), isNamed = isApproximate && d.accept("approx");
  uint64_t choice = d.accept("ftz") ? uint64_t(HalfChoice::IsFlushed) : 0;
  if (isSum && d.accept("sat"))
    choice |= HalfChoice::IsClamped;
  if (kind == HalfKind::Fused && d.accept("relu"))
    choice |= HalfChoice::IsRectified;
  if (isExtreme && d.accept("NaN"))
    choice |= HalfChoice::IsNan;
  const Type type = d.takeType();
  const bool isPair = kindOf(type) == TypeKind::Packed;
  if (type == Type::BF16 || type == Type::BF16x2)
    choice |= HalfChoice::IsBrain;
  if ((kind == HalfKind::Fused && !isRounded) || (isApproximate && !isNamed) || (!isPair && bitsOf(type) != 16))
    return decodeForm(d, nullptr, {});
  if (kind == HalfKind::Fused)
    decodeForm(d, halves, {type, type, type, type});
  else if (isSum || isExtreme)
    decodeForm(d, halves, {type, type, type});
  else
    decodeForm(d, halves, {type, type});
  Operation &made = d.operation();
  made.count = isPair ? 2 : 1;
  made.target = static_cast<uint32_t>(kind);
  made.immediate = choice;
}

bool decodeDirected(Decoder &d, RoundedKind kind) {
  const int mode = d.acceptOneOf({"rz", "rm", "rp"});
  if (mode < 0)
    return false;
  const bool isFlushed = d.accept("ftz"), isClamped = kind <= RoundedKind::Fused && d.accept("sat");
  const Type type = d.takeType();
  const Handler handler = type == Type::F32                               ? directed<float>
                          : type == Type::F64 && !isFlushed && !isClamped ? directed<double>
                                                                          : nullptr;
  if (kind == RoundedKind::Fused)
    decodeForm(d, handler, {type, type, type, type});
  else if (kind == RoundedKind::Reciprocal || kind == RoundedKind::Root)
    decodeForm(d, handler, {type, type});
  else
    decodeForm(d, handler, {type, type, type});
  Operation &made = d.operation();
  made.count = static_cast<uint8_t>(mode + 1);
  made.isSigned = isFlushed;
  made.immediate = isClamped;
  made.target = static_cast<uint32_t>(kind);
  return true;
}

} // namespace k2c::ptx

//===- Floats.cpp - Floating point ----------------------------------------===//
//
// PTX ISA, Floating-Point Instructions: add, sub, mul, fma, mad, div, rcp, sqrt, rsqrt, min, max, abs, neg, ex2, lg2,
// sin, cos, tanh. Results of f32 that are no number are the canonical one, as the ISA says. Approximations are the
// correctly rounded value here; a device may differ from it by the error that the ISA gives.
//
//===----------------------------------------------------------------------===//
#include "Floats.h"
#include "Integers.h"

namespace k2c::ptx {

namespace {

template <bool isFlushed, class T> T flushed(T value) {
  if (isFlushed && std::abs(value) < std::numeric_limits<T>::min())
    return std::copysign(T(0), value);
  return value;
}

/// What an operation stores: flushed, clamped to [0, 1] (no number: 0), the canonical one if it is no number.
template <bool isFlushed, bool isClamped, class T> T finished(T value) {
  value = flushed<isFlushed>(value);
  if (isClamped)
    return value >= T(0) ? (value < T(1) ? value : T(1)) : T(0);
  if constexpr (sizeof(T) == 4) {
    const uint32_t canonical = 0x7fffffff;
    float none;
    std::memcpy(&none, &canonical, sizeof none);
    return value == value ? value : none;
  }
  return value;
}

template <class T, bool f, bool s> T sum(T a, T b) { return finished<f, s>(flushed<f>(a) + flushed<f>(b)); }
template <class T, bool f, bool s> T difference(T a, T b) { return finished<f, s>(flushed<f>(a) - flushed<f>(b)); }
template <class T, bool f, bool s> T product(T a, T b) { return finished<f, s>(flushed<f>(a) * flushed<f>(b)); }
template <class T, bool f, bool s> T quotient(T a, T b) { return finished<f, s>(flushed<f>(a) / flushed<f>(b)); }
template <class T, bool f, bool s> T fused(T a, T b, T c) {
  return finished<f, s>(std::fma(flushed<f>(a), flushed<f>(b), flushed<f>(c)));
}
/// A number wins over none, and +0 is greater than -0.
template <class T, bool f, bool isNan> T least(T a, T b) {
  a = flushed<f>(a), b = flushed<f>(b);
  if (isNan && (a != a || b != b))
    return finished<false, false>(std::numeric_limits<T>::quiet_NaN());
  if (a != a || b != b)
    return finished<false, false>(a != a ? b : a);
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <class T, bool f, bool isNan> T greatest(T a, T b) {
  a = flushed<f>(a), b = flushed<f>(b);
  if (isNan && (a != a || b != b))
    return finished<false, false>(std::numeric_limits<T>::quiet_NaN());
  if (a != a || b != b)
    return finished<false, false>(a != a ? b : a);
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}
template <class T, bool f> T negated(T a) { return -flushed<f>(a); }
template <class T, bool f> T magnitude(T a) { return std::abs(flushed<f>(a)); }
template <class T, bool f> T root(T a) { return finished<f, false>(std::sqrt(flushed<f>(a))); }
template <class T, bool f> T reciprocal(T a) { return finished<f, false>(T(1) / flushed<f>(a)); }
template <double (*function)(double), bool f> float rounded(float a) {
  return finished<f, false>(float(function(double(flushed<f>(a)))));
}
double inverseRoot(double a) { return 1 / std::sqrt(a); }
double power(double a) { return std::exp2(a); }
double logarithm(double a) { return std::log2(a); }
double sine(double a) { return std::sin(a); }
double cosine(double a) { return std::cos(a); }
double tangent(double a) { return std::tanh(a); }

/// Handlers of f32 by whether they flush subnormal numbers and a second choice, and of f64.
struct Forms {
  Handler f32[2][2], f64;

  Handler of(Type type, bool isFlushed, bool isSecond) const {
    if (type == Type::F64)
      return isFlushed || isSecond ? nullptr : f64;
    return type == Type::F32 ? f32[isFlushed][isSecond] : nullptr;
  }
};

#define K2C_PTX_FORMS2(function)                                                                                       \
  Forms {                                                                                                              \
    {{binary<float, float, float, function<float, false, false>>,                                                      \
      binary<float, float, float, function<float, false, true>>},                                                      \
     {binary<float, float, float, function<float, true, false>>,                                                       \
      binary<float, float, float, function<float, true, true>>}},                                                      \
        binary<double, double, double, function<double, false, false>>                                                 \
  }
#define K2C_PTX_FORMS1(function)                                                                                       \
  Forms {                                                                                                              \
    {{unary<float, float, function<float, false>>, nullptr}, {unary<float, float, function<float, true>>, nullptr}},   \
        unary<double, double, function<double, false>>                                                                 \
  }
#define K2C_PTX_ROUNDED(function)                                                                                      \
  Forms {                                                                                                              \
    {{unary<float, float, rounded<function, false>>, nullptr},                                                         \
     {unary<float, float, rounded<function, true>>, nullptr}},                                                         \
        nullptr                                                                                                        \
  }

/// Whether a later modifier is a type of floating point.
bool isFloat(const Decoder &d) {
  for (const std::string_view word : {"f32", "f64", "f16", "f16x2", "bf16", "bf16x2"})
    if (d.hasModifier(word))
      return true;
  return false;
}

void decodeSum(Decoder &d, const Forms &forms, HalfKind half, RoundedKind rounded) {
  if (isHalf(d))
    return decodeHalf(d, half);
  if (decodeDirected(d, rounded))
    return;
  d.accept("rn");
  const bool isFlushed = d.accept("ftz"), isClamped = d.accept("sat");
  const Type type = d.takeType();
  decodeForm(d, forms.of(type, isFlushed, isClamped), {type, type, type});
}

void decodeFused(Decoder &d) {
  static constexpr Forms forms = {{{ternary<float, float, float, float, fused<float, false, false>>,
                                    ternary<float, float, float, float, fused<float, false, true>>},
                                   {ternary<float, float, float, float, fused<float, true, false>>,
                                    ternary<float, float, float, float, fused<float, true, true>>}},
                                  ternary<double, double, double, double, fused<double, false, false>>};
  if (isHalf(d))
    return decodeHalf(d, HalfKind::Fused);
  if (decodeDirected(d, RoundedKind::Fused))
    return;
  if (!d.accept("rn"))
    return d.fail("'" + d.instruction().spelling() + "' is not supported: it needs .rn");
  const bool isFlushed = d.accept("ftz"), isClamped = d.accept("sat");
  const Type type = d.takeType();
  decodeForm(d, forms.of(type, isFlushed, isClamped), {type, type, type, type});
}

/// .rn, .approx or, of a quotient, .full: all are the correctly rounded value.
void decodeRounded(Decoder &d, const Forms &forms, size_t sources) {
  if (d.acceptOneOf({"rn", "approx", "full"}) < 0)
    return d.fail("'" + d.instruction().spelling() + "' is not supported: it needs .rn or .approx");
  const bool isFlushed = d.accept("ftz");
  const Type type = d.takeType();
  if (sources == 1)
    decodeForm(d, forms.of(type, isFlushed, false), {type, type});
  else
    decodeForm(d, forms.of(type, isFlushed, false), {type, type, type});
}

void decodeExtreme(Decoder &d, const Forms &forms) {
  const bool isFlushed = d.accept("ftz"), isNan = d.accept("NaN");
  const Type type = d.takeType();
  decodeForm(d, forms.of(type, isFlushed, isNan), {type, type, type});
}

void decodeSign(Decoder &d, const Forms &forms) {
  const bool isFlushed = d.accept("ftz");
  const Type type = d.takeType();
  decodeForm(d, forms.of(type, isFlushed, false), {type, type});
}

/// Opcodes that integers have, too.
void addShared(Opcodes &opcodes) {
  opcodes["add"] = [](Decoder &d) {
    static constexpr Forms forms = K2C_PTX_FORMS2(sum);
    isFloat(d) ? decodeSum(d, forms, HalfKind::Add, RoundedKind::Add) : decodeIntegerSum(d, false);
  };
  opcodes["sub"] = [](Decoder &d) {
    static constexpr Forms forms = K2C_PTX_FORMS2(difference);
    isFloat(d) ? decodeSum(d, forms, HalfKind::Subtract, RoundedKind::Subtract) : decodeIntegerSum(d, true);
  };
  opcodes["mul"] = [](Decoder &d) {
    static constexpr Forms forms = K2C_PTX_FORMS2(product);
    isFloat(d) ? decodeSum(d, forms, HalfKind::Multiply, RoundedKind::Multiply) : decodeIntegerProduct(d, false);
  };
  opcodes["fma"] = [](Decoder &d) { decodeFused(d); };
  opcodes["mad"] = [](Decoder &d) { isFloat(d) ? decodeFused(d) : decodeIntegerProduct(d, true); };
  opcodes["div"] = [](Decoder &d) {
    static constexpr Forms forms = K2C_PTX_FORMS2(quotient);
    if (!isFloat(d))
      return decodeIntegerOf(d, "div");
    if (!decodeDirected(d, RoundedKind::Divide))
      decodeRounded(d, forms, 2);
  };
  opcodes["min"] = [](Decoder &d) {
    static constexpr Forms forms = K2C_PTX_FORMS2(least);
    isHalf(d) ? decodeHalf(d, HalfKind::Minimum) : isFloat(d) ? decodeExtreme(d, forms) : decodeIntegerOf(d, "min");
  };
  opcodes["max"] = [](Decoder &d) {
    static constexpr Forms forms = K2C_PTX_FORMS2(greatest);
    isHalf(d) ? decodeHalf(d, HalfKind::Maximum) : isFloat(d) ? decodeExtreme(d, forms) : decodeIntegerOf(d, "max");
  };
  opcodes["neg"] = [](Decoder &d) {
    static constexpr Forms forms = K2C_PTX_FORMS1(negated);
    isHalf(d) ? decodeHalf(d, HalfKind::Negate) : isFloat(d) ? decodeSign(d, forms) : decodeIntegerOf(d, "neg");
  };
  opcodes["abs"] = [](Decoder &d) {
    static constexpr Forms forms = K2C_PTX_FORMS1(magnitude);
    isHalf(d) ? decodeHalf(d, HalfKind::Magnitude) : isFloat(d) ? decodeSign(d, forms) : decodeIntegerOf(d, "abs");
  };
}

} // namespace

void addFloats(Opcodes &opcodes) {
  addShared(opcodes);
  opcodes["sqrt"] = [](Decoder &d) {
    static constexpr Forms forms = K2C_PTX_FORMS1(root);
    if (!decodeDirected(d, RoundedKind::Root))
      decodeRounded(d, forms, 1);
  };
  opcodes["rcp"] = [](Decoder &d) {
    static constexpr Forms forms = K2C_PTX_FORMS1(reciprocal);
    if (!decodeDirected(d, RoundedKind::Reciprocal))
      decodeRounded(d, forms, 1);
  };
  opcodes["rsqrt"] = [](Decoder &d) {
    static constexpr Forms forms = K2C_PTX_ROUNDED(inverseRoot);
    decodeRounded(d, forms, 1);
  };
  opcodes["ex2"] = [](Decoder &d) {
    static constexpr Forms forms = K2C_PTX_ROUNDED(power);
    isHalf(d) ? decodeHalf(d, HalfKind::Power) : decodeRounded(d, forms, 1);
  };
  opcodes["lg2"] = [](Decoder &d) {
    static constexpr Forms forms = K2C_PTX_ROUNDED(logarithm);
    decodeRounded(d, forms, 1);
  };
  opcodes["sin"] = [](Decoder &d) {
    static constexpr Forms forms = K2C_PTX_ROUNDED(sine);
    decodeRounded(d, forms, 1);
  };
  opcodes["cos"] = [](Decoder &d) {
    static constexpr Forms forms = K2C_PTX_ROUNDED(cosine);
    decodeRounded(d, forms, 1);
  };
  opcodes["tanh"] = [](Decoder &d) {
    static constexpr Forms forms = K2C_PTX_ROUNDED(tangent);
    isHalf(d) ? decodeHalf(d, HalfKind::Tangent) : decodeRounded(d, forms, 1);
  };
}

} // namespace k2c::ptx

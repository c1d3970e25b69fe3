//===- Arithmetic.cpp - Integers ------------------------------------------===//
//
// PTX ISA, Integer Arithmetic Instructions: add, sub, mul, mad, div, rem, abs, neg, min, max. Sums and products wrap;
// what devices do where the ISA says nothing (division by zero) is done here, too.
//
//===----------------------------------------------------------------------===//
#include "Integers.h"

namespace k2c::ptx {

namespace {

template <class T>
using Wide = std::conditional_t<std::is_signed_v<T>, std::conditional_t<sizeof(T) == 2, int32_t, int64_t>,
                                std::conditional_t<sizeof(T) == 2, uint32_t, uint64_t>>;
template <class T>
using Doubled =
    std::conditional_t<sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>, Wide<T>>;

template <class T> T add(T a, T b) { return T(uint64_t(a) + uint64_t(b)); }
template <class T> T subtract(T a, T b) { return T(uint64_t(a) - uint64_t(b)); }
template <class T> T multiply(T a, T b) { return T(uint64_t(a) * uint64_t(b)); }
template <class T> T multiplyHigh(T a, T b) { return T((Doubled<T>(a) * Doubled<T>(b)) >> (8 * sizeof(T))); }
template <class T> Wide<T> multiplyWide(T a, T b) { return Wide<T>(a) * Wide<T>(b); }
template <class T> T multiplyAdd(T a, T b, T c) { return T(uint64_t(a) * uint64_t(b) + uint64_t(c)); }
template <class T> T multiplyHighAdd(T a, T b, T c) { return add<T>(multiplyHigh<T>(a, b), c); }
template <class T> Wide<T> multiplyWideAdd(T a, T b, Wide<T> c) { return add<Wide<T>>(multiplyWide<T>(a, b), c); }
/// By zero: all bits set.
template <class T> T divide(T a, T b) {
  if (b == 0)
    return T(~T(0));
  return std::is_signed_v<T> && b == T(-1) ? T(0 - uint64_t(a)) : T(a / b);
}
template <class T> T remainder(T a, T b) {
  if (b == 0)
    return a;
  return std::is_signed_v<T> && b == T(-1) ? T(0) : T(a % b);
}
template <class T> T minimum(T a, T b) { return a < b ? a : b; }
template <class T> T maximum(T a, T b) { return a < b ? b : a; }
template <class T> T negate(T a) { return T(0 - uint64_t(a)); }
template <class T> T magnitude(T a) { return a < 0 ? T(0 - uint64_t(a)) : a; }

int32_t saturated(int64_t value) {
  return int32_t(std::min<int64_t>(std::max<int64_t>(value, std::numeric_limits<int32_t>::min()),
                                   std::numeric_limits<int32_t>::max()));
}
int32_t saturatedSum(int32_t a, int32_t b) { return saturated(int64_t(a) + b); }
int32_t saturatedDifference(int32_t a, int32_t b) { return saturated(int64_t(a) - b); }

} // namespace

void decodeForm(Decoder &d, Handler handler, std::initializer_list<Type> types) {
  if (d.hasFailed())
    return;
  if (!handler)
    return d.fail("'" + d.instruction().spelling() + "' is not supported for its type");
  d.expectOperands(types.size(), types.size());
  if (d.hasFailed())
    return;
  d.operation().run = handler;
  for (size_t i = 1; i < types.size(); ++i)
    d.operation().sources[i - 1] = d.source(i, types.begin()[i]);
  d.operation().destinations[0] = d.destination(0, *types.begin());
}

void decodeIntegerSum(Decoder &d, bool isDifference) {
  static constexpr Handlers sums = K2C_PTX_BINARY(add), differences = K2C_PTX_BINARY(subtract);
  const bool isSaturated = d.accept("sat");
  const Type type = d.takeType();
  if (isSaturated)
    return decodeForm(d,
                      type != Type::S32 ? nullptr
                      : isDifference    ? Handler(binary<int32_t, int32_t, int32_t, saturatedDifference>)
                                        : Handler(binary<int32_t, int32_t, int32_t, saturatedSum>),
                      {type, type, type});
  decodeForm(d, isInteger(type) ? (isDifference ? differences : sums).of(type) : nullptr, {type, type, type});
}

void decodeIntegerProduct(Decoder &d, bool isAdded) {
  static constexpr Handlers lows = K2C_PTX_BINARY(multiply), highs = K2C_PTX_BINARY(multiplyHigh),
                            lowSums = K2C_PTX_TERNARY(multiplyAdd), highSums = K2C_PTX_TERNARY(multiplyHighAdd);
  static constexpr Handlers wides = {binary<uint32_t, uint16_t, uint16_t, multiplyWide<uint16_t>>,
                                     binary<uint64_t, uint32_t, uint32_t, multiplyWide<uint32_t>>,
                                     nullptr,
                                     binary<int32_t, int16_t, int16_t, multiplyWide<int16_t>>,
                                     binary<int64_t, int32_t, int32_t, multiplyWide<int32_t>>,
                                     nullptr};
  static constexpr Handlers wideSums = {ternary<uint32_t, uint16_t, uint16_t, uint32_t, multiplyWideAdd<uint16_t>>,
                                        ternary<uint64_t, uint32_t, uint32_t, uint64_t, multiplyWideAdd<uint32_t>>,
                                        nullptr,
                                        ternary<int32_t, int16_t, int16_t, int32_t, multiplyWideAdd<int16_t>>,
                                        ternary<int64_t, int32_t, int32_t, int64_t, multiplyWideAdd<int32_t>>,
                                        nullptr};
  enum { Low, High, Widened };
  const int part = d.acceptOneOf({"lo", "hi", "wide"});
  const Type type = d.takeType();
  if (part < 0 || !isInteger(type))
    return decodeForm(d, nullptr, {});
  const Type wide = part != Widened ? type : bitsOf(type) == 16 ? Type::B32 : Type::B64;
  const Handlers &products = part == Low ? lows : part == High ? highs : wides;
  const Handlers &sums = part == Low ? lowSums : part == High ? highSums : wideSums;
  if (isAdded)
    return decodeForm(d, sums.of(type), {wide, type, type, wide});
  decodeForm(d, products.of(type), {wide, type, type});
}

void decodeIntegerOf(Decoder &d, std::string_view opcode) {
  static constexpr Handlers quotients = K2C_PTX_BINARY(divide), least = K2C_PTX_BINARY(minimum),
                            most = K2C_PTX_BINARY(maximum), negatives = K2C_PTX_UNARY(Same, negate),
                            magnitudes = K2C_PTX_UNARY(Same, magnitude);
  const Type type = d.takeType();
  if (opcode == "neg" || opcode == "abs")
    return decodeForm(d,
                      kindOf(type) == TypeKind::Signed ? (opcode == "neg" ? negatives : magnitudes).of(type) : nullptr,
                      {type, type});
  const Handlers &all = opcode == "div" ? quotients : opcode == "min" ? least : most;
  decodeForm(d, isInteger(type) ? all.of(type) : nullptr, {type, type, type});
}

void addArithmetic(Opcodes &opcodes) {
  opcodes["rem"] = [](Decoder &d) {
    static constexpr Handlers all = K2C_PTX_BINARY(remainder);
    const Type type = d.takeType();
    decodeForm(d, isInteger(type) ? all.of(type) : nullptr, {type, type, type});
  };
}

} // namespace k2c::ptx

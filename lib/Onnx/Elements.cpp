//===- Elements.cpp - numbers of tensor bytes ----------------------------------===//
//
// One element as a double, for what folding asks for; runs of elements as floats, for weights. The latter look numbers
// of 8 and 4 bits up in a table that the former makes, so that there is one reading of each type.
//
//===----------------------------------------------------------------------===//
#include "Elements.h"

#include "k2c/Support/Half.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

namespace k2c::onnx {

bool isWhole(ElementType type) {
  switch (type) {
  case ElementType::F32:
  case ElementType::F16:
  case ElementType::BF16:
  case ElementType::F64:
  case ElementType::F8E4M3:
  case ElementType::F8E4M3Z:
  case ElementType::F8E5M2:
  case ElementType::F8E5M2Z:
    return false;
  default:
    return true;
  }
}

bool isReal(ElementType type) {
  return type == ElementType::F32 || type == ElementType::F16 || type == ElementType::BF16;
}

double roundoffOf16(ElementType type) {
  return type == ElementType::F16 ? 0x1p-11 : type == ElementType::BF16 ? 0x1p-8 : 0;
}

static float fromBits(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// A floating-point number of 8 bits, by the bits of its mantissa. Those of 4 and 3 have no infinities; the others do.
static double fromEight(uint8_t bits, int mantissaBits, int bias) {
  const int mantissa = bits & ((1 << mantissaBits) - 1), exponent = (bits & 127) >> mantissaBits;
  const double sign = bits & 128 ? -1 : 1;
  const bool isFinite = mantissaBits == 3 ? (bits & 127) != 127 : exponent != 31;
  if (!isFinite)
    return mantissaBits == 3 || mantissa ? std::numeric_limits<double>::quiet_NaN()
                                         : sign * std::numeric_limits<double>::infinity();
  const int whole = exponent ? mantissa + (1 << mantissaBits) : mantissa;
  return sign * std::ldexp(whole, std::max(exponent, 1) - bias - mantissaBits);
}

/// The same of the types with one zero (FNUZ), whose bits of a negative one are the only ones that are no number.
static double fromEightOneZero(uint8_t bits, int mantissaBits, int bias) {
  if (bits == 128)
    return std::numeric_limits<double>::quiet_NaN();
  const int mantissa = bits & ((1 << mantissaBits) - 1), exponent = (bits & 127) >> mantissaBits;
  const int whole = exponent ? mantissa + (1 << mantissaBits) : mantissa;
  return (bits & 128 ? -1 : 1) * std::ldexp(whole, std::max(exponent, 1) - bias - mantissaBits);
}

/// Element `index` of elements of 4 bits, the first of a byte in its low half.
static double fromFour(const char *bytes, int64_t index, bool isSigned) {
  const int half = (uint8_t(bytes[index / 2]) >> (index % 2 * 4)) & 15;
  return isSigned && half > 7 ? half - 16 : half;
}

template <class T> static T loadAs(const char *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T> static double load(const char *at) { return double(loadAs<T>(at)); }

std::optional<double> decodeElement(ElementType type, const char *bytes, int64_t index) {
  const char *const at = bytes + index * bitWidth(type) / 8;
  switch (type) {
  case ElementType::U4:
  case ElementType::I4:
    return fromFour(bytes, index, type == ElementType::I4);
  case ElementType::F8E4M3:
    return fromEight(uint8_t(*at), 3, 7);
  case ElementType::F8E4M3Z:
    return fromEightOneZero(uint8_t(*at), 3, 8);
  case ElementType::F8E5M2:
    return fromEight(uint8_t(*at), 2, 15);
  case ElementType::F8E5M2Z:
    return fromEightOneZero(uint8_t(*at), 2, 16);
  case ElementType::F32:
    return load<float>(at);
  case ElementType::F64:
    return load<double>(at);
  case ElementType::I64:
    return load<int64_t>(at);
  case ElementType::I32:
    return load<int32_t>(at);
  case ElementType::I16:
    return load<int16_t>(at);
  case ElementType::I8:
    return load<int8_t>(at);
  case ElementType::U8:
  case ElementType::Bool:
    return load<uint8_t>(at);
  case ElementType::U16:
    return load<uint16_t>(at);
  case ElementType::U32:
    return load<uint32_t>(at);
  case ElementType::U64:
    return load<uint64_t>(at);
  case ElementType::F16:
    return fromBits(widenHalf(loadAs<uint16_t>(at)));
  case ElementType::BF16:
    return fromBits(uint32_t(loadAs<uint16_t>(at)) << 16);
  default:
    return std::nullopt;
  }
}

bool canWiden(ElementType type) { return bitWidth(type) > 0 && bitWidth(type) <= 32 && type != ElementType::Bool; }

/// What each byte of the types of 8 bits is, and each half of one of those of 4, by type.
using Tables = std::array<std::array<float, 256>, 32>;
static Tables makeTables() {
  Tables out{};
  for (size_t type = 0; type < out.size(); type++) {
    const int64_t bits = bitWidth(ElementType(type));
    for (size_t i = 0; i < (bits == 8 ? 256 : bits == 4 ? 16 : 0); i++) {
      const char byte = char(i);
      out[type][i] = float(decodeElement(ElementType(type), &byte, 0).value_or(0));
    }
  }
  return out;
}

void widenElements(ElementType type, const char *bytes, int64_t first, int64_t count, float *out) {
  static const Tables tables = makeTables();
  const int64_t bits = bitWidth(type);
  const std::array<float, 256> &table = tables[size_t(type)];
  for (int64_t i = 0; i < count; i++) {
    const int64_t at = first + i;
    if (bits == 4)
      out[i] = table[(uint8_t(bytes[at / 2]) >> (at % 2 * 4)) & 15];
    else
      out[i] = bits == 8 ? table[uint8_t(bytes[at])] : float(*decodeElement(type, bytes, at));
  }
}

} // namespace k2c::onnx

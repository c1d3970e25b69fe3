//===- Half.h - floats of 16 bits -------------------------------------------===//
#ifndef K2C_SUPPORT_HALF_H
#define K2C_SUPPORT_HALF_H

#include "k2c/Support/DType.h"
#include <cstdint>

namespace k2c {

/// The bits of the float32 that is the half of these bits. Exact; the payload of a NaN is kept.
constexpr uint32_t widenHalf(uint16_t half) {
  const uint32_t sign = uint32_t(half & 0x8000) << 16;
  uint32_t exponent = half >> 10 & 31, mantissa = half & 0x3ff;
  if (exponent == 31)
    return sign | 0x7f800000 | mantissa << 13;
  if (exponent == 0) {
    if (mantissa == 0)
      return sign;
    const int shift = __builtin_clz(mantissa) - 21; // brings the leading one to bit 10
    mantissa = mantissa << shift & 0x3ff;
    exponent = uint32_t(1 - shift);
  }
  return sign | (exponent + 112) << 23 | mantissa << 13;
}

/// The bits of the float32 that an element of F16 or BF16 is.
constexpr uint32_t widen16(DType type, uint16_t element) {
  return type == DType::BF16 ? uint32_t(element) << 16 : widenHalf(element);
}

} // namespace k2c

#endif // K2C_SUPPORT_HALF_H

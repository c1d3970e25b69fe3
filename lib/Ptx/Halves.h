//===- Halves.h - 16-bit floating point -----------------------------------===//
#ifndef K2C_LIB_PTX_HALVES_H
#define K2C_LIB_PTX_HALVES_H

#include <cmath>
#include <cstdint>
#include <cstring>

namespace k2c::ptx {

/// A format of 16 bits: `exponent` bits of exponent, the others below the sign are of the fraction.
struct HalfFormat {
  int exponent;
  uint16_t none; ///< the canonical value of what is no number

  int fraction() const { return 15 - exponent; }
  int bias() const { return (1 << (exponent - 1)) - 1; }
};
constexpr HalfFormat f16Format{5, 0x7fff}, bf16Format{8, 0x7fff};

inline double valueOfHalf(uint16_t bits, HalfFormat format) {
  const int fraction = format.fraction(), all = (1 << format.exponent) - 1;
  const int exponent = bits >> fraction & all, low = bits & ((1 << fraction) - 1);
  const double sign = bits >> 15 ? -1 : 1;
  if (exponent == all)
    return low ? std::nan("") : sign * HUGE_VAL;
  return sign * (exponent ? std::ldexp((1 << fraction) + low, exponent - format.bias() - fraction)
                          : std::ldexp(low, 1 - format.bias() - fraction));
}

/// The nearest, ties to even; `isTruncated`: towards zero.
inline uint16_t halfOf(double value, HalfFormat format, bool isTruncated) {
  if (value != value)
    return format.none;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const int fraction = format.fraction(), bias = format.bias(), all = (1 << format.exponent) - 1;
  const double size = std::abs(value);
  const auto infinity = static_cast<uint16_t>(all << fraction);
  if (std::isinf(size))
    return sign | infinity;
  int exponent = 0;
  std::frexp(size, &exponent);                                                // size = m 2^exponent, m in [1/2, 1)
  const int lowest = size == 0 ? 1 - bias : std::max(exponent - 1, 1 - bias); // that of the last place, plus fraction
  const double scaled = std::ldexp(size, fraction - lowest);
  const double rounded = isTruncated ? std::trunc(scaled) : std::nearbyint(scaled);
  auto bits = static_cast<int64_t>(rounded) + (static_cast<int64_t>(lowest + bias - 1) << fraction);
  if (bits >= infinity)
    bits = isTruncated ? infinity - 1 : infinity;
  return sign | static_cast<uint16_t>(bits);
}

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_HALVES_H

//===- Operands.cpp - What matrix products multiply -----------------------===//
//
// Bits of tensor cores are not in the ISA. What is here was read off an H200: wgmma aligns the products of an
// instruction and the sum so far to the largest of them, cuts each off 25 bits below it (bf16, f16) or 13 (fp8), adds
// them, and cuts the result to f32.
//
//===----------------------------------------------------------------------===//
#include "Operands.h"
#include "Halves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace k2c::ptx {

namespace {

/// A format of 8 bits, of `exponent` bits of exponent.
float valueOfByte(uint32_t bits, int exponent, bool hasInfinity) {
  const int fraction = 7 - exponent, bias = (1 << (exponent - 1)) - 1;
  const int high = static_cast<int>(bits >> fraction) & ((1 << exponent) - 1),
            low = static_cast<int>(bits) & ((1 << fraction) - 1);
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  const int last = (1 << exponent) - 1;
  if (high == last && hasInfinity)
    return low ? std::numeric_limits<float>::quiet_NaN() : sign * std::numeric_limits<float>::infinity();
  if (high == last && low == (1 << fraction) - 1)
    return std::numeric_limits<float>::quiet_NaN();
  return sign * (high ? std::ldexp(static_cast<float>((1 << fraction) + low), high - bias - fraction)
                      : std::ldexp(static_cast<float>(low), 1 - bias - fraction));
}

std::array<float, 256> bytesOfFormat(int exponent, bool hasInfinity) {
  std::array<float, 256> all{};
  for (uint32_t bits = 0; bits < all.size(); ++bits)
    all[bits] = valueOfByte(bits, exponent, hasInfinity);
  return all;
}

std::vector<float> halves() {
  std::vector<float> all(1 << 16);
  for (uint32_t bits = 0; bits < all.size(); ++bits)
    all[bits] = static_cast<float>(valueOfHalf(static_cast<uint16_t>(bits), f16Format));
  return all;
}

float fromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

uint32_t toBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

} // namespace

std::optional<Element> elementNamed(std::string_view name) {
  if (name == "bf16")
    return Element::BF16;
  if (name == "f16")
    return Element::F16;
  if (name == "e4m3")
    return Element::E4M3;
  if (name == "e5m2")
    return Element::E5M2;
  return std::nullopt;
}

float valueOf(Element element, uint32_t bits) {
  static const std::array<float, 256> e4m3 = bytesOfFormat(4, false), e5m2 = bytesOfFormat(5, true);
  static const std::vector<float> f16 = halves();
  switch (element) {
  case Element::BF16:
    return fromBits(bits << 16);
  case Element::F16:
    return f16[bits & 0xffff];
  case Element::E4M3:
    return e4m3[bits & 0xff];
  case Element::E5M2:
    return e5m2[bits & 0xff];
  }
  return 0;
}

MatrixDescriptor::MatrixDescriptor(uint64_t bits) {
  constexpr uint32_t swizzles[] = {0, 128, 64, 32};
  start = (bits & 0x3fff) << 4;
  leading = (bits >> 16 & 0x3fff) << 4;
  stride = (bits >> 32 & 0x3fff) << 4;
  baseOffset = bits >> 49 & 7;
  swizzleBytes = swizzles[bits >> 62];
}

uint64_t MatrixDescriptor::addressOf(uint32_t line, uint32_t k, uint32_t elementBytes, bool isTransposed) const {
  constexpr uint32_t group = 8, chunk = 16;
  uint64_t address = start;
  if (isTransposed)
    address += uint64_t(line) * elementBytes / swizzleBytes * leading + k / group * stride + k % group * swizzleBytes +
               line * elementBytes % swizzleBytes;
  else if (swizzleBytes == 0)
    address += line / group * stride + uint64_t(k) * elementBytes / chunk * leading + line % group * chunk +
               k * elementBytes % chunk;
  else
    address += line / group * stride + line % group * swizzleBytes + uint64_t(k) * elementBytes;
  return swizzleBytes == 0 ? address : address ^ (address >> 3 & (swizzleBytes - chunk));
}

void addProducts(const float *a, const float *b, uint32_t depth, uint32_t columns, int fraction, float *sums) {
  constexpr uint32_t atATime = 64;
  for (uint32_t first = 0; first < columns; first += atATime) {
    const uint32_t count = std::min(atATime, columns - first);
    float largest[atATime], scale[atATime];
    int32_t whole[atATime];
    for (uint32_t n = 0; n < count; ++n)
      largest[n] = std::abs(sums[first + n]);
    for (uint32_t k = 0; k < depth; ++k)
      for (uint32_t n = 0; n < count; ++n) {
        const float size = std::abs(a[k] * b[k * columns + first + n]);
        largest[n] = largest[n] > size ? largest[n] : size;
      }
    bool isPlain = true; // no infinity or what is no number, and no power that f32 does not have
    for (uint32_t n = 0; n < count; ++n) {
      const int exponent = static_cast<int>(toBits(largest[n]) >> 23);
      isPlain &= largest[n] == 0 || (exponent > fraction && exponent < 250);
      scale[n] =
          largest[n] == 0 || !isPlain ? 1 : fromBits(static_cast<uint32_t>(127 + fraction - (exponent - 127)) << 23);
    }
    if (!isPlain) {
      for (uint32_t n = 0; n < count; ++n)
        for (uint32_t k = 0; k < depth; ++k)
          sums[first + n] += a[k] * b[k * columns + first + n];
      continue;
    }
    for (uint32_t n = 0; n < count; ++n)
      whole[n] = static_cast<int32_t>(sums[first + n] * scale[n]);
    for (uint32_t k = 0; k < depth; ++k)
      for (uint32_t n = 0; n < count; ++n)
        whole[n] += static_cast<int32_t>(a[k] * b[k * columns + first + n] * scale[n]);
    for (uint32_t n = 0; n < count; ++n) {
      const double exact = static_cast<double>(whole[n]) / scale[n];
      uint64_t bits;
      std::memcpy(&bits, &exact, sizeof bits);
      bits &= ~((uint64_t(1) << 29) - 1); // to the 24 bits of an f32
      double cut;
      std::memcpy(&cut, &bits, sizeof cut);
      sums[first + n] = static_cast<float>(cut);
    }
  }
}

} // namespace k2c::ptx

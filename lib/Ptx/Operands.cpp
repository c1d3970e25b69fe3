//===- Operands.cpp - What matrix products multiply -----------------------===//
//
// Bits of tensor cores are not in the ISA. What is here was read off an H200: wgmma aligns the products of an
// instruction and the sum so far to the largest of them, cuts each off 25 bits below it (bf16, f16) or 13 (fp8), adds
// them, and cuts the result to f32.
//
//===----------------------------------------------------------------------===//
#include "Operands.h"
#include "Halves.h"
#include "Lanes.h"

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

/// The numbers of a format by their bits; null: it needs no table.
const float *tableOf(Element element) {
  static const std::array<float, 256> e4m3 = bytesOfFormat(4, false), e5m2 = bytesOfFormat(5, true);
  static const std::vector<float> f16 = halves();
  return element == Element::E4M3   ? e4m3.data()
         : element == Element::E5M2 ? e5m2.data()
         : element == Element::F16  ? f16.data()
                                    : nullptr;
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
  if (name == "tf32")
    return Element::TF32;
  if (name == "s8")
    return Element::S8;
  if (name == "u8")
    return Element::U8;
  return std::nullopt;
}

std::optional<Sums> sumsNamed(std::string_view name) {
  if (name == "f32")
    return Sums::F32;
  if (name == "f16")
    return Sums::F16;
  if (name == "s32")
    return Sums::S32;
  return std::nullopt;
}

float valueOf(Element element, uint32_t bits) {
  switch (element) {
  case Element::BF16:
    return k2c::ptx::valueOf<float>(bits << 16);
  case Element::F16:
    return tableOf(element)[bits & 0xffff];
  case Element::E4M3:
  case Element::E5M2:
    return tableOf(element)[bits & 0xff];
  case Element::TF32: // the lower bits are not looked at
    return k2c::ptx::valueOf<float>(bits & 0xffffe000u);
  case Element::S8:
    return static_cast<int8_t>(bits);
  case Element::U8:
    return static_cast<uint8_t>(bits);
  }
  return 0;
}

uint32_t byteOf(Element element, float value) {
  const uint32_t sign = std::signbit(value) ? 0x80 : 0, greatest = element == Element::E4M3 ? 0x7e : 0x7b;
  if (value != value)
    return 0x7f;
  const float size = std::abs(value);
  uint32_t low = 0; // the greatest that is not above: values ascend with their bits
  for (uint32_t step = 64; step > 0; step /= 2)
    if (low + step <= greatest && valueOf(element, low + step) <= size)
      low += step;
  if (low == greatest)
    return sign | greatest;
  const double below = valueOf(element, low), middle = (below + valueOf(element, low + 1)) / 2;
  return sign | (size > middle || (size == middle && (low & 1)) ? low + 1 : low);
}

template <class Bits>
static void valuesOf(Element element, const std::byte *bytes, uint32_t count, uint32_t step, float *values) {
  const float *table = tableOf(element);
  for (uint32_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
    values[size_t(i) * step] = table                      ? table[bits]
                               : element == Element::BF16 ? k2c::ptx::valueOf<float>(uint32_t(bits) << 16)
                                                          : valueOf(element, bits);
  }
}

void valuesOf(Element element, const std::byte *bytes, uint32_t count, uint32_t step, float *values) {
  switch (bytesOf(element)) {
  case 1:
    return valuesOf<uint8_t>(element, bytes, count, step, values);
  case 2:
    return valuesOf<uint16_t>(element, bytes, count, step, values);
  default:
    return valuesOf<uint32_t>(element, bytes, count, step, values);
  }
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

constexpr uint32_t width = 8;
typedef float Numbers __attribute__((vector_size(4 * width)));
typedef int32_t Words __attribute__((vector_size(4 * width)));
typedef long long Pairs __attribute__((vector_size(4 * width)));

/// addProducts() of `width` columns, which registers of the processor hold.
static void addColumns(const float *a, const float *b, uint32_t depth, uint32_t columns, int fraction, float *sums) {
  const auto load = [](const float *from) {
    Numbers made;
    std::memcpy(&made, from, sizeof made);
    return made;
  };
  const auto size = [](Numbers of) { return (Numbers)((Words)of & 0x7fffffff); };
  const Numbers sum = load(sums);
  Numbers largest = size(sum);
#pragma GCC unroll 8
  for (uint32_t k = 0; k < depth; ++k) {
    const Numbers product = size(a[k] * load(b + size_t(k) * columns));
    largest = largest > product ? largest : product;
  }
  const Words exponent = (Words)largest >> 23;
  // no infinity or what is no number, and no power that f32 does not have
  const Words isStrange = (exponent != 0) & ((exponent <= fraction) | (exponent >= 250));
  if (!__builtin_ia32_ptestz256((Pairs)isStrange, (Pairs)isStrange)) {
    for (uint32_t n = 0; n < width; ++n)
      for (uint32_t k = 0; k < depth; ++k)
        sums[n] += a[k] * b[size_t(k) * columns + n];
    return;
  }
  const Words isSome = exponent != 0;
  const Numbers scale = (Numbers)(isSome & ((127 + fraction + 127 - exponent) << 23)),
                back = (Numbers)(isSome & ((exponent - fraction) << 23));
  Words whole = __builtin_convertvector(sum * scale, Words);
#pragma GCC unroll 8
  for (uint32_t k = 0; k < depth; ++k)
    whole += __builtin_convertvector(a[k] * load(b + size_t(k) * columns) * scale, Words);
  const Words isBelow = whole < 0, magnitude = (whole ^ isBelow) - isBelow;
  const Numbers rounded = __builtin_convertvector(magnitude, Numbers);
  const Words isAbove = __builtin_convertvector(rounded, Words) > magnitude; // cut to the 24 bits of an f32
  const Numbers made = (Numbers)((Words)((Numbers)((Words)rounded + isAbove) * back) | (isBelow & INT32_MIN));
  std::memcpy(sums, &made, sizeof made);
}

void addProducts(const float *a, const float *b, uint32_t depth, uint32_t columns, int fraction, float *sums) {
  for (uint32_t first = 0; first < columns; first += width)
    addColumns(a, b + first, depth, columns, fraction, sums + first);
}

void multiply(const MatrixProduct &product, const float *a, const float *b, uint32_t *sums) {
  const uint32_t columns = product.columns;
  std::vector<float> line(columns);
  for (uint32_t row = 0; row < product.rows; ++row, a += product.depth, sums += columns) {
    if (product.sums == Sums::F32) {
      std::memcpy(line.data(), sums, columns * sizeof(float));
      addProducts(a, b, product.depth, columns, product.fraction, line.data());
      std::memcpy(sums, line.data(), columns * sizeof(float));
      continue;
    }
    for (uint32_t n = 0; n < columns; ++n)
      line[n] = product.sums == Sums::F16 ? valueOf(Element::F16, sums[n]) : 0.0f;
    if (product.sums == Sums::F16)
      addProducts(a, b, product.depth, columns, product.fraction, line.data());
    else // of bytes: exact in f32
      for (uint32_t k = 0; k < product.depth; ++k)
        for (uint32_t n = 0; n < columns; ++n)
          line[n] += a[k] * b[k * columns + n];
    for (uint32_t n = 0; n < columns; ++n) {
      if (product.sums == Sums::F16) {
        sums[n] = halfOf(line[n], f16Format, false);
      } else {
        const int64_t sum = int64_t(static_cast<int32_t>(sums[n])) + static_cast<int64_t>(line[n]);
        constexpr int64_t least = std::numeric_limits<int32_t>::min(), greatest = std::numeric_limits<int32_t>::max();
        sums[n] = static_cast<uint32_t>(product.isSaturated ? std::clamp(sum, least, greatest) : sum);
      }
    }
  }
}

} // namespace k2c::ptx

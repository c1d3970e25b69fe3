//===- Operands.h - What matrix products multiply -------------------------===//
#ifndef K2C_LIB_PTX_OPERANDS_H
#define K2C_LIB_PTX_OPERANDS_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace k2c::ptx {

/// Elements of A and B. (PTX ISA, matrix multiply-accumulate instructions)
enum class Element : uint8_t { BF16, F16, E4M3, E5M2, TF32, S8, U8 };
/// What their products are added to.
enum class Sums : uint8_t { F32, F16, S32 };

std::optional<Element> elementNamed(std::string_view name);
std::optional<Sums> sumsNamed(std::string_view name);
inline uint32_t bytesOf(Element element) {
  return element == Element::TF32 ? 4 : element == Element::BF16 || element == Element::F16 ? 2 : 1;
}
inline bool isInteger(Element element) { return element >= Element::S8; }

/// The number that `bits` stand for.
float valueOf(Element element, uint32_t bits);
/// The byte of a format of bytes that is nearest to `value`, ties to even; beyond it the greatest.
uint32_t byteOf(Element element, float value);
/// Those of the `count` elements at `bytes`, which go to every `step`-th place of `values`.
void valuesOf(Element element, const std::byte *bytes, uint32_t count, uint32_t step, float *values);

/// Where elements lie in shared memory. (PTX ISA, wgmma: Matrix Descriptor Format)
struct MatrixDescriptor {
  uint64_t start, leading, stride; ///< bytes
  uint32_t swizzleBytes;           ///< 0, 32, 64 or 128
  uint32_t baseOffset;

  explicit MatrixDescriptor(uint64_t bits);
  /// The address of element (line, k); `isTransposed`: lines are contiguous, not k.
  uint64_t addressOf(uint32_t line, uint32_t k, uint32_t elementBytes, bool isTransposed) const;
};

/// What a tensor core adds: `sums[n]` + the sum of a[k] b[k][n], for `columns` columns. Products and the sum so far are
/// cut off `fraction` bits below the largest of them, and added exactly; the result is cut to f32.
/// `b`: `depth` rows of `columns`, a multiple of 8.
void addProducts(const float *a, const float *b, uint32_t depth, uint32_t columns, int fraction, float *sums);

/// A product of a matrix of `rows` rows and one of `columns` columns.
struct MatrixProduct {
  uint32_t rows, depth, columns;
  int fraction; ///< of addProducts()
  Sums sums;
  bool isSaturated; ///< integers
};
/// Adds it to `sums`, whose bits are those of a sum each.
void multiply(const MatrixProduct &product, const float *a, const float *b, uint32_t *sums);

/// Where elements lie in the registers of a warp whose lanes hold 16 rows: element `i` of register `part` of `lane`.
/// (PTX ISA, Matrix Fragments for mma)
inline uint32_t placeInA(uint32_t part, uint32_t lane, uint32_t i, uint32_t depth, uint32_t elementBytes) {
  const uint32_t row = lane / 4 + part % 2 * 8, k = part / 2 * depth / 2 + lane % 4 * (4 / elementBytes) + i;
  return row * depth + k;
}
/// The same for the sums, of which a lane has two neighbours of a row and two of the row 8 below.
inline uint32_t placeInSums(uint32_t number, uint32_t lane, uint32_t columns) {
  const uint32_t row = lane / 4 + number / 2 % 2 * 8, column = number / 4 * 8 + lane % 4 * 2 + number % 2;
  return row * columns + column;
}

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_OPERANDS_H

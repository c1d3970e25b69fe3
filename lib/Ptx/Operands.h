//===- Operands.h - What matrix products multiply -------------------------===//
#ifndef K2C_LIB_PTX_OPERANDS_H
#define K2C_LIB_PTX_OPERANDS_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace k2c::ptx {

/// Elements of A and B. (PTX ISA 9.7.14, 9.7.15)
enum class Element : uint8_t { BF16, F16, E4M3, E5M2 };

std::optional<Element> elementNamed(std::string_view name);
inline uint32_t bytesOf(Element element) { return element == Element::BF16 || element == Element::F16 ? 2 : 1; }

/// The number that `bits` stand for.
float valueOf(Element element, uint32_t bits);

/// Where elements lie in shared memory. (PTX ISA 9.7.15.5.1)
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
/// `b`: `depth` rows of `columns`.
void addProducts(const float *a, const float *b, uint32_t depth, uint32_t columns, int fraction, float *sums);

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_OPERANDS_H

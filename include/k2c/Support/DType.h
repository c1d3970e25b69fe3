//===- DType.h - Element types of checkpoints, caches and kernels ---------===//
//
// One enumeration for every place that names an element type: safetensors headers, weight layouts, cache planes,
// kernels.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_SUPPORT_DTYPE_H
#define K2C_SUPPORT_DTYPE_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace k2c {

/// Element type. F8E4M3 is OCP e4m3 without infinities (safetensors' F8_E4M3).
enum class DType : uint8_t { F32, BF16, F16, F64, F8E4M3, F8E5M2, I8, U8, I16, I32, I64, Bool };

/// Bytes of one element.
constexpr int64_t byteWidth(DType type) {
  switch (type) {
  case DType::F64:
  case DType::I64:
    return 8;
  case DType::F32:
  case DType::I32:
    return 4;
  case DType::BF16:
  case DType::F16:
  case DType::I16:
    return 2;
  default:
    return 1;
  }
}

/// MLIR's spelling: f32, bf16, f16, f64, f8E4M3FN, f8E5M2, i8, ui8, i16, i32, i64, i1.
constexpr std::string_view name(DType type) {
  constexpr std::string_view names[] = {"f32", "bf16", "f16", "f64", "f8E4M3FN", "f8E5M2",
                                        "i8",  "ui8",  "i16", "i32", "i64",      "i1"};
  return names[static_cast<uint8_t>(type)];
}

/// The type of arithmetic or of a cache that options spell "f32" or "bf16", or nothing.
constexpr std::optional<DType> parseComputeType(std::string_view word) {
  for (DType type : {DType::F32, DType::BF16})
    if (word == name(type))
      return type;
  return std::nullopt;
}

} // namespace k2c

#endif // K2C_SUPPORT_DTYPE_H

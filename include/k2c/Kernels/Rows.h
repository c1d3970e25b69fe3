//===- Rows.h - The rows that a kernel works on -------------------------------===//
#ifndef K2C_KERNELS_ROWS_H
#define K2C_KERNELS_ROWS_H

#include "k2c/Support/DType.h"
#include <cstdint>

namespace k2c {

/// The row space of dimension 0; its run-time length: Token = step.token_rows, Output = step.output_rows,
/// Slot = token_rows * slotsPerToken, Entering = step.entering_rows.
enum class RowSpace : uint8_t { Token, Output, Slot, Entering };

/// `width` elements a row, `stride` elements from row to row (stride >= width).
struct Rows {
  RowSpace space = RowSpace::Token;
  int64_t width = 0;
  int64_t stride = 0;
  DType type = DType::F32;
};

} // namespace k2c

#endif // K2C_KERNELS_ROWS_H

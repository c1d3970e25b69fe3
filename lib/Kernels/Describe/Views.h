//===- Views.h - Strided reading of row tensors ---------------------------===//
//
// nn.split and nn.reshape say how the bytes of another value are read. Following them back gives a base value, an
// offset and strides in elements.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_KERNELS_DESCRIBE_VIEWS_H
#define K2C_LIB_KERNELS_DESCRIBE_VIEWS_H

#include "k2c/Kernels/KernelDesc.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

namespace k2c {

/// How a row tensor lies in the buffer of `base`.
struct StridedView {
  mlir::Value base;
  int64_t offset = 0;                          ///< elements from the row's start
  int64_t rowStride = 0;                       ///< elements from row to row
  llvm::SmallVector<int64_t, 3> dims, strides; ///< of the dimensions after the rows

  /// True if a row's elements are consecutive.
  bool denseRows() const;
  int64_t width() const;
};

/// Follows the views from `value` to the value that owns the bytes. Fails on a reshape of a strided row.
mlir::FailureOr<StridedView> resolveView(mlir::Value value);

/// `view` as the Rows of a KernelDesc.
mlir::FailureOr<Rows> rowsOf(const StridedView &view);

} // namespace k2c

#endif // K2C_LIB_KERNELS_DESCRIBE_VIEWS_H

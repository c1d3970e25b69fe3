//===- VerifySlices.h - Ranks of a group agree on slices of a step --------===//
#ifndef K2C_LIB_TRANSFORMS_VERIFYSLICES_H
#define K2C_LIB_TRANSFORMS_VERIFYSLICES_H

#include "mlir/IR/BuiltinOps.h"

namespace k2c {

/// Errors at a distributed or scheduled program whose tensor-parallel ranks do not send each other what they expect.
/// They begin with `who` asks.
mlir::LogicalResult verifySlices(mlir::ModuleOp module, llvm::StringRef who);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_VERIFYSLICES_H

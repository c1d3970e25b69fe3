//===- VerifySlices.h - Ranks of a group agree on slices of a step --------===//
#ifndef K2C_LIB_TRANSFORMS_VERIFYSLICES_H
#define K2C_LIB_TRANSFORMS_VERIFYSLICES_H

#include "mlir/IR/BuiltinOps.h"

namespace k2c {

/// Errors at a distributed or scheduled program whose tensor-parallel ranks do not send each other what they expect, or
/// compute of what is divided something else than one rank. They begin with `who` asks. `hasKernels`: the program is
/// scheduled.
mlir::LogicalResult verifySlices(mlir::ModuleOp module, llvm::StringRef who, bool hasKernels);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_VERIFYSLICES_H

//===- VerifyCollectives.h - Ranks agree on what they exchange ------------===//
#ifndef K2C_LIB_TRANSFORMS_VERIFYCOLLECTIVES_H
#define K2C_LIB_TRANSFORMS_VERIFYCOLLECTIVES_H

#include "mlir/IR/BuiltinOps.h"

namespace k2c {

/// Proves of `module`, in the distributed or the scheduled form and under nn.limits, that its ranks come to one
/// sequence of sites, that both sides of a site count the same rows, and that buffers hold what a step may bring. Emits
/// an error, which begins with `who`, at the op that breaks it; of an op in a kernel, at the call.
mlir::LogicalResult verifyCollectives(mlir::ModuleOp module, llvm::StringRef who);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_VERIFYCOLLECTIVES_H

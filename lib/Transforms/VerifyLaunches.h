//===- VerifyLaunches.h - What launches touch at the same time ------------===//
#ifndef K2C_LIB_TRANSFORMS_VERIFYLAUNCHES_H
#define K2C_LIB_TRANSFORMS_VERIFYLAUNCHES_H

#include "mlir/IR/BuiltinOps.h"

namespace k2c {

/// Proves of `module`, in the runtime form, that addresses are within the arena and that launches between which
/// workers do not meet may run at the same time. Emits an error, which begins with `who`, at the op that breaks it.
mlir::LogicalResult verifyLaunches(mlir::ModuleOp module, llvm::StringRef who);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_VERIFYLAUNCHES_H

//===- UniformControl.h - All ranks take the same path --------------------===//
#ifndef K2C_LIB_TRANSFORMS_UNIFORMCONTROL_H
#define K2C_LIB_TRANSFORMS_UNIFORMCONTROL_H

#include "mlir/IR/BuiltinOps.h"

namespace k2c {

/// Proves that all ranks come to the collectives of `module`, the ops that `isCollective` picks, equally often and in
/// one order: whatever is around one, in its function or around a call of that, is an scf.if or an scf.for whose
/// numbers are uniform. Emits an error, which begins with `who`, at the op or call that is not.
mlir::LogicalResult verifyUniformControl(mlir::ModuleOp module,
                                         llvm::function_ref<bool(mlir::Operation *)> isCollective, llvm::StringRef who);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_UNIFORMCONTROL_H

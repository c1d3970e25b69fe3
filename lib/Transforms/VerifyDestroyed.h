//===- VerifyDestroyed.h - What a kernel has used up is read no more -------===//
#ifndef K2C_LIB_TRANSFORMS_VERIFYDESTROYED_H
#define K2C_LIB_TRANSFORMS_VERIFYDESTROYED_H

#include "k2c/Kernels/Describe.h"
#include "mlir/IR/SymbolTable.h"

namespace k2c {

/// Proves of `function`, in the scheduled form, that nothing reads a value behind a call that leaves anything in it
/// (Effect::destroys). Emits an error, which begins with `who`, at the op that does.
mlir::LogicalResult verifyDestroyed(mlir::FunctionOpInterface function, mlir::SymbolTable &symbols,
                                    KernelDescriptions &descriptions, llvm::StringRef who);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_VERIFYDESTROYED_H

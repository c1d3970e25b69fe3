//===- VerifyWaits.h - Each exchange is waited for ------------------------===//
#ifndef K2C_LIB_TRANSFORMS_VERIFYWAITS_H
#define K2C_LIB_TRANSFORMS_VERIFYWAITS_H

#include "mlir/IR/BuiltinOps.h"

namespace k2c {

/// Proves of `module` in the runtime form that all ranks come to one sequence of sites, that each start of an exchange
/// has one wait on every path, that no address of an exchange is used in between, and that rows of a site are counted
/// behind its wait. Emits an error, which begins with `who`, at the op that breaks it.
mlir::LogicalResult verifyWaits(mlir::ModuleOp module, llvm::StringRef who);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_VERIFYWAITS_H

//===- VerifyStages.h - Stages forward rows in one order --------------------===//
#ifndef K2C_LIB_TRANSFORMS_VERIFYSTAGES_H
#define K2C_LIB_TRANSFORMS_VERIFYSTAGES_H

#include "mlir/IR/BuiltinOps.h"

namespace k2c {

/// Refuses a program whose stages could wait for one another without end, or forward other rows than they take, at any
/// op of the distributed or scheduled form. Errors begin with `who` asks.
llvm::LogicalResult verifyStages(mlir::ModuleOp module, llvm::StringRef who);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_VERIFYSTAGES_H

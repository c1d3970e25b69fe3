//===- RtFunctions.h - What functions of a program may have -----------------===//
//
// All workers run the functions of a program alike. Where they go, and with how many items, is numbers that each
// computes for itself: counts of the step and Numbers.def. Errors begin with `who` asks.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_RT_RTFUNCTIONS_H
#define K2C_DIALECTS_RT_RTFUNCTIONS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

namespace k2c::rt {

/// Refuses an op that is neither a count of the step nor arithmetic on index, i64 and i1 that is defined for all of
/// its operands.
llvm::LogicalResult checkNumber(mlir::Operation *op, llvm::StringRef who);

/// Refuses a loop that does not count upwards, in signed 64 bits, to an end that it reaches.
llvm::LogicalResult checkCount(mlir::scf::ForOp loop, llvm::StringRef who);

/// Refuses functions of `module` that no program has. rt-to-llvm lowers all others.
llvm::LogicalResult checkFunctions(mlir::ModuleOp module, llvm::StringRef who);

} // namespace k2c::rt

#endif // K2C_DIALECTS_RT_RTFUNCTIONS_H

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

/// Refuses a loop that does not count upwards in signed 64 bits, or whose constant end lies so high that the count
/// passes it by an overflow. Ends that are not constant are counts of a step, far below.
llvm::LogicalResult checkCount(mlir::scf::ForOp loop, llvm::StringRef who);

/// Refuses arguments and ops that no function of a program has. With what rt.program demands of functions and their
/// calls, rt-to-llvm lowers all that is left.
llvm::LogicalResult checkFunctions(mlir::ModuleOp module, llvm::StringRef who);

} // namespace k2c::rt

#endif // K2C_DIALECTS_RT_RTFUNCTIONS_H

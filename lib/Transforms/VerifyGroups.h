//===- VerifyGroups.h - What one worker writes, no other reads ------------===//
#ifndef K2C_LIB_TRANSFORMS_VERIFYGROUPS_H
#define K2C_LIB_TRANSFORMS_VERIFYGROUPS_H

#include "k2c/Kernels/Describe.h"
#include "mlir/IR/SymbolTable.h"

namespace k2c {

/// Proves of `function`, whose calls have offsets, from the bytes of the arena that they touch: workers meet before
/// anything but a call, no two calls of a group need a barrier between them (CallEffects.h), and nothing touches what
/// asynchronous work has. Emits an error at the op that breaks it.
mlir::LogicalResult verifyGroups(mlir::FunctionOpInterface function, mlir::SymbolTable &symbols,
                                 KernelDescriptions &descriptions, nn::LimitsAttr limits);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_VERIFYGROUPS_H

//===- ProgramFacts.h - What the runtime form says of a program -----------===//
#ifndef K2C_LIB_PIPELINES_PROGRAMFACTS_H
#define K2C_LIB_PIPELINES_PROGRAMFACTS_H

#include "ProgramKernels.h"
#include "dialects/Rt/Rt.h"
#include "k2c/Target/Package.h"
#include "mlir/IR/BuiltinOps.h"

namespace k2c {

/// What the manifest says, read from a module in the runtime form, which launches `codes`.
ProgramFacts programFacts(mlir::ModuleOp runtime, const std::vector<KernelCode> &codes);

/// The slots of weights by rising number; from the scheduled form on.
llvm::SmallVector<rt::WeightSlotsOp> slotsInOrder(mlir::ModuleOp module);

/// How launches read each weight slot; from the scheduled form on.
std::vector<SlotShares> slotShares(mlir::ModuleOp module);

} // namespace k2c

#endif // K2C_LIB_PIPELINES_PROGRAMFACTS_H

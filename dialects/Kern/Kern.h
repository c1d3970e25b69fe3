//===- Kern.h - The kern dialect --------------------------------------------===//
//
// Fused kernels and their calls. See Rationale.md.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_KERN_KERN_H
#define K2C_DIALECTS_KERN_KERN_H

#include "dialects/Nn/Nn.h"
#include "mlir/IR/BuiltinOps.h"

#include "dialects/Kern/KernDialect.h.inc"
#include "dialects/Kern/KernEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Kern/KernAttributes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Kern/KernOps.h.inc"

namespace k2c::kern {
/// The functions of `module` that kernels are called from: what steps enter, and layers.
llvm::SmallVector<mlir::FunctionOpInterface> stepFunctions(mlir::ModuleOp module);
} // namespace k2c::kern

#endif // K2C_DIALECTS_KERN_KERN_H

//===- Kern.h - The kern dialect --------------------------------------------===//
//
// Fused kernels and their calls. See Rationale.md.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_KERN_KERN_H
#define K2C_DIALECTS_KERN_KERN_H

#include "dialects/Nn/Nn.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include "dialects/Kern/KernDialect.h.inc"
#include "dialects/Kern/KernEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Kern/KernAttributes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Kern/KernOps.h.inc"

#endif // K2C_DIALECTS_KERN_KERN_H

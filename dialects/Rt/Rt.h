//===- Rt.h - The rt dialect ------------------------------------------------===//
//
// One op for each runtime entry. See Rationale.md.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_RT_RT_H
#define K2C_DIALECTS_RT_RT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Rt/RtDialect.h.inc"
#include "dialects/Rt/RtEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Rt/RtAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Rt/RtTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Rt/RtOps.h.inc"

#endif // K2C_DIALECTS_RT_RT_H

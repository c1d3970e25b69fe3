//===- Nn.h - The nn dialect ------------------------------------------------===//
//
// Transformer operations on ragged batches: row spaces, weight families, cache pools. See Rationale.md.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_NN_NN_H
#define K2C_DIALECTS_NN_NN_H

#include "dialects/Nn/NnSupport.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Nn/NnDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Nn/NnTypes.h.inc"

#include "dialects/Nn/NnInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/Nn/NnOps.h.inc"

#endif // K2C_DIALECTS_NN_NN_H

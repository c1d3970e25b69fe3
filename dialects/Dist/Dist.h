//===- Dist.h - The dist dialect --------------------------------------------===//
//
// Cluster and plan as attributes, collectives among ranks as ops. See Rationale.md.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_DIST_DIST_H
#define K2C_DIALECTS_DIST_DIST_H

#include "dialects/Nn/Nn.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"

#include "dialects/Dist/DistDialect.h.inc"
#include "dialects/Dist/DistEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Dist/DistAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Dist/DistTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/Dist/DistOps.h.inc"

#endif // K2C_DIALECTS_DIST_DIST_H

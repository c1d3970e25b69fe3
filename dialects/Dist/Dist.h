//===- Dist.h - The dist dialect --------------------------------------------===//
//
// Cluster and plan as attributes. See Rationale.md.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_DIST_DIST_H
#define K2C_DIALECTS_DIST_DIST_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"

#include "dialects/Dist/DistDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Dist/DistAttributes.h.inc"

#endif // K2C_DIALECTS_DIST_DIST_H

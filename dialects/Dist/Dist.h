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
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"

#include "dialects/Dist/DistDialect.h.inc"
#include "dialects/Dist/DistEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Dist/DistAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Dist/DistTypes.h.inc"

namespace k2c::dist {
/// Most rows of one member, and of all members together.
struct CountBounds {
  int64_t one = 0, all = 0;
};
} // namespace k2c::dist

#include "dialects/Dist/DistInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/Dist/DistOps.h.inc"

namespace k2c::dist {
/// The number of a collective; none of other ops.
std::optional<int64_t> siteOf(mlir::Operation *op);

/// How many sites the module has.
int64_t countSites(mlir::ModuleOp module);

/// Refuses sites that are not numbered from 0 without gaps, one op for each. Errors begin with `who` asks.
llvm::LogicalResult checkSites(mlir::ModuleOp module, llvm::StringRef who);
} // namespace k2c::dist

#endif // K2C_DIALECTS_DIST_DIST_H

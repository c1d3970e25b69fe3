//===- BoundDispersion.h - Routers are bound as the plan says -------------===//
#ifndef K2C_LIB_TRANSFORMS_BOUNDDISPERSION_H
#define K2C_LIB_TRANSFORMS_BOUNDDISPERSION_H

#include "mlir/IR/BuiltinOps.h"

namespace k2c {

/// Proves that each moe.routing of `module` has the bound of the plan, on the nodes of the topology and over the slots
/// of its moe.locate. Emits an error, which begins with `who`, at the op that has another.
mlir::LogicalResult verifyBounds(mlir::ModuleOp module, llvm::StringRef who);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_BOUNDDISPERSION_H

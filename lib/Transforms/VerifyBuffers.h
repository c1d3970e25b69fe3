//===- VerifyBuffers.h - Sites and the buffers that starts give them ------===//
#ifndef K2C_LIB_TRANSFORMS_VERIFYBUFFERS_H
#define K2C_LIB_TRANSFORMS_VERIFYBUFFERS_H

#include "mlir/IR/BuiltinOps.h"

namespace k2c {

/// Proves of `module`, in the runtime form, in which starts take addresses of the arena, that what the table says of a
/// site fits the bytes that its start gives it. Emits an error, which begins with `who`, at a start that does not.
mlir::LogicalResult verifyBuffers(mlir::ModuleOp module, llvm::StringRef who);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_VERIFYBUFFERS_H

//===- Mem.h - The mem dialect ----------------------------------------------===//
//
// Memory as attributes. See Rationale.md.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_MEM_MEM_H
#define K2C_DIALECTS_MEM_MEM_H

#include "dialects/Nn/Nn.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/Operation.h"
#include <optional>

#include "dialects/Mem/MemDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Mem/MemAttributes.h.inc"

namespace k2c::mem {

/// `mem.peak` of a function or a module: bytes.
std::optional<int64_t> peakOf(mlir::Operation *op);
void setPeak(mlir::Operation *op, int64_t bytes);

/// The value with which `rows` lie, the result of an op that is placed or an argument of a function: what shares a
/// place or is forwarded lies where the other does. Null where nobody says.
mlir::Value originOf(mlir::Value rows);
/// Where `rows` lie, as their origin says (of a function by its `mem.arguments`): bytes from the beginning of the
/// arena.
std::optional<int64_t> offsetOf(mlir::Value rows);
/// `mem.arguments` of a layer: the offset of each tensor that it takes.
void setArguments(mlir::Operation *layer, llvm::ArrayRef<int64_t> offsets);

} // namespace k2c::mem

#endif // K2C_DIALECTS_MEM_MEM_H

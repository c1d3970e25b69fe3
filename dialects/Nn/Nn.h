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
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Nn/NnDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Nn/NnTypes.h.inc"

#include "dialects/Nn/NnInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/Nn/NnOps.h.inc"

namespace k2c::nn {
/// The bounds that a module states; null without them.
LimitsAttr limitsOf(mlir::Operation *module);
/// Most rows of `rows` in one step. The runtime cuts prompts so that output rows are no more than this.
int64_t boundRows(RowsAttr rows, LimitsAttr limits);
/// Pages of one layer of `pool` that hold the longest context of every sequence.
int64_t pagesOf(PoolOp pool, LimitsAttr limits);
/// Bytes of one layer of a plane of `pool`.
int64_t planeBytes(PoolOp pool, PlaneAttr plane, LimitsAttr limits);
/// Whether a step enters `function`.
bool isEntry(mlir::Operation *function);
/// Whether `op` is a KernelOp that is a view.
bool isView(mlir::Operation *op);

/// What control flow forwards: an operand of `branch` or of a terminator in it, and the argument or result that takes
/// it; in the order of the program.
llvm::SmallVector<std::pair<mlir::OpOperand *, mlir::Value>> forwardsOf(mlir::RegionBranchOpInterface branch);

/// Builds a function-like op: its name, its type, and a block with its arguments.
void buildFunction(mlir::OpBuilder &builder, mlir::OperationState &state, llvm::StringRef name,
                   mlir::FunctionType type);
/// Names the arguments of a function by their types, or by `nameOf` where a type has no name.
void nameArguments(mlir::Region &region, mlir::OpAsmSetValueNameFn set,
                   llvm::function_ref<llvm::StringRef(mlir::BlockArgument)> nameOf);
} // namespace k2c::nn

#endif // K2C_DIALECTS_NN_NN_H

//===- NnVerify.h - What the verifiers of token ops share -------------------===//
//
// Each check emits one error naming the op, the constraint's id and both values, and does nothing if the constraint
// holds. An id is that of the op's description.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_DIALECTS_NN_NNVERIFY_H
#define K2C_DIALECTS_NN_NNVERIFY_H

#include "dialects/Nn/Nn.h"

namespace k2c::nn {

/// Dimensions after the rows.
inline llvm::ArrayRef<int64_t> columnsOf(mlir::Type type) {
  return llvm::cast<mlir::RankedTensorType>(type).getShape().drop_front();
}

/// The last dimension.
inline int64_t widthOf(mlir::Type type) { return llvm::cast<mlir::RankedTensorType>(type).getShape().back(); }

/// "[id] expects <what> <got> to equal <of> <expected>".
llvm::LogicalResult checkEqual(mlir::Operation *op, llvm::StringRef id, llvm::StringRef what, int64_t got,
                               llvm::StringRef of, int64_t expected);

/// "[id] expects <what> of shape [expected], got [got]".
llvm::LogicalResult checkShape(mlir::Operation *op, llvm::StringRef id, llvm::StringRef what,
                               llvm::ArrayRef<int64_t> got, llvm::ArrayRef<int64_t> expected);

/// "[id] expects <what> of rank <expected>, got <got>".
llvm::LogicalResult checkRank(mlir::Operation *op, llvm::StringRef id, llvm::StringRef what, mlir::Type type,
                              int64_t expected);

/// "[id] expects <what> of type <expected>, got <got>": the element type.
llvm::LogicalResult checkElement(mlir::Operation *op, llvm::StringRef id, llvm::StringRef what, mlir::Type type,
                                 mlir::Type expected);

/// "[id] expects <what> in row space <expected>, got <got>".
llvm::LogicalResult checkRows(mlir::Operation *op, llvm::StringRef id, llvm::StringRef what, mlir::Type type,
                              RowsAttr expected);
llvm::LogicalResult checkRows(mlir::Operation *op, llvm::StringRef id, llvm::StringRef what, mlir::Type type,
                              RowKind kind);

/// Rows of the step: `token` ones, or those that were gathered.
llvm::LogicalResult checkStepRows(mlir::Operation *op, llvm::StringRef id, llvm::StringRef what, mlir::Type type);

/// The pool has a plane `name` of `dims` elements of type `element`.
llvm::LogicalResult checkPlane(mlir::Operation *op, llvm::StringRef id, PoolOp pool, llvm::StringRef name,
                               llvm::ArrayRef<int64_t> dims, mlir::Type element);

/// The logical type of a weight family or table; an error ([W1], [W2] of WeightUser) if there is none or if it is
/// layered and `layered` is false or the other way round.
mlir::FailureOr<mlir::RankedTensorType> lookupWeight(mlir::Operation *op, mlir::FlatSymbolRefAttr family, bool layered,
                                                     mlir::SymbolTableCollection &tables);

} // namespace k2c::nn

#endif // K2C_DIALECTS_NN_NNVERIFY_H

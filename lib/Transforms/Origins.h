//===- Origins.h - Which op makes a value, through calls of kernels --------===//
#ifndef K2C_LIB_TRANSFORMS_ORIGINS_H
#define K2C_LIB_TRANSFORMS_ORIGINS_H

#include "dialects/Kern/Kern.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include <string>

namespace k2c {

/// A value where it is made: in the kernel that `call` runs, or outside of kernels.
struct Made {
  mlir::Value value;
  kern::CallOp call;
  bool operator==(const Made &other) const { return value == other.value && call == other.call; }
  /// Null for an argument.
  mlir::Operation *op() const { return value ? value.getDefiningOp() : nullptr; }
  /// For diagnostics: "result 1 of 'moe.unpack'".
  std::string name() const;
};

/// Likewise an op.
template <class Op> struct Run {
  Op op;
  kern::CallOp call;
  mlir::Operation *place() { return call ? call.getOperation() : op.getOperation(); }
};

class Origins {
public:
  explicit Origins(mlir::ModuleOp module) : module(module), symbols(module) {}

  /// Follows `value`, which the kernel of `call` has, to the op that makes it.
  Made of(mlir::Value value, kern::CallOp call);
  /// Visits the ops of the step's functions and, once for each call, of kernels.
  mlir::LogicalResult forEach(llvm::function_ref<mlir::LogicalResult(mlir::Operation *, kern::CallOp)> visit);

private:
  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
};

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_ORIGINS_H

//===- KernelGroups.h - Which ops become one kernel -----------------------===//
//
// Analysis of form-kernels, apart from its rewrite. Roles come from the KernelOp interface:
//
//   anchor       a loop nest of its own
//   prologue     joins the anchor that alone reads it (a norm before a linear)
//   epilogue     joins the linear it alone reads (gated activation, residual addition)
//   elementwise  a view: moves into every kernel that reads through it
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_TRANSFORMS_KERNELGROUPS_H
#define K2C_LIB_TRANSFORMS_KERNELGROUPS_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"

namespace k2c {

/// The ops of one kernel in program order, without views. The kernel stands where its last op stands.
using KernelGroup = llvm::SmallVector<mlir::Operation *, 4>;

/// True for ops that only say how the same bytes are read (nn.split, nn.reshape).
bool isView(mlir::Operation *op);

/// True for ops that become part of a kernel.
bool isKernelOp(mlir::Operation *op);

/// Cuts `block` into kernels, in the order they run. Without `fuse` every op is its own kernel.
llvm::SmallVector<KernelGroup> groupKernels(mlir::Block &block, bool fuse);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_KERNELGROUPS_H

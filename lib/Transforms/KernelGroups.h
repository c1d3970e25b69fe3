//===- KernelGroups.h - Which ops become one kernel -----------------------===//
//
// Analysis of form-kernels, apart from its rewrite. Of the parts that ops may play (KernelOp), these are joined:
//
//   prologue   a norm of whole rows, into the linear that alone reads it
//   epilogue   gated activation or residual addition, into the linear it alone reads; what is added
//              comes no later than the linear
//   view       nn.split, for one: into every kernel that reads through it
//
// Every other op is a kernel of its own.
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

/// Whether `op` is a KernelOp that is a linear.
bool isLinear(mlir::Operation *op);

/// Cuts `block` into kernels, in the order they run. Without `fuse` every op is its own kernel.
llvm::SmallVector<KernelGroup> groupKernels(mlir::Block &block, bool fuse);

} // namespace k2c

#endif // K2C_LIB_TRANSFORMS_KERNELGROUPS_H

//===- Permutation.h - Routes sorted by expert, by warps ------------------------===//
#ifndef K2C_LIB_KERNELS_NVIDIA_PERMUTATION_H
#define K2C_LIB_KERNELS_NVIDIA_PERMUTATION_H

#include "k2c/Kernels/KernelDesc.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace k2c::warp {

/// Adds the function `symbol` of a permutation to a module: an item is one of `parts` of the routes. A CTA has `warps`.
mlir::LogicalResult addPermutation(mlir::ModuleOp module, const PermutationDesc &desc, int64_t parts,
                                   llvm::StringRef symbol, int64_t warps);

} // namespace k2c::warp

#endif // K2C_LIB_KERNELS_NVIDIA_PERMUTATION_H

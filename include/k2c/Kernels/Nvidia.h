//===- Nvidia.h - KernelDesc -> MLIR for the warps of a GPU -------------------===//
//
// The same kernels as for processors, of vectors of 32 f32, each of which lies over the 32 lanes of a warp. The warp is
// the worker: what is no vector, all lanes have. lib/Target/Nvidia makes PTX of it.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_KERNELS_NVIDIA_H
#define K2C_KERNELS_NVIDIA_H

#include "k2c/Kernels/Cpu.h"

namespace k2c {

/// emitKernel() of a tile of gpuTarget(), spread over warps, of which a CTA has `warps`. Null, with an error at the
/// module's location, when it has what cannot be spread.
mlir::OwningOpRef<mlir::ModuleOp> emitWarpKernel(mlir::MLIRContext *context, const KernelDesc &desc,
                                                 const TileConfig &tile, llvm::StringRef symbol, int64_t warps);

/// Spreads a module with one function of emitKernel().
mlir::LogicalResult spreadOverWarps(mlir::ModuleOp module, int64_t warps);

} // namespace k2c

#endif // K2C_KERNELS_NVIDIA_H

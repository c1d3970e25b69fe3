//===- Memory.h - What memory the lanes of a warp share --------------------------===//
#ifndef K2C_LIB_KERNELS_NVIDIA_MEMORY_H
#define K2C_LIB_KERNELS_NVIDIA_MEMORY_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace k2c::warp {

/// What a CTA may have without asking for more. (CUDA C++ Programming Guide, compute capabilities)
constexpr int64_t maxSharedBytes = 48 << 10;

/// The address of a load or store, plain or masked; null: `op` is none.
mlir::Value addressOf(mlir::Operation *op);
bool isStore(mlir::Operation *op);
/// Whether it is a vector that lies over the lanes, one element or more on each.
bool isOverLanes(mlir::Type type);
/// Whether `op` has to do with a vector over the lanes.
bool isSpread(mlir::Operation *op);

/// Pointers to shared memory.
struct SharedMemory {
  mlir::Value ofCta, ofWarp;
};

/// Where shared memory begins, `ofCta` bytes of the CTA and `ofWarp` of this one of its `warps`: pointers, at the
/// function's beginning. Fails, with an error, where a CTA has less.
mlir::FailureOr<SharedMemory> sharedMemory(mlir::ModuleOp module, mlir::LLVM::LLVMFuncOp function, int64_t ofCta,
                                           int64_t ofWarp, int64_t warps);

/// Stack space that lanes read of each other, and lists, become shared memory, a part of it for each of `warps`; then
/// lanes wait for each other before and behind each store to memory that is not a lane's own.
mlir::LogicalResult shareMemory(mlir::ModuleOp module, mlir::LLVM::LLVMFuncOp function, int64_t warps);

} // namespace k2c::warp

#endif // K2C_LIB_KERNELS_NVIDIA_MEMORY_H

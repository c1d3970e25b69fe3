//===- TouchAttr.h - Effects of kernels in the IR and in plain C++ --------===//
//
// The runtime form says of each argument of a kernel what it does to it: Effect as words of rt::Touch. The only place
// that converts.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_KERNELS_TOUCHATTR_H
#define K2C_KERNELS_TOUCHATTR_H

#include "dialects/Rt/Rt.h"
#include "k2c/Kernels/Effect.h"
#include "k2c/Kernels/KernelDesc.h"
#include "k2c/Kernels/TileConfig.h"

namespace k2c {

/// What the kernel of `desc` and `tile` does to the arguments of its launches, in their order.
mlir::ArrayAttr touchesAttr(mlir::MLIRContext *context, const KernelDesc &desc, const TileConfig &tile);

/// The effect of which `touches` is an element.
Effect effectOf(mlir::Attribute touch);

} // namespace k2c

#endif // K2C_KERNELS_TOUCHATTR_H

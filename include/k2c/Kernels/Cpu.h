//===- Cpu.h - KernelDesc -> MLIR for processors ---------------------------===//
//
// The third reading of a KernelDesc: code. A module holds one llvm.func `int32_t symbol(worker, args)` whose body is
// scf, arith, math, vector and llvm ops; lib/Target/Host lowers it to an object file. No globals, no calls, no memref.
// Structure is written once, for any vector length; a TileConfig chooses among instructions and changes no bit.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_KERNELS_CPU_H
#define K2C_KERNELS_CPU_H

#include "k2c/Kernels/TileConfig.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace k2c {

/// Loads the dialects that emitted kernels use.
void loadKernelDialects(mlir::MLIRContext &context);

/// The kernel as a module with the function `symbol`. `tile` must be legal for the kernel (isLegal). Null, with an
/// error at the module's location that names the kernel, when a description is beyond what the emitter knows.
mlir::OwningOpRef<mlir::ModuleOp> emitKernel(mlir::MLIRContext *context, const KernelDesc &desc, const TileConfig &tile,
                                             llvm::StringRef symbol);

/// What the module with the code of a kernel is called in a program; kernels that compute the same share it.
inline std::string codeName(const KernelDesc &desc) { return kernelSymbol(desc) + ".code"; }

/// What worker->variant counts, in order; the trace shows these names. At least one.
std::vector<std::string> variantNames(const KernelDesc &desc);

/// Bytes of worker->scratch that the kernel uses.
int64_t scratchBytes(const KernelDesc &desc, const TileConfig &tile);

} // namespace k2c

#endif // K2C_KERNELS_CPU_H

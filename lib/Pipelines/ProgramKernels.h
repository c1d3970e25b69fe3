//===- ProgramKernels.h - What a program launches, and how often ----------===//
#ifndef K2C_LIB_PIPELINES_PROGRAMKERNELS_H
#define K2C_LIB_PIPELINES_PROGRAMKERNELS_H

#include "k2c/Kernels/Describe.h"
#include "k2c/Planner/KernelTime.h"
#include "mlir/IR/BuiltinOps.h"

namespace k2c {

/// The kernels of a module in the scheduled form, in its order, all of which have a description.
std::vector<ProgramKernel> programKernels(mlir::ModuleOp module);

/// A kern.func as MLIR that names what it needs in full.
std::string descriptionText(kern::FuncOp kernel);

/// The code of kernels that compute the same.
struct KernelCode {
  std::string symbol;               ///< of the module that holds it
  std::vector<std::string> kernels; ///< names of all that share it, in the program's order
  std::string computes;             ///< their kern.funcs, as comments
  std::string function;             ///< of the module
  int64_t arguments = 0;            ///< that a launch gives it

  /// The module of that symbol in a module of the runtime form.
  mlir::ModuleOp in(mlir::ModuleOp runtime) const { return runtime.lookupSymbol<mlir::ModuleOp>(symbol); }
};

/// What emit-kernels will write for a module in the scheduled form, in its order.
std::vector<KernelCode> kernelCodes(mlir::ModuleOp module);

} // namespace k2c

#endif // K2C_LIB_PIPELINES_PROGRAMKERNELS_H

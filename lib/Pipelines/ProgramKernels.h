//===- ProgramKernels.h - What a program launches, and how often ----------===//
#ifndef K2C_LIB_PIPELINES_PROGRAMKERNELS_H
#define K2C_LIB_PIPELINES_PROGRAMKERNELS_H

#include "k2c/Kernels/Describe.h"
#include "k2c/Planner/KernelTime.h"
#include "mlir/IR/BuiltinOps.h"

namespace k2c {

/// The kernels of a module in the scheduled form, in its order, all of which have a description.
std::vector<ProgramKernel> programKernels(mlir::ModuleOp module);

} // namespace k2c

#endif // K2C_LIB_PIPELINES_PROGRAMKERNELS_H

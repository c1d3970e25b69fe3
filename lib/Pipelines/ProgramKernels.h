//===- ProgramKernels.h - What a program launches, and how often ----------===//
#ifndef K2C_LIB_PIPELINES_PROGRAMKERNELS_H
#define K2C_LIB_PIPELINES_PROGRAMKERNELS_H

#include "k2c/Conversion/WeightSlots.h"
#include "k2c/Planner/KernelTime.h"

namespace k2c {

/// The kernels of a module in the scheduled form, in its order.
std::vector<ProgramKernel> programKernels(mlir::ModuleOp module, const ProgramWeights &weights);

} // namespace k2c

#endif // K2C_LIB_PIPELINES_PROGRAMKERNELS_H

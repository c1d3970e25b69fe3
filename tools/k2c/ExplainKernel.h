//===- ExplainKernel.h - k2c explain --kernel -----------------------------===//
#ifndef K2C_TOOLS_K2C_EXPLAINKERNEL_H
#define K2C_TOOLS_K2C_EXPLAINKERNEL_H

#include "k2c/Pipelines/ExplainKernel.h"

namespace k2c {

/// Prints one kernel of a bundle; the exit code.
int printKernel(const ExplainKernelOptions &options, bool asJson);

} // namespace k2c

#endif // K2C_TOOLS_K2C_EXPLAINKERNEL_H

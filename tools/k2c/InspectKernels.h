//===- InspectKernels.h - k2c inspect --kernels ----------------------------===//
#ifndef K2C_TOOLS_K2C_INSPECTKERNELS_H
#define K2C_TOOLS_K2C_INSPECTKERNELS_H

#include <string>

namespace k2c {

/// Prints what the kernels of a GPU in `folder` came to; the exit code.
int printKernels(const std::string &folder, bool asJson);

} // namespace k2c

#endif // K2C_TOOLS_K2C_INSPECTKERNELS_H

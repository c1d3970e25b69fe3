//===- CubinName.h - What decides a cubin of the cache --------------------===//
#ifndef K2C_LIB_TARGET_NVIDIA_CUBINNAME_H
#define K2C_LIB_TARGET_NVIDIA_CUBINNAME_H

#include "k2c/Target/Nvidia.h"

namespace k2c {

/// A hash of the sources that run ptxas and look at its code.
extern const char *const cubinCheckHash;

/// The file of the text `ptx` in the cache. `checkHash`: cubinCheckHash, unless a test asks for that of other checks.
std::string cubinName(const std::string &ptx, const std::string &arch, const Ptxas &ptxas,
                      const std::optional<std::string> &nvdisasm, const std::string &checkHash);

} // namespace k2c

#endif // K2C_LIB_TARGET_NVIDIA_CUBINNAME_H

// The code of a bundle's kernels: a file of PTX each, which the driver compiles when it is loaded.
#ifndef K2RT_DEVICE_CUDA_MODULES_H
#define K2RT_DEVICE_CUDA_MODULES_H

#include "device/cuda/Driver.h"
#include "program/FileList.h"
#include "program/Manifest.h"
#include <vector>

namespace k2c::runtime {

class Modules {
public:
  /// Loads `folder`/ptx/<hash>.ptx of each kernel, whose bytes have the hash that files.json says. What the driver
  /// cannot compile is named with the first line of its log.
  static Expected<Modules> load(const Driver &driver, const std::string &folder, const Manifest &manifest);

  /// By id.
  CUkernel kernel(size_t id) const { return kernels[id]; }

private:
  std::vector<CodeLibrary> libraries; ///< of different hashes
  std::vector<CUkernel> kernels;
};

} // namespace k2c::runtime

#endif

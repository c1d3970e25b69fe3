// The code of a bundle's kernels: a cubin each, which the driver takes as it is, or PTX, which it compiles.
#ifndef K2RT_DEVICE_CUDA_MODULES_H
#define K2RT_DEVICE_CUDA_MODULES_H

#include "base/GpuHandles.h"
#include "program/FileList.h"
#include "program/Manifest.h"
#include <vector>

namespace k2c::runtime {

class Modules {
public:
  /// Loads `folder`/cubin/<hash>.cubin of each kernel where the bundle has them for this very device, until the driver
  /// has no use for one; else `folder`/ptx/<hash>.ptx. Their bytes have the hash that files.json says. What the driver
  /// cannot load is named with the first line of its log.
  static Expected<Modules> load(const Driver &driver, const GpuFacts &gpu, const std::string &folder,
                                const Manifest &manifest);

  /// By id.
  CUkernel kernel(size_t id) const { return kernels[id]; }
  /// Why the driver compiled PTX; "": it did not.
  const std::string &whyCompiled() const { return reason; }

private:
  std::vector<CodeLibrary> libraries; ///< of different hashes
  std::vector<CUkernel> kernels;
  std::string reason;
};

} // namespace k2c::runtime

#endif

// What manifest.json says of the GPU that a bundle's kernels were compiled for.
#ifndef K2RT_PROGRAM_DEVICEFACTS_H
#define K2RT_PROGRAM_DEVICEFACTS_H

#include "base/JsonFields.h"
#include "k2rt/reserve.h"
#include <cstdint>
#include <optional>
#include <string>

namespace k2c::runtime {

/// What launches look like, and what runs them.
struct DeviceFacts {
  std::string arch;             ///< sm_90a
  int64_t major = 0, minor = 0; ///< the compute capability that it stands for
  bool isExact = false;         ///< no later capability runs its PTX
  bool hasCubins = false;       ///< beside the PTX, for this capability alone
  std::string ptxas;            ///< version of that which made them
  int64_t threads = 0;          ///< of a CTA
  int64_t workersPerCta = 0;    ///< which divide the items of a launch
  int64_t ctas = 0;             ///< of a launch, at most
  int64_t memory = 0;           ///< bytes that the device of the topology has
  int64_t referenceBytes = 0;   ///< of the weights, those that are a checkpoint's own bytes
  int64_t reserve = 0;          ///< bytes of its memory beside weights, cache, arena, scratch and logits

  int64_t workers() const { return ctas * workersPerCta; }
};

/// Reads the field `device` of a manifest's root, of a program of `ranks` ranks; none where it has none.
std::optional<DeviceFacts> readDevice(const JsonFields &root, int64_t ranks, int64_t scratchPerWorker,
                                      const k2rt_limits &limits);

/// Reads how many arguments the launches of a kernel on a GPU have.
void readLaunch(const JsonFields &kernel, int64_t &arguments);

} // namespace k2c::runtime

#endif

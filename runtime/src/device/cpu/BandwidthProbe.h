// How fast the workers of a device read memory: the bound of decoding, measured beside it.
#ifndef K2RT_DEVICE_CPU_BANDWIDTHPROBE_H
#define K2RT_DEVICE_CPU_BANDWIDTHPROBE_H

#include "device/cpu/CpuDevice.h"

namespace k2c::runtime {

/// What the probe saw.
struct Bandwidth {
  double bytesPerSecond = 0; ///< of the fastest pass
  int64_t bytes = 0;         ///< read in each pass: all that the device holds
  int64_t cacheBytes = 0;    ///< second- and third-level caches of the processors; 0: not known

  /// The passes read caches, not memory: what was measured is no bound of a larger program.
  bool isOfCaches() const { return bytes <= cacheBytes; }
};

/// The fastest of a few passes over the memory that the device holds, all workers reading side by side. Takes no
/// memory of its own, so that a measured run stays within the certificate.
Bandwidth probeBandwidth(CpuDevice &device);

} // namespace k2c::runtime

#endif

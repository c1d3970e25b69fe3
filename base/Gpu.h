// The GPUs that NVIDIA's driver has, as it states them, before a context is made on any.
#ifndef K2C_BASE_GPU_H
#define K2C_BASE_GPU_H

#include "base/Driver.h"
#include <cstdint>
#include <string>

namespace k2c {

/// What the driver says of a device and of itself.
struct GpuFacts {
  CUdevice device = 0;
  int32_t ordinal = 0;
  std::string name;
  int driverVersion = 0; ///< 12040: of CUDA 12.4, the latest that it knows
  int major = 0, minor = 0;
  int64_t memory = 0; ///< bytes
};

/// What devices of the emulated driver are called, before their architecture.
inline constexpr char emulatedGpu[] = "k2c emulated ";

/// How many devices the driver has. Refuses a driver as readGpu does.
Expected<int32_t> countGpus(const Driver &driver);

/// Asks for device `ordinal`. Refuses a driver that is older than the entry points that k2c uses, and one without that
/// device.
Expected<GpuFacts> readGpu(const Driver &driver, int32_t ordinal);

/// "CUDA 12.4".
std::string versionText(int version);

} // namespace k2c

#endif

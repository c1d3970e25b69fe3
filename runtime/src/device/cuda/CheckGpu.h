// Whether a GPU is one that a bundle was compiled for, and has memory for it.
#ifndef K2RT_DEVICE_CUDA_CHECKGPU_H
#define K2RT_DEVICE_CUDA_CHECKGPU_H

#include "base/GpuHandles.h"
#include "program/Manifest.h"
#include <cstdint>

namespace k2c::runtime {

/// Refuses a device that does not run the code of the bundle.
Status checkGpu(const GpuFacts &gpu, const DeviceFacts &wanted);

/// What a bundle takes of device memory, by the lines of its certificate.
struct DeviceNeeds {
  int64_t weights = 0, cache = 0, arena = 0, workspace = 0, reserve = 0;
  int64_t captures = 0; ///< beside the certificate, of an inspection command

  int64_t total() const { return weights + cache + arena + workspace + reserve + captures; }
};

/// Refuses what the memory of the device, whose context is current, cannot hold, or what others have left of it.
Status checkMemory(const Driver &driver, const GpuFacts &gpu, const DeviceNeeds &needs);

} // namespace k2c::runtime

#endif

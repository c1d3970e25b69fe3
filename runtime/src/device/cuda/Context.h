// A GPU, whether it is the one that a bundle was compiled for, and the context in which everything on it lives.
#ifndef K2RT_DEVICE_CUDA_CONTEXT_H
#define K2RT_DEVICE_CUDA_CONTEXT_H

#include "base/Gpu.h"
#include "device/cuda/Driver.h"
#include "program/Manifest.h"
#include <cstdint>
#include <string>

namespace k2c::runtime {

/// Refuses a device that does not run the code of the bundle.
Status checkGpu(const GpuFacts &gpu, const DeviceFacts &wanted);

/// What a bundle takes of device memory, by the lines of its certificate.
struct DeviceNeeds {
  int64_t weights = 0, cache = 0, arena = 0, workspace = 0, reserve = 0;
  int64_t captures = 0; ///< beside the certificate, of an inspection command

  int64_t total() const { return weights + cache + arena + workspace + reserve + captures; }
};

/// The primary context of a device, kept. Move-only.
class Context {
public:
  /// `driver` outlives it.
  static Expected<Context> retain(const Driver &driver, const GpuFacts &gpu);
  Context(Context &&other) noexcept;
  Context &operator=(Context &&) = delete;
  ~Context();

  /// The calls of this thread are of this context from now on.
  Status makeCurrent() const;
  /// Refuses what the memory of the device cannot hold, or what others have left of it.
  Status checkMemory(const DeviceNeeds &needs) const;
  const GpuFacts &gpu() const { return facts; }

private:
  Context(const Driver &driver, GpuFacts facts, CUcontext context)
      : driver(&driver), facts(std::move(facts)), context(context) {}

  const Driver *driver;
  GpuFacts facts;
  CUcontext context;
};

} // namespace k2c::runtime

#endif

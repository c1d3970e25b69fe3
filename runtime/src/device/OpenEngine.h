// An engine on whatever a bundle was compiled for: the choice that all who run one share.
#ifndef K2RT_DEVICE_OPENENGINE_H
#define K2RT_DEVICE_OPENENGINE_H

#include "device/cpu/CpuDevice.h"
#include "device/cuda/CudaDevice.h"
#include "engine/Engine.h"
#include <memory>
#include <optional>

namespace k2c::runtime {

/// What a user says of the devices of either kind. What is not said is none or zero.
struct DeviceOptions {
  CpuOptions onCpu;
  std::string driver; ///< of a GPU, as CudaOptions has it
  std::vector<int64_t> devices;
  std::optional<uint64_t> emulatedSeed;
  std::optional<std::chrono::nanoseconds> deadline;
  CaptureChoice captures;                     ///< what a command will capture
  std::optional<Error> *unreturned = nullptr; ///< of a GPU, as CudaOptions has it
};

/// An engine, and the device it has.
struct OpenedEngine {
  std::unique_ptr<Engine> engine;
  CpuDevice *cpu = nullptr; ///< the engine's: one of the two
  CudaDevice *cuda = nullptr;
};

/// Refuses what is said of devices of another kind than the bundle is for, by the flag's name.
Status checkDeviceOptions(const Manifest &manifest, const DeviceOptions &options);

/// Of a manifest with a device, after checkDeviceOptions.
CudaOptions onCudaOf(const DeviceOptions &options);

/// An engine of a bundle of one rank, which outlives it.
Expected<OpenedEngine> openEngine(const Bundle &bundle, const DeviceOptions &options, const EngineOptions &engine);

} // namespace k2c::runtime

#endif

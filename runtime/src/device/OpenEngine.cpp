// The manifest says which kind it is; a user only says how.
#include "device/OpenEngine.h"

namespace k2c::runtime {

Status checkDeviceOptions(const Manifest &manifest, const DeviceOptions &options) {
  const std::pair<const char *, bool> ofGpus[] = {{"--driver", !options.driver.empty()},
                                                  {"--device", !options.devices.empty()},
                                                  {"--emulate-seed", options.emulatedSeed.has_value()}};
  for (const auto &[flag, isSaid] : ofGpus)
    if (isSaid && !manifest.device)
      return Error{flag, "is of GPUs, and the bundle is for processors", "leave it out"};
  if (!manifest.device)
    return {};
  if (options.onCpu.threads != 0)
    return Error{"--threads", "is of processors, and the bundle is for a GPU, " + manifest.device->arch,
                 "leave it out"};
  if (options.devices.size() > 1)
    return Error{"--device", "names " + std::to_string(options.devices.size()) + " devices, the program has 1 rank",
                 "name one"};
  if (options.emulatedSeed && options.driver != emulatedDriver)
    return Error{"--emulate-seed", "is of the emulated driver", "add --driver emulated"};
  return {};
}

CudaOptions onCudaOf(const DeviceOptions &options) {
  CudaOptions onCuda;
  onCuda.driver = options.driver;
  onCuda.device = options.devices.empty() ? 0 : static_cast<int32_t>(options.devices[0]);
  onCuda.emulatedSeed = options.emulatedSeed;
  onCuda.deadline = options.deadline;
  onCuda.trust = options.onCpu.trust;
  onCuda.captures.choice = options.captures;
  onCuda.unreturned = options.unreturned;
  return onCuda;
}

Expected<OpenedEngine> openEngine(const Bundle &bundle, const DeviceOptions &options, const EngineOptions &chosen) {
  if (Status fits = checkDeviceOptions(bundle.manifest, options); !fits)
    return fits.takeError();
  if (!bundle.manifest.device) {
    Expected<CpuEngine> made = CpuEngine::create(bundle, options.onCpu, chosen);
    if (!made)
      return made.takeError();
    return OpenedEngine{std::move(made->engine), made->device, nullptr};
  }
  CudaOptions onCuda = onCudaOf(options);
  onCuda.captures.counts = chosen.countsExperts || chosen.countsTraffic;
  Expected<std::unique_ptr<CudaDevice>> device = CudaDevice::create(bundle, onCuda);
  if (!device)
    return device.takeError();
  CudaDevice *const kept = device->get();
  Expected<std::unique_ptr<Engine>> made = Engine::create(bundle, std::move(*device), chosen);
  if (!made)
    return made.takeError();
  return OpenedEngine{std::move(*made), nullptr, kept};
}

} // namespace k2c::runtime

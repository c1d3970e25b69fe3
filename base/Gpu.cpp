// What a device is told apart by is asked of the driver alone; its rates are asked for by who plans for it.
#include "base/Gpu.h"
#include "base/Utf8.h"

namespace k2c {

static constexpr int minVersion = 12000; // of cuLibraryLoadData and cuGraphExecUpdate

std::string versionText(int version) {
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// Starts the driver. Refuses one that is too old.
static Status start(const Driver &driver, int &version) {
  if (Status done = driver.call<&Cuda::cuInit>(0u); !done)
    return done;
  if (Status done = driver.call<&Cuda::cuDriverGetVersion>(&version); !done)
    return done;
  if (version >= minVersion)
    return {};
  return Error{K2RT_DEVICE_FAILED, shortened(driver.file()),
               "the driver is of " + versionText(version) + ", k2c needs " + versionText(minVersion) +
                   " or a later one",
               "install a later driver"};
}

Expected<int32_t> countGpus(const Driver &driver) {
  int version = 0, count = 0;
  Status done = start(driver, version);
  if (done)
    done = driver.call<&Cuda::cuDeviceGetCount>(&count);
  if (!done)
    return done.takeError();
  return count;
}

static Status findDevice(const Driver &driver, GpuFacts &gpu) {
  int count = 0;
  if (Status asked = driver.call<&Cuda::cuDeviceGetCount>(&count); !asked)
    return asked;
  if (gpu.ordinal < count)
    return driver.call<&Cuda::cuDeviceGet>(&gpu.device, gpu.ordinal);
  return Error{K2RT_DEVICE_FAILED, "device " + std::to_string(gpu.ordinal),
               "the driver has " + std::to_string(count) + (count == 1 ? " device" : " devices") + ", numbered from 0",
               count > 0 ? "choose another with --device" : ""};
}

Expected<GpuFacts> readGpu(const Driver &driver, int32_t ordinal) {
  GpuFacts gpu;
  gpu.ordinal = ordinal;
  char name[128] = "";
  size_t bytes = 0;
  Status done = start(driver, gpu.driverVersion);
  if (done)
    done = findDevice(driver, gpu);
  if (done)
    done = driver.call<&Cuda::cuDeviceGetName>(name, static_cast<int>(sizeof name - 1), gpu.device);
  if (done)
    done = driver.call<&Cuda::cuDeviceTotalMem_v2>(&bytes, gpu.device);
  if (done)
    done =
        driver.call<&Cuda::cuDeviceGetAttribute>(&gpu.major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu.device);
  if (done)
    done =
        driver.call<&Cuda::cuDeviceGetAttribute>(&gpu.minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu.device);
  if (!done)
    return done.takeError();
  gpu.name = name;
  gpu.memory = static_cast<int64_t>(bytes);
  return gpu;
}

} // namespace k2c

// A library stays open for as long as what it has made lives: who keeps a handle keeps the driver longer.
#include "device/cuda/Driver.h"
#include "base/FormatBytes.h"
#include "base/Utf8.h"
#include <dlfcn.h>

namespace k2c::runtime {

void Driver::Closer::operator()(void *handle) const { ::dlclose(handle); }

Expected<std::unique_ptr<Driver>> Driver::open(const std::string &file) {
  std::unique_ptr<Driver> driver(new Driver);
  driver->name = file;
  driver->handle.reset(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!driver->handle) {
    const char *reason = ::dlerror();
    return Error{K2RT_DEVICE_FAILED, shortened(file),
                 "the driver cannot be loaded: " + shortened(reason ? reason : "", maxQuoted),
                 "install NVIDIA's driver, or name another library with --driver FILE"};
  }
  const std::pair<const char *, void **> symbols[] = {
#define K2C_CUDA(name, parameters) {#name, reinterpret_cast<void **>(&driver->cuda.name)},
#include "base/CudaDriver.def"
  };
  for (const auto &[symbol, entry] : symbols)
    if (*entry = ::dlsym(driver->handle.get(), symbol); !*entry)
      return Error{K2RT_DEVICE_FAILED, shortened(file), std::string("the driver has no ") + symbol,
                   "install a driver for CUDA 12.0 or a later one"};
  return driver;
}

Error Driver::failure(const char *call, CUresult result) const {
  const char *error = nullptr, *text = nullptr;
  if (cuda.cuGetErrorName(result, &error) != CUDA_SUCCESS || !error)
    error = "an error that the driver does not name";
  if (cuda.cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
    text = "";
  return {K2RT_DEVICE_FAILED, call,
          "failed with " + shortened(error) + " (" + std::to_string(static_cast<int>(result)) + ")" +
              (*text ? ", " + shortened(text) : ""),
          ""};
}

/// `made` says what and how much of it could not be made.
template <class Made, auto create, class Handle, class... Arguments>
static Expected<Made> make(const Driver &driver, const std::string &made, Handle handle, Arguments... arguments) {
  Status done = driver.call<create>(&handle, arguments...);
  if (done)
    return Made(driver, handle);
  Error error = done.takeError();
  error.message += made;
  return error;
}

static std::string named(const char *purpose, int64_t bytes) {
  return std::string(" on ") + formatBytes(bytes) + " for " + purpose;
}

Expected<DeviceBytes> allocateOnDevice(const Driver &driver, int64_t bytes, const char *purpose) {
  if (bytes == 0)
    return DeviceBytes();
  return make<DeviceBytes, &Cuda::cuMemAlloc_v2>(driver, named(purpose, bytes), CUdeviceptr(),
                                                 static_cast<size_t>(bytes));
}

Expected<PinnedBytes> allocatePinned(const Driver &driver, int64_t bytes, const char *purpose) {
  if (bytes == 0)
    return PinnedBytes();
  return make<PinnedBytes, &Cuda::cuMemHostAlloc>(driver, named(purpose, bytes), static_cast<void *>(nullptr),
                                                  static_cast<size_t>(bytes), 0u);
}

Expected<Stream> createStream(const Driver &driver) {
  return make<Stream, &Cuda::cuStreamCreate>(driver, "", CUstream(), CU_STREAM_NON_BLOCKING);
}

Expected<Event> createEvent(const Driver &driver) {
  return make<Event, &Cuda::cuEventCreate>(driver, "", CUevent(), CU_EVENT_DISABLE_TIMING);
}

} // namespace k2c::runtime

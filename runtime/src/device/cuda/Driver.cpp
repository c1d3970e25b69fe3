#include "device/cuda/Driver.h"
#include "base/FormatBytes.h"

namespace k2c::runtime {

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

Expected<Event> createTimedEvent(const Driver &driver) {
  return make<Event, &Cuda::cuEventCreate>(driver, "", CUevent(), 0u);
}

} // namespace k2c::runtime

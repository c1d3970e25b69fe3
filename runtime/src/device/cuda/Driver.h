// What entry points of the driver (base/Driver.h) make and give back: memory, streams, events, code, graphs.
#ifndef K2RT_DEVICE_CUDA_DRIVER_H
#define K2RT_DEVICE_CUDA_DRIVER_H

#include "base/Driver.h"
#include <utility>

namespace k2c::runtime {

/// What an entry point has made, and `release` gives back. Move-only.
template <class Handle, auto release> class Owned {
public:
  Owned() = default;
  Owned(const Driver &driver, Handle handle) : driver(&driver), handle(handle) {}
  Owned(Owned &&other) noexcept : driver(other.driver), handle(std::exchange(other.handle, Handle())) {}
  Owned &operator=(Owned &&other) noexcept {
    std::swap(driver, other.driver);
    std::swap(handle, other.handle);
    return *this;
  }
  ~Owned() {
    if (handle != Handle() && !driver->abandoned())
      (driver->entries().*release)(handle);
  }
  Handle get() const { return handle; }

private:
  const Driver *driver = nullptr;
  Handle handle = Handle();
};

using DeviceBytes = Owned<CUdeviceptr, &Cuda::cuMemFree_v2>;
using PinnedBytes = Owned<void *, &Cuda::cuMemFreeHost>;
using Stream = Owned<CUstream, &Cuda::cuStreamDestroy_v2>;
using Event = Owned<CUevent, &Cuda::cuEventDestroy_v2>;
using CodeLibrary = Owned<CUlibrary, &Cuda::cuLibraryUnload>;
using Graph = Owned<CUgraph, &Cuda::cuGraphDestroy>;
using GraphExecutable = Owned<CUgraphExec, &Cuda::cuGraphExecDestroy>;

/// Memory of the device, or of the host where the device reads and writes it at full speed; none of 0 bytes.
/// `purpose` names it in the failure.
Expected<DeviceBytes> allocateOnDevice(const Driver &driver, int64_t bytes, const char *purpose);
Expected<PinnedBytes> allocatePinned(const Driver &driver, int64_t bytes, const char *purpose);
Expected<Stream> createStream(const Driver &driver);
Expected<Event> createEvent(const Driver &driver);
/// One that cuEventElapsedTime takes.
Expected<Event> createTimedEvent(const Driver &driver);

} // namespace k2c::runtime

#endif

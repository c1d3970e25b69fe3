// What entry points of the driver (base/Driver.h) make and give back: a context, memory, streams, events, code, graphs.
#ifndef K2C_BASE_GPUHANDLES_H
#define K2C_BASE_GPUHANDLES_H

#include "base/Driver.h"
#include "base/Gpu.h"
#include <functional>
#include <utility>

namespace k2c {

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
    if (handle != Handle())
      driver->giveBack<release>(handle);
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
using GraphExecutable = Owned<CUgraphExec, &Cuda::cuGraphExecDestroy>;

/// The primary context of a device, kept, in which everything on it lives. Move-only.
class GpuContext {
public:
  /// `driver` outlives it.
  static Expected<GpuContext> retain(const Driver &driver, const GpuFacts &gpu);
  GpuContext(GpuContext &&other) noexcept;
  GpuContext &operator=(GpuContext &&) = delete;
  ~GpuContext();

  /// The calls of this thread are of this context from now on.
  Status makeCurrent() const;
  const GpuFacts &gpu() const { return facts; }

private:
  GpuContext(const Driver &driver, GpuFacts facts, CUcontext context)
      : driver(&driver), facts(std::move(facts)), context(context) {}

  const Driver *driver;
  GpuFacts facts;
  CUcontext context;
};

/// Memory of the device, or of the host where the device reads and writes it at full speed; none of 0 bytes.
/// `purpose` names it in the failure.
Expected<DeviceBytes> allocateOnDevice(const Driver &driver, int64_t bytes, const char *purpose);
Expected<PinnedBytes> allocatePinned(const Driver &driver, int64_t bytes, const char *purpose);
Expected<Stream> createStream(const Driver &driver);
Expected<Event> createEvent(const Driver &driver);
/// One that cuEventElapsedTime takes.
Expected<Event> createTimedEvent(const Driver &driver);

/// What the driver made of a cubin or a PTX text.
struct LoadedCode {
  CUresult result = CUDA_SUCCESS;
  CodeLibrary library; ///< none where it failed
  std::string said;    ///< the first line of its log then; may be ""

  /// The failure, on the code that is called `what`.
  Error failure(const Driver &driver, const std::string &what) const;
};
LoadedCode loadCode(const Driver &driver, const std::string &code);
/// The kernel `name` of a library, which is called `what` in the failure.
Expected<CUkernel> kernelNamed(const Driver &driver, const CodeLibrary &library, const std::string &name,
                               const std::string &what);

/// A launch of `ctas` CTAs.
struct KernelLaunch {
  CUkernel kernel = nullptr;
  int64_t ctas = 1, threads = 1;
  void **parameters = nullptr; ///< an address each
};
Status enqueueKernel(const Driver &driver, const KernelLaunch &launch, CUstream stream);

/// What `enqueue` enqueues on `stream`, and on streams that wait for it, as a graph.
Expected<GraphExecutable> captureGraph(const Driver &driver, CUstream stream, const std::function<Status()> &enqueue);

} // namespace k2c

#endif

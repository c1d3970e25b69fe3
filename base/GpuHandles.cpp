// While a stream is captured, a launch is a node. A failure in the middle ends the capture all the same: the stream and
// what it captured are given back.
#include "base/GpuHandles.h"
#include "base/FormatBytes.h"
#include "base/Utf8.h"

namespace k2c {

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

Expected<GpuContext> GpuContext::retain(const Driver &driver, const GpuFacts &gpu) {
  CUcontext context = nullptr;
  if (Status kept = driver.call<&Cuda::cuDevicePrimaryCtxRetain>(&context, gpu.device); !kept)
    return kept.takeError();
  GpuContext made(driver, gpu, context);
  if (Status current = made.makeCurrent(); !current)
    return current.takeError();
  return made;
}

GpuContext::GpuContext(GpuContext &&other) noexcept
    : driver(other.driver), facts(std::move(other.facts)), context(std::exchange(other.context, nullptr)) {}

GpuContext::~GpuContext() {
  if (context)
    driver->giveBack<&Cuda::cuDevicePrimaryCtxRelease_v2>(facts.device);
}

Status GpuContext::makeCurrent() const { return driver->call<&Cuda::cuCtxSetCurrent>(context); }

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

LoadedCode loadCode(const Driver &driver, const std::string &code) {
  constexpr size_t logBytes = 4096;
  std::string log(logBytes, '\0');
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log.data(), reinterpret_cast<void *>(logBytes)};
  CUlibrary library = nullptr;
  LoadedCode loaded;
  loaded.result = driver.entries().cuLibraryLoadData(&library, code.c_str(), options, values, 2, nullptr, nullptr, 0);
  if (loaded.result == CUDA_SUCCESS)
    loaded.library = CodeLibrary(driver, library);
  else
    loaded.said = log.substr(0, log.find_first_of(std::string("\n\0", 2)));
  return loaded;
}

Error LoadedCode::failure(const Driver &driver, const std::string &what) const {
  Error error = driver.failure(callName<&Cuda::cuLibraryLoadData>, result);
  error.message += " on " + what + (said.empty() ? "" : ": " + shortened(said, maxQuoted));
  return error;
}

Expected<CUkernel> kernelNamed(const Driver &driver, const CodeLibrary &library, const std::string &name,
                               const std::string &what) {
  CUkernel kernel = nullptr;
  Status has = driver.call<&Cuda::cuLibraryGetKernel>(&kernel, library.get(), name.c_str());
  if (has)
    return kernel;
  Error error = has.takeError();
  error.message += " on entry " + shortened(name) + " of " + what;
  return error;
}

Status enqueueKernel(const Driver &driver, const KernelLaunch &launch, CUstream stream) {
  CUlaunchConfig config = {};
  config.gridDimX = static_cast<unsigned>(launch.ctas);
  config.blockDimX = static_cast<unsigned>(launch.threads);
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  return driver.call<&Cuda::cuLaunchKernelEx>(static_cast<const CUlaunchConfig *>(&config),
                                              reinterpret_cast<CUfunction>(launch.kernel), launch.parameters, nullptr);
}

Expected<GraphExecutable> captureGraph(const Driver &driver, CUstream stream, const std::function<Status()> &enqueue) {
  if (Status begun = driver.call<&Cuda::cuStreamBeginCapture_v2>(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); !begun)
    return begun.takeError();
  Status captured = enqueue();
  CUgraph made = nullptr;
  Status ended = driver.call<&Cuda::cuStreamEndCapture>(stream, &made);
  const Owned<CUgraph, &Cuda::cuGraphDestroy> graph(driver, made);
  if (!captured)
    return captured.takeError();
  if (!ended)
    return ended.takeError();
  return make<GraphExecutable, &Cuda::cuGraphInstantiateWithFlags>(driver, "", CUgraphExec(), graph.get(), 0ull);
}

} // namespace k2c

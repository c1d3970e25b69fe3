// A driver that tests play: it has every entry point, counts calls, makes one of them fail, knows what it made and was
// not given back, and runs C functions as kernels. Memory of its device cannot be read outside of its own calls.
//
// What it is to do comes from fake_cuda_set, in tests that call it, or from the environment, in those that start a
// program: K2C_FAKE_CUDA="major=8,hang=1,fail=cuMemAlloc_v2:2:2".
#include "base/CudaDriver.h"
#include "fake/FakeCudaKernels.h"
#include "fake/FakeCudaState.h"
#include "k2rt/program.h"
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <utility>

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

template <class T> T make() {
  auto *made = new char;
  state().alive.insert(made);
  return reinterpret_cast<T>(made);
}

template <class T> CUresult giveBack(T handle) {
  if (state().alive.erase(handle) == 0)
    return CUDA_ERROR_INVALID_HANDLE;
  delete reinterpret_cast<const char *>(handle);
  return CUDA_SUCCESS;
}

void openMemory(bool isOpen) {
  for (const auto &[base, bytes] : state().device)
    ::mprotect(base, bytes, isOpen ? PROT_READ | PROT_WRITE : PROT_NONE);
}

bool isOnDevice(const char *at, size_t bytes) {
  auto next = state().device.upper_bound(const_cast<char *>(at));
  if (next == state().device.begin())
    return false;
  const auto &[base, size] = *--next;
  return at >= base && at + bytes <= base + size;
}

void perform(const Operation &operation) {
  if (operation.kind == Operation::kernel)
    fake_cuda_run(operation.name.c_str(), operation.launch.data(), operation.arguments.data(), operation.workers);
  else if (operation.kind == Operation::set)
    std::memset(operation.to, operation.value, operation.bytes);
  else
    std::memcpy(operation.to, operation.from, operation.bytes);
}

void performAll(const std::vector<Operation> &operations) {
  openMemory(true);
  for (const Operation &operation : operations)
    perform(operation);
  openMemory(false);
}

CUresult enqueue(Operation operation) {
  if (operation.kind != Operation::kernel &&
      !isOnDevice(operation.kind == Operation::toHost ? operation.from : operation.to, operation.bytes))
    return CUDA_ERROR_INVALID_VALUE;
  if (state().capturing) {
    state().capturing->push_back(std::move(operation));
    return CUDA_SUCCESS;
  }
  openMemory(true);
  perform(operation);
  openMemory(false);
  return CUDA_SUCCESS;
}

void setFromEnvironment() {
  const char *text = std::getenv("K2C_FAKE_CUDA");
  for (std::string rest = text ? text : ""; !rest.empty();) {
    const std::string word = rest.substr(0, rest.find(','));
    rest.erase(0, word.size() + 1);
    const std::string key = word.substr(0, word.find('=')), value = word.substr(key.size() + 1);
    if (key == "fail") {
      state().failing = value.substr(0, value.find(':'));
      std::sscanf(value.c_str() + state().failing.size(), ":%d:%d", &state().failingAt, &state().error);
    } else {
      state().settings[key] = std::atol(value.c_str());
    }
  }
}

} // namespace

FAKE_EXPORT int fake_cuda_alive() { return static_cast<int>(state().alive.size()) + state().contexts; }
FAKE_EXPORT int fake_cuda_calls(const char *name) { return state().calls[name]; }
FAKE_EXPORT void fake_cuda_set(const char *key, long value) { state().settings[key] = value; }
FAKE_EXPORT void fake_cuda_fail(const char *name, int at, int error) {
  state().failing = name, state().failingAt = at, state().error = error;
}
/// What a driver that was abandoned has left stays reachable: leaks are others.
FAKE_EXPORT void fake_cuda_reset() {
  static auto *const left = new std::set<const void *>;
  left->merge(state().alive);
  state() = State();
}

FAKE_EXPORT CUresult cuInit(unsigned) {
  FAKE_ENTRY(cuInit);
  setFromEnvironment();
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuDriverGetVersion(int *version) {
  FAKE_ENTRY(cuDriverGetVersion);
  *version = static_cast<int>(state().settings["version"]);
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuGetErrorName(CUresult error, const char **name) {
  FAKE_ENTRY(cuGetErrorName);
  switch (error) {
#define K2C_CUDA_ERROR(name_, number, text)                                                                            \
  case name_:                                                                                                          \
    *name = #name_;                                                                                                    \
    return CUDA_SUCCESS;
#include "base/CudaErrors.def"
  }
  return CUDA_ERROR_INVALID_VALUE;
}
FAKE_EXPORT CUresult cuDeviceGetCount(int *count) {
  FAKE_ENTRY(cuDeviceGetCount);
  *count = static_cast<int>(state().settings["devices"]);
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  FAKE_ENTRY(cuDeviceGet);
  *device = ordinal;
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuDeviceGetName(char *name, int bytes, CUdevice) {
  FAKE_ENTRY(cuDeviceGetName);
  std::strncpy(name, "Fake GPU", static_cast<size_t>(bytes));
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice) {
  FAKE_ENTRY(cuDeviceGetAttribute);
  *value = static_cast<int>(attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? state().settings["major"]
                            : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
                                ? state().settings["minor"]
                                : state().settings["attribute" + std::to_string(attribute)]);
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice) {
  FAKE_ENTRY(cuDeviceTotalMem_v2);
  *bytes = static_cast<size_t>(state().settings["total"]);
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice) {
  FAKE_ENTRY(cuDevicePrimaryCtxRetain);
  ++state().contexts;
  *context = reinterpret_cast<CUcontext>(&state());
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  --state().contexts;
  FAKE_ENTRY(cuDevicePrimaryCtxRelease_v2);
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuCtxSetCurrent(CUcontext) {
  FAKE_ENTRY(cuCtxSetCurrent);
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuCtxSynchronize() {
  FAKE_ENTRY(cuCtxSynchronize);
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuMemGetInfo_v2(size_t *free, size_t *total) {
  FAKE_ENTRY(cuMemGetInfo_v2);
  *free = static_cast<size_t>(state().settings["free"]);
  *total = static_cast<size_t>(state().settings["total"]);
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  FAKE_ENTRY(cuMemAlloc_v2);
  if (bytes == 0 || state().launched) // of a device whose graphs run
    return CUDA_ERROR_INVALID_VALUE;
  const size_t size = (bytes + 4095) / 4096 * 4096;
  void *made = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  state().device[static_cast<char *>(made)] = size;
  state().alive.insert(made);
  *address = reinterpret_cast<CUdeviceptr>(made);
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  auto *made = reinterpret_cast<char *>(address);
  if (state().alive.erase(made) == 0)
    return CUDA_ERROR_INVALID_VALUE;
  ::munmap(made, state().device[made]);
  state().device.erase(made);
  FAKE_ENTRY(cuMemFree_v2);
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  FAKE_ENTRY(cuMemHostAlloc);
  if (bytes == 0 || state().launched)
    return CUDA_ERROR_INVALID_VALUE;
  *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  state().alive.insert(*address);
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuMemFreeHost(void *address) {
  if (state().alive.erase(address) == 0)
    return CUDA_ERROR_INVALID_VALUE;
  std::free(address);
  FAKE_ENTRY(cuMemFreeHost);
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream) {
  FAKE_ENTRY(cuMemcpyHtoDAsync_v2);
  state().told |= state().launched && bytes == sizeof(int32_t);
  return enqueue({Operation::toDevice, reinterpret_cast<char *>(to), static_cast<const char *>(from), bytes});
}
FAKE_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream) {
  FAKE_ENTRY(cuMemcpyDtoHAsync_v2);
  return enqueue({Operation::toHost, static_cast<char *>(to), reinterpret_cast<const char *>(from), bytes});
}
FAKE_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream) {
  FAKE_ENTRY(cuMemcpyDtoDAsync_v2);
  return enqueue({Operation::toDevice, reinterpret_cast<char *>(to), reinterpret_cast<const char *>(from), bytes});
}
FAKE_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream) {
  FAKE_ENTRY(cuMemsetD8Async);
  Operation operation{Operation::set, reinterpret_cast<char *>(to), nullptr, bytes};
  operation.value = value;
  return enqueue(std::move(operation));
}
FAKE_EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned) {
  FAKE_ENTRY(cuStreamCreate);
  *stream = make<CUstream>();
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  const CUresult known = giveBack(stream);
  FAKE_ENTRY(cuStreamDestroy_v2);
  return known;
}
/// hang: 1: for ever, 2: until kernels are told to end, 3: a few times. endless: for ever from that question on.
static CUresult progressOf(const char *call) {
  const long hang = state().settings["hang"], endless = state().settings["endless"];
  if (endless > 0 && state().calls[call] >= endless)
    return CUDA_ERROR_NOT_READY;
  if (state().late && !state().told)
    return CUDA_ERROR_NOT_READY;
  if (const auto *operations = std::exchange(state().late, nullptr))
    performAll(*operations);
  if (state().launched && (hang == 1 || (hang == 2 && !state().told) || (hang == 3 && state().calls[call] % 4)))
    return CUDA_ERROR_NOT_READY;
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuStreamQuery(CUstream) {
  FAKE_ENTRY(cuStreamQuery);
  return progressOf("cuStreamQuery");
}
FAKE_EXPORT CUresult cuEventQuery(CUevent) {
  FAKE_ENTRY(cuEventQuery);
  return progressOf("cuEventQuery");
}
FAKE_EXPORT CUresult cuStreamSynchronize(CUstream) {
  FAKE_ENTRY(cuStreamSynchronize);
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuEventCreate(CUevent *event, unsigned) {
  FAKE_ENTRY(cuEventCreate);
  *event = make<CUevent>();
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  const CUresult known = giveBack(event);
  FAKE_ENTRY(cuEventDestroy_v2);
  return known;
}
FAKE_EXPORT CUresult cuEventRecord(CUevent, CUstream) {
  FAKE_ENTRY(cuEventRecord);
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuEventRecordWithFlags(CUevent, CUstream, unsigned flags) {
  FAKE_ENTRY(cuEventRecordWithFlags);
  return flags == CU_EVENT_RECORD_EXTERNAL && state().capturing ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
FAKE_EXPORT CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) {
  FAKE_ENTRY(cuStreamWaitEvent);
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuEventSynchronize(CUevent) {
  FAKE_ENTRY(cuEventSynchronize);
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent, CUevent) {
  FAKE_ENTRY(cuEventElapsedTime);
  *milliseconds = 1;
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *, void **values,
                                       unsigned options, CUlibraryOption *, void **, unsigned) {
  FAKE_ENTRY(cuLibraryLoadData);
  if (std::strncmp(static_cast<const char *>(code), "fake", 4) != 0) {
    if (options == 2)
      std::strcpy(static_cast<char *>(values[0]), "line 1: no code\nand more");
    return CUDA_ERROR_INVALID_PTX;
  }
  *library = make<CUlibrary>();
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuLibraryUnload(CUlibrary library) {
  const CUresult known = giveBack(library);
  FAKE_ENTRY(cuLibraryUnload);
  return known;
}
FAKE_EXPORT CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary, const char *name) {
  FAKE_ENTRY(cuLibraryGetKernel);
  static const char *const names[] = {"k0", "k1", "k2", "k3"};
  for (const char *known : names)
    if (std::strcmp(known, name) == 0)
      return *kernel = reinterpret_cast<CUkernel>(const_cast<char *>(known)), CUDA_SUCCESS;
  return CUDA_ERROR_NOT_FOUND;
}
FAKE_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **) {
  FAKE_ENTRY(cuLaunchKernelEx);
  if (config->blockDimX != state().settings["threads"] || config->gridDimX < 1 ||
      config->gridDimX > state().settings["ctas"] || !state().capturing)
    return CUDA_ERROR_INVALID_VALUE;
  Operation operation{Operation::kernel};
  operation.name = reinterpret_cast<const char *>(function);
  operation.launch.assign(static_cast<char *>(parameters[0]),
                          static_cast<char *>(parameters[0]) + sizeof(k2rt_ir_gpu_launch));
  for (int i = 1; i <= state().settings["arguments"]; ++i)
    operation.arguments.push_back(*static_cast<uint64_t *>(parameters[i]));
  operation.workers = static_cast<int>(config->gridDimX) * 2;
  return enqueue(std::move(operation));
}
FAKE_EXPORT CUresult cuStreamBeginCapture_v2(CUstream, CUstreamCaptureMode) {
  FAKE_ENTRY(cuStreamBeginCapture_v2);
  state().capturing = new std::vector<Operation>;
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuStreamEndCapture(CUstream, CUgraph *graph) {
  auto *captured = std::exchange(state().capturing, nullptr);
  if (fails("cuStreamEndCapture")) {
    delete captured;
    *graph = nullptr;
    return static_cast<CUresult>(state().error);
  }
  state().alive.insert(captured);
  *graph = reinterpret_cast<CUgraph>(captured);
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph, unsigned long long) {
  FAKE_ENTRY(cuGraphInstantiateWithFlags);
  auto *copy = new std::vector<Operation>(*reinterpret_cast<std::vector<Operation> *>(graph));
  state().alive.insert(copy);
  *executable = reinterpret_cast<CUgraphExec>(copy);
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuGraphLaunch(CUgraphExec executable, CUstream) {
  FAKE_ENTRY(cuGraphLaunch);
  state().launched = true;
  const auto *operations = reinterpret_cast<std::vector<Operation> *>(executable);
  if (state().settings["late"] != 0)
    state().late = operations;
  else if (state().settings["idle"] == 0) // else: nothing of it begins
    performAll(*operations);
  return CUDA_SUCCESS;
}
static CUresult giveBackGraph(void *graph) {
  if (state().alive.erase(graph) == 0)
    return CUDA_ERROR_INVALID_HANDLE;
  delete static_cast<std::vector<Operation> *>(graph);
  return CUDA_SUCCESS;
}
FAKE_EXPORT CUresult cuGraphExecDestroy(CUgraphExec executable) {
  const CUresult known = giveBackGraph(executable);
  FAKE_ENTRY(cuGraphExecDestroy);
  return known;
}
FAKE_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  const CUresult known = giveBackGraph(graph);
  FAKE_ENTRY(cuGraphDestroy);
  return known;
}

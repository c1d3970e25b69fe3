//===- Driver.h - All that the driver knows -------------------------------===//
//
// One mutex guards it; each entry point is a call of enter(), which counts it, makes it fail where the environment says
// so, and gives it the driver. Handles are numbers of tables and point to nothing, so that a wrong one is an error.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_EMULATEDDRIVER_DRIVER_H
#define K2C_LIB_EMULATEDDRIVER_DRIVER_H

#include "Memory.h"
#include "Queue.h"
#include "Settings.h"
#include "Table.h"

#include <array>
#include <chrono>
#include <mutex>
#include <new>
#include <thread>

namespace k2c::emulated {

/// A context takes this part of its device's memory.
constexpr uint64_t contextPart = 256;

/// The primary context of a device.
struct Context {
  uint32_t device = 0;
  uint64_t retained = 0;
  CUresult error = CUDA_SUCCESS; ///< of a kernel or a copy; it stays
  uint64_t peers = 0;            ///< devices whose memory its kernels may access, a bit each
};

struct Device {
  uint64_t context = 0; ///< 0: there is none
  uint64_t usedBytes = 0, peakBytes = 0;
};

struct Stream {
  uint64_t context = 0;
  std::vector<Queue::OperationId> tail; ///< what the next operation comes behind
  uint64_t capture = 0;                 ///< 0: it is not captured
  std::vector<uint32_t> nodes;          ///< of the captured graph: what the next one comes behind
};

struct Event {
  uint64_t context = 0;
  unsigned flags = 0;
  uint64_t records = 0; ///< how often
  Queue::OperationId operation = 0;
  uint64_t capture = 0; ///< in which it was recorded last; 0: in none
  std::vector<uint32_t> nodes;
  std::chrono::steady_clock::time_point time{};
};

struct Node {
  uint64_t id = 0;
  Work work;
  std::vector<uint32_t> after; ///< lower numbers of the graph
};

struct Graph {
  uint64_t context = 0;
  std::vector<Node> nodes;
};

struct Executable {
  Graph graph;
  std::vector<Queue::OperationId> tail; ///< of its last launch
};

struct Capture {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  uint64_t origin = 0; ///< the stream
  Graph graph;
  bool isInvalid = false;
};

struct Library {
  std::shared_ptr<Image> image;
  std::vector<uint64_t> handles; ///< of its kernels; 0: nobody has asked
};

struct LoadedKernel {
  std::shared_ptr<Image> image;
  size_t index = 0;                              ///< of the image's kernels
  std::map<uint32_t, uint64_t> maxDynamicShared; ///< by device, where it was set

  /// Bytes of dynamic shared memory that a launch may have.
  uint64_t dynamicShared(uint32_t device) const;
};

struct Statistics {
  std::array<uint64_t, entryCount> calls{};
  uint64_t allCalls = 0;
  uint64_t kernels = 0, instructions = 0, graphLaunches = 0, lateAllocations = 0;
  uint64_t lost = 0; ///< objects that were alive when their context ended
};

class Driver {
public:
  static Driver &get();

  CUresult initialize(unsigned flags);
  /// Counts a call, and chooses whether it fails.
  void begin(Entry entry);
  /// The context that this thread has chosen; null with `error` set: none that is of use.
  Context *current(CUresult &error);
  /// A stream, an event that are of use; null with `error` set.
  Stream *stream(CUstream handle, CUresult &error);
  Event *event(CUevent handle, CUresult &error);
  bool isDevice(CUdevice device) const { return device >= 0 && static_cast<uint32_t>(device) < settings.devices; }

  /// What its context has failed with.
  CUresult errorOf(uint64_t context);
  /// Puts `work` at the end of a stream, or into the graph that it is captured in.
  CUresult enqueue(Stream &stream, Work work);
  /// A call that may not be while streams are captured: it makes all captures invalid that it disturbs.
  CUresult checkUnsafe();
  CUresult invalidate(uint64_t capture, CUresult error);
  /// Its streams are not captured any more.
  void endCapture(uint64_t id);
  void endContext(uint64_t id);

  std::mutex mutex;
  Settings settings;
  bool isInitialized = false;
  std::vector<Device> devices;
  Table<Context> contexts;
  Table<Stream> streams;
  Table<Event> events;
  Table<Library> libraries;
  Table<LoadedKernel> kernels;
  Table<Graph> graphs;
  Table<Executable> executables;
  Table<Capture> captures;
  Memory memory;
  Queue queue;
  Statistics statistics;
  CUresult failing = CUDA_SUCCESS; ///< the error that the call has to give

private:
  Driver();

  std::optional<Error> settingsError; ///< what cuInit has to say
  bool run(Work &work);
  CUresult run(const Copy &copy);
  CUresult run(const Fill &fill);
  void begin(const KernelLaunch &launch);
  CUresult goOn(const Context &context);

  std::unique_ptr<ptx::Execution> kernel; ///< the one that has begun and not ended
};

/// The context that this thread has chosen; 0: none.
extern thread_local uint64_t currentContext;

/// Says on stderr what no error code says, and gives `error`.
CUresult refuse(CUresult error, const std::string &message);

/// Whether a call that fails gives back or ends what it is for all the same: its error is of earlier work.
constexpr bool endsSomething(Entry entry) {
  return entry == Entry::cuDevicePrimaryCtxRelease_v2 || entry == Entry::cuMemFree_v2 ||
         entry == Entry::cuMemFreeHost || entry == Entry::cuStreamDestroy_v2 || entry == Entry::cuEventDestroy_v2 ||
         entry == Entry::cuLibraryUnload || entry == Entry::cuStreamEndCapture || entry == Entry::cuGraphDestroy ||
         entry == Entry::cuGraphExecDestroy;
}

/// Calls `body(driver)` for an entry point that needs no initialized driver.
template <class Body> CUresult enterAlways(Entry entry, Body body) {
  Driver &driver = Driver::get();
  const std::lock_guard<std::mutex> lock(driver.mutex);
  driver.begin(entry);
  if (driver.failing != CUDA_SUCCESS && !endsSomething(entry))
    return driver.failing;
  const CUresult result = body(driver);
  return driver.failing != CUDA_SUCCESS ? driver.failing : result;
}

/// The same for one that needs it.
template <class Body> CUresult enter(Entry entry, Body body) {
  return enterAlways(entry, [&](Driver &driver) {
    if (!driver.isInitialized)
      return CUDA_ERROR_NOT_INITIALIZED;
    try {
      return body(driver);
    } catch (const std::bad_alloc &) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  });
}

/// The same with `body(driver, context)` for one that needs a context, too.
template <class Body> CUresult enterContext(Entry entry, Body body) {
  return enter(entry, [&](Driver &driver) {
    CUresult error = CUDA_SUCCESS;
    Context *context = driver.current(error);
    return context ? body(driver, *context) : error;
  });
}

/// The same with `body(driver, stream)` for one that needs a context and a stream.
template <class Body> CUresult enterStream(Entry entry, CUstream handle, Body body) {
  return enterContext(entry, [&](Driver &driver, Context &) {
    CUresult error = CUDA_SUCCESS;
    Stream *stream = driver.stream(handle, error);
    return stream ? body(driver, *stream) : error;
  });
}

} // namespace k2c::emulated

#endif // K2C_LIB_EMULATEDDRIVER_DRIVER_H

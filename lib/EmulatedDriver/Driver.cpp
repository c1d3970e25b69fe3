//===- Driver.cpp - All that the driver knows -----------------------------===//
//
// What entry points have in common: which context, stream or event a handle is and whether it is of use; what a call
// does to streams that are captured. An operation goes to the end of its stream, or becomes a node of the graph that
// the stream is captured in, behind the nodes that the stream's next operation comes behind.
//
//===----------------------------------------------------------------------===//
#include "Driver.h"
#include "Report.h"

namespace k2c::emulated {

thread_local uint64_t currentContext = 0;

Driver::Driver() : queue(0, [this](Work &work) { return run(work); }) {
  Expected<Settings> read = Settings::read();
  if (read)
    settings = std::move(*read);
  else
    settingsError = read.takeError();
  queue.random.seed(settings.seed);
}

Driver &Driver::get() {
  static Driver &driver = *new Driver; // never destroyed: threads may still call when the process ends
  static const ReportAtExit report(driver);
  return driver;
}

CUresult Driver::initialize(unsigned flags) {
  if (flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (settingsError)
    return refuse(CUDA_ERROR_INVALID_VALUE, settingsError->text());
  if (!isInitialized)
    say("kernels run instruction by instruction on this processor");
  devices.resize(settings.devices);
  isInitialized = true;
  return CUDA_SUCCESS;
}

void Driver::begin(Entry entry) {
  const uint64_t calls = ++statistics.calls[static_cast<size_t>(entry)];
  ++statistics.allCalls;
  const Failure &failure = settings.failure;
  const bool fails =
      failure.entry ? entry == *failure.entry && calls == failure.call : statistics.allCalls == failure.call;
  failing = fails ? failure.error : CUDA_SUCCESS;
}

Context *Driver::current(CUresult &error) {
  Context *context = contexts.find(currentContext);
  error = context ? context->error : CUDA_ERROR_INVALID_CONTEXT;
  return error == CUDA_SUCCESS ? context : nullptr;
}

CUresult Driver::errorOf(uint64_t context) {
  const Context *found = contexts.find(context);
  return found ? found->error : CUDA_ERROR_INVALID_CONTEXT;
}

Stream *Driver::stream(CUstream handle, CUresult &error) {
  if (idOf(handle) <= 2) { // the default stream of the context, or of the thread
    error = refuse(CUDA_ERROR_NOT_SUPPORTED, "default streams are not emulated; create a stream");
    return nullptr;
  }
  Stream *found = streams.find(idOf(handle));
  error = found ? errorOf(found->context) : CUDA_ERROR_INVALID_HANDLE;
  return error == CUDA_SUCCESS ? found : nullptr;
}

Event *Driver::event(CUevent handle, CUresult &error) {
  Event *found = events.find(idOf(handle));
  error = found ? errorOf(found->context) : CUDA_ERROR_INVALID_HANDLE;
  return error == CUDA_SUCCESS ? found : nullptr;
}

CUresult Driver::enqueue(Stream &stream, Work work) {
  if (stream.capture == 0) {
    stream.tail = {queue.add(std::move(work), stream.tail)};
    return CUDA_SUCCESS;
  }
  Capture &capture = *captures.find(stream.capture);
  if (capture.isInvalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::vector<Node> &nodes = capture.graph.nodes;
  nodes.push_back({nextId(), std::move(work), stream.nodes});
  stream.nodes = {static_cast<uint32_t>(nodes.size() - 1)};
  return CUDA_SUCCESS;
}

CUresult Driver::invalidate(uint64_t capture, CUresult error) {
  if (Capture *found = captures.find(capture))
    found->isInvalid = true;
  return error;
}

CUresult Driver::checkUnsafe() {
  CUresult error = CUDA_SUCCESS;
  for (auto &[id, capture] : captures)
    if (capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
        (capture.mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && capture.thread == std::this_thread::get_id()))
      error = invalidate(id, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  return error;
}

void Driver::endCapture(uint64_t id) {
  for (auto &[handle, stream] : streams)
    if (stream.capture == id) {
      stream.capture = 0;
      stream.nodes.clear();
    }
  captures.erase(id);
}

void Driver::endContext(uint64_t id) {
  queue.finishAll();
  for (auto at = memory.all().begin(); at != memory.all().end();) {
    const uint64_t address = at->first, context = (at++)->second.context;
    if (context != id)
      continue;
    memory.free(address);
    ++statistics.lost;
  }
  const auto isOfIt = [&](const auto &object) { return object.context == id; };
  statistics.lost += streams.eraseIf(isOfIt) + events.eraseIf(isOfIt) + graphs.eraseIf(isOfIt);
  statistics.lost += executables.eraseIf([&](const Executable &executable) { return isOfIt(executable.graph); });
  std::vector<uint64_t> ended;
  for (auto &[capture, captured] : captures)
    if (isOfIt(captured.graph))
      ended.push_back(capture);
  for (const uint64_t capture : ended)
    endCapture(capture);
  devices[contexts.find(id)->device].context = 0;
  devices[contexts.find(id)->device].usedBytes = 0;
  contexts.erase(id);
}

} // namespace k2c::emulated

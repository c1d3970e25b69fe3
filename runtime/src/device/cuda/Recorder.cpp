// The program runs its step function once, on one worker, while a stream is captured: what it enqueues becomes nodes,
// and whatever else it calls is refused, as it is for programs of processors.
//
// Programs are hostile input as manifests are, so each number of a grid is held against a bound: their product fits 64
// bits.
#include "device/cuda/Recorder.h"
#include "base/Utf8.h"
#include <algorithm>
#include <array>
#include <cstddef>

namespace k2c::runtime {

static constexpr int32_t recordingFailed = -1;
static constexpr int64_t maxFactor = int64_t(1) << 20; // of a grid: slots, rows of an item
static constexpr int64_t maxItems = int64_t(1) << 24;  // of a block: four for each panel of each expert

Recorder::Recorder(const Driver &driver, const Bundle &bundle, const Modules &modules, const StepMirror &mirror,
                   const LaunchMemory &memory, bool isTraced)
    : driver(driver), bundle(bundle), device(*bundle.manifest.device), modules(modules), mirror(mirror), memory(memory),
      isTraced(isTraced) {
  api.launch = reinterpret_cast<void *>(&Recorder::launch);
  api.launch_nowait = reinterpret_cast<void *>(&Recorder::launch);
  api.barrier = reinterpret_cast<void *>(&Recorder::barrier);
  api.sample = reinterpret_cast<void *>(&Recorder::sample);
  api.collective_start = reinterpret_cast<void *>(&Recorder::collectiveStart);
  api.collective_wait = reinterpret_cast<void *>(&Recorder::collectiveWait);
  api.enqueue = reinterpret_cast<void *>(&Recorder::enqueue);
}

k2rt_ir_worker Recorder::worker() {
  k2rt_ir_worker worker = {};
  worker.api = &api;
  worker.step = &step;
  worker.arena = memory.rank->arena;
  worker.weights = const_cast<const void **>(memory.weights);
  worker.planes = const_cast<void **>(memory.rank->planes.data());
  worker.scratch = reinterpret_cast<void *>(memory.scratch);
  worker.scratch_bytes = bundle.program.description().scratch_bytes;
  worker.count = 1;
  worker.context = this;
  return worker;
}

Expected<RecordedStep> Recorder::record(k2rt_ir_step_fn entry, int64_t rows, CUstream on) {
  stream = on;
  step = mirror.recorded(rows);
  failed.reset();
  launches.clear();
  times = {};
  Expected<Branches> beside = Branches::create(driver, on, device.ctas);
  if (!beside)
    return beside.takeError();
  branches.emplace(std::move(*beside));
  Expected<GraphExecutable> graph = captureGraph(driver, stream, [&] { return capture(entry, rows); });
  if (!graph)
    return graph.takeError();
  return RecordedStep{std::move(*graph), std::move(launches), std::move(times)};
}

Status Recorder::capture(k2rt_ir_step_fn entry, int64_t rows) {
  if (Status copied = mirror.copyToDevice(stream); !copied)
    return copied;
  if (isTraced)
    if (Status marked = mark(times.begin, stream); !marked)
      return marked;
  k2rt_ir_worker one = worker();
  const int32_t result = entry(&one);
  if (failed)
    return *failed;
  if (result != 0)
    return Error{K2RT_KERNEL_FAILED, "program.so",
                 "the step failed with " + std::to_string(result) + " while it was recorded", ""};
  return mirror.copyBack(rows, stream);
}

/// Each run of the graph records the event, which is made here.
Status Recorder::mark(Event &event, CUstream on) {
  Expected<Event> made = createTimedEvent(driver);
  if (!made)
    return made.takeError();
  event = std::move(*made);
  return driver.call<&Cuda::cuEventRecordWithFlags>(event.get(), on, CU_EVENT_RECORD_EXTERNAL);
}

int32_t Recorder::refuse(const char *call) {
  if (!failed)
    failed = Error{K2RT_INVALID_BUNDLE, "program.so",
                   std::string("calls ") + call + ", which is for programs of processors", "compile the bundle again"};
  return recordingFailed;
}

int32_t Recorder::launch(k2rt_ir_worker *worker, int32_t, k2rt_ir_kernel_fn, int64_t, void *const *) {
  return static_cast<Recorder *>(worker->context)->refuse("launch");
}

int32_t Recorder::barrier(k2rt_ir_worker *worker) {
  return static_cast<Recorder *>(worker->context)->refuse("barrier");
}

/// Kernels have taken greedy samples; the host draws others behind the graph (HostSampling.h).
int32_t Recorder::sample(k2rt_ir_worker *) { return 0; }

int32_t Recorder::collectiveStart(k2rt_ir_worker *worker, int32_t, int64_t, void *const *) {
  return static_cast<Recorder *>(worker->context)->refuse("collective_start");
}

int32_t Recorder::collectiveWait(k2rt_ir_worker *worker, int32_t) {
  return static_cast<Recorder *>(worker->context)->refuse("collective_wait");
}

int32_t Recorder::enqueue(k2rt_ir_worker *worker, int32_t kernel, const k2rt_ir_grid *grid, int64_t layer,
                          void *const *args, int32_t count, int32_t nowait) {
  auto &self = *static_cast<Recorder *>(worker->context);
  if (self.failed)
    return recordingFailed;
  if (Status done = self.enqueued({kernel, layer, *grid}, args, count, nowait != 0); !done)
    self.failed = done.takeError();
  return self.failed ? recordingFailed : 0;
}

/// At the bound of the graph that is recorded.
Expected<int64_t> Recorder::itemsOf(int32_t kernel, const k2rt_ir_grid &grid) const {
  constexpr std::array<size_t, 5> counts = {offsetof(k2rt_ir_step, token_rows), offsetof(k2rt_ir_step, output_rows),
                                            offsetof(k2rt_ir_step, seq_rows), offsetof(k2rt_ir_step, layer_rows),
                                            offsetof(k2rt_ir_step, entering_rows)};
  const bool isCount =
      grid.rows == -1 || std::find(counts.begin(), counts.end(), static_cast<size_t>(grid.rows)) != counts.end();
  const bool isBounded = grid.slots >= 1 && grid.slots <= maxFactor && grid.rows_per_item >= 1 &&
                         grid.rows_per_item <= maxFactor && grid.items >= 0 && grid.items <= maxItems;
  if (!isCount || !isBounded)
    return Error{K2RT_INVALID_BUNDLE, std::string("kernel ") + bundle.program.kernelName(kernel),
                 "is launched with a grid of " + std::to_string(grid.rows) + ", " + std::to_string(grid.slots) + ", " +
                     std::to_string(grid.rows_per_item) + ", " + std::to_string(grid.items) +
                     ": no count of rows, or a number out of range",
                 "compile the bundle again"};
  int64_t blocks = 1;
  if (grid.rows >= 0) {
    const auto rows = *reinterpret_cast<const int64_t *>(reinterpret_cast<const std::byte *>(&step) + grid.rows);
    blocks = (rows * grid.slots + grid.rows_per_item - 1) / grid.rows_per_item;
  }
  return std::min(blocks, maxFactor) * grid.items;
}

Status Recorder::checkArguments(int32_t kernel, int32_t count) const {
  const std::vector<KernelEntry> &kernels = bundle.manifest.kernels;
  if (kernel < 0 || static_cast<size_t>(kernel) >= kernels.size())
    return Error{K2RT_INVALID_BUNDLE, "program.so",
                 "launches kernel " + std::to_string(kernel) + ", the manifest has " + std::to_string(kernels.size()),
                 "compile the bundle again"};
  if (count != kernels[kernel].arguments)
    return Error{K2RT_INVALID_BUNDLE, std::string("kernel ") + bundle.program.kernelName(kernel),
                 "is launched with " + std::to_string(count) + " arguments, the manifest says " +
                     std::to_string(kernels[kernel].arguments),
                 "compile the bundle again"};
  return {};
}

/// Of the last of `launches`.
k2rt_ir_gpu_launch Recorder::parameterOf(const k2rt_ir_grid &grid, const Branches::Place &place) const {
  k2rt_ir_gpu_launch first = {};
  first.step = const_cast<k2rt_ir_step *>(mirror.step());
  first.status = mirror.deviceStatus();
  first.scratch_bytes = bundle.program.description().scratch_bytes;
  const int64_t before = place.firstCta * device.workersPerCta * first.scratch_bytes;
  first.scratch = reinterpret_cast<void *>(memory.scratch + static_cast<CUdeviceptr>(before));
  first.rows = grid.rows, first.slots = grid.slots;
  first.rows_per_item = grid.rows_per_item, first.items = grid.items;
  first.begun = mirror.begunPlace(place.branch);
  first.number = static_cast<int32_t>(launches.size());
  return first;
}

Status Recorder::enqueued(RecordedLaunch launch, void *const *args, int32_t count, bool isOpen) {
  if (Status known = checkArguments(launch.kernel, count); !known)
    return known;
  Expected<int64_t> items = itemsOf(launch.kernel, launch.grid);
  if (!items)
    return items.takeError();
  launch.ctas = std::clamp<int64_t>((*items + device.workersPerCta - 1) / device.workersPerCta, 1, device.ctas);
  Expected<Branches::Place> place = branches->next(launch.ctas, isOpen);
  if (!place)
    return place.takeError();
  launch.branch = place->branch;
  launch.group = place->group;
  launches.push_back(launch);
  std::pair<Event, Event> ends;
  Status launched = isTraced ? mark(ends.first, place->stream) : Status();
  if (launched)
    launched = addNode(launch, *place, args, count);
  if (launched && isTraced)
    launched = mark(ends.second, place->stream);
  if (isTraced)
    times.kernels.push_back(std::move(ends));
  if (launched)
    return branches->launched();
  Error error = launched.takeError();
  error.message += std::string(" on kernel ") + bundle.program.kernelName(launch.kernel);
  return error;
}

Status Recorder::addNode(const RecordedLaunch &launch, const Branches::Place &place, void *const *args, int32_t count) {
  k2rt_ir_gpu_launch first = parameterOf(launch.grid, place);
  std::vector<void *> values(args, args + count), parameters = {&first};
  for (void *&value : values) {
    if (value == &step)
      value = first.step;
    parameters.push_back(&value);
  }
  const CUkernel kernel = modules.kernel(static_cast<size_t>(launch.kernel));
  return enqueueKernel(driver, {kernel, launch.ctas, device.threads, parameters.data()}, place.stream);
}

} // namespace k2c::runtime

//===- GpuMeasurement.cpp - Graphs of launches on a GPU, timed -------------===//
//
// Kernels are launched as those of a program are: their first parameter says which step, whose rows they read from the
// device's memory, and a step without rows makes a launch empty. Five graphs of launches and a copy are timed by two
// events each:
//
//   one, many    empty launches: the difference is what a launch takes
//   streamed     one row through weights that L2 cannot hold
//   near         one row through weights that stay in L2, again and again, if it can hold any
//   rows         256 rows through the same weights
//
// Memory is bytes 0x3c, small positive numbers, so the sums of a row are known: in the end one row is compared, since
// times of kernels that did nothing would be rates of nothing.
//
// The stream is asked again and again whether it is done, so that a deadline is seen. Behind it the driver is left to
// the end of the process, as each call that gives something back would wait for what does not end.
//
//===----------------------------------------------------------------------===//
#include "GpuMeasurement.h"

#include "Clock.h"
#include "base/GpuHandles.h"
#include "base/Utf8.h"
#include "k2c/Kernels/Cost.h"
#include "k2c/Kernels/Cpu.h"
#include "k2rt/program.h"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <tuple>

namespace k2c::calibration {

double GpuTiming::least() const { return *std::min_element(runs.begin(), runs.end()); }

double GpuTiming::spread() const {
  std::vector<double> sorted = runs;
  std::nth_element(sorted.begin(), sorted.begin() + long(sorted.size() / 2), sorted.end());
  return sorted[sorted.size() / 2] / std::max(least(), 1e-9) - 1;
}

namespace {

constexpr int filling = 0x3c;
constexpr uint16_t filledBf16 = 0x3c3c;

float fromBf16(uint16_t bits) {
  const uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

/// The steps that kernels read.
enum StepKind : size_t { NoRows, OneRow, ManyRows, StepCount };
constexpr int64_t rowsOf[StepCount] = {0, 1, GpuTimings::rowCount};

/// All launches of one graph.
struct Launches {
  const char *name; ///< in errors
  const GpuKernel &kernel;
  StepKind step;
  int64_t count;
  GpuTiming GpuTimings::*timing;
};

struct TimedGraph {
  const char *name;
  GraphExecutable graph;
  GpuTiming GpuTimings::*timing;
};

/// In pinned memory: what steps are copied from, and where kernels say that they have begun.
struct Shared {
  k2rt_ir_step steps[StepCount];
  int32_t begun;
};

/// What the device has, and what of it is given back in the end, once what runs has ended.
class GpuBench {
public:
  GpuBench(const Driver &driver, const GpuKernels &kernels, GpuContext context, std::optional<Seconds> deadline)
      : driver(driver), kernels(kernels), context(std::move(context)), deadline(deadline) {}
  GpuBench(const GpuBench &) = delete;
  ~GpuBench() {
    if (!driver.abandoned())
      (void)wait("what was begun"); // before a call that failed
  }

  Status prepare(GpuTimings &timings);
  /// Everything once.
  Status round(GpuTimings &timings);
  /// Whether the last launch of many rows left their sums.
  Status check();

private:
  Status allocate(GpuTimings &timings);
  Shared *shared() const;
  Status fill();
  Status load(const GpuKernel &kernel);
  Status enqueue(const Launches &launches);
  Status wait(const char *name);
  Status time(const char *name, const std::function<Status()> &work, GpuTiming &timing);
  std::vector<Launches> graphsToRun() const;

  const Driver &driver;
  const GpuKernels &kernels;
  const GpuContext context;
  const std::optional<Seconds> deadline;
  Stream stream;
  Event begin, end;
  DeviceBytes weights, x, y, scratch, steps, status;
  PinnedBytes pinned;
  Bytes copied;
  std::vector<CodeLibrary> libraries;
  std::vector<std::pair<const GpuKernel *, CUkernel>> entries;
  std::vector<TimedGraph> graphs;
};

template <class Made> Status keep(Expected<Made> made, Made &to) {
  if (!made)
    return made.takeError();
  to = std::move(*made);
  return {};
}

std::vector<Launches> GpuBench::graphsToRun() const {
  std::vector<Launches> all = {
      {"an empty launch", kernels.near, NoRows, 1, &GpuTimings::one},
      {"a graph of empty launches", kernels.near, NoRows, GpuTimings::manyLaunches, &GpuTimings::many},
      {"a row through weights of memory", kernels.streamed, OneRow, 1, &GpuTimings::streamed}};
  if (kernels.nearFits)
    all.push_back({"a row through weights of L2", kernels.near, OneRow, GpuTimings::nearLaunches, &GpuTimings::near});
  all.push_back({"a graph of 256 rows", kernels.near, ManyRows, GpuTimings::rowsLaunches, &GpuTimings::rows});
  return all;
}

Status GpuBench::allocate(GpuTimings &timings) {
  const LinearDesc &near = kernels.near.linear(), &streamed = kernels.streamed.linear();
  const int64_t ofWeights = std::max(kernels.near.bytesOfWeights(), kernels.streamed.bytesOfWeights());
  const int64_t ofScratch = std::max(scratchBytes(kernels.near.desc, kernels.near.tile),
                                     scratchBytes(kernels.streamed.desc, kernels.streamed.tile));
  const int64_t bf16 = byteWidth(DType::BF16);
  copied = Bytes(std::min(mebibytes(64).value, ofWeights));
  timings.copied = copied;
  const std::tuple<DeviceBytes *, int64_t, const char *> wanted[] = {
      {&weights, ofWeights, "weights"},
      {&x, GpuTimings::rowCount * std::max(near.x.stride, streamed.x.stride) * bf16, "rows"},
      {&y, std::max(GpuTimings::rowCount * near.y.stride, streamed.y.stride) * bf16, "results"},
      {&scratch, kernels.ctas * kernels.target.workersPerCta() * ofScratch, "scratch"},
      {&steps, int64_t(sizeof(Shared::steps)), "steps"},
      {&status, int64_t(sizeof(k2rt_ir_gpu_status)), "the status"}};
  for (const auto &[memory, bytes, purpose] : wanted)
    if (Status kept = keep(allocateOnDevice(driver, bytes, purpose), *memory); !kept)
      return kept;
  return keep(allocatePinned(driver, copied.value + int64_t(sizeof(Shared)), "copies"), pinned);
}

/// Behind the bytes that are copied.
Shared *GpuBench::shared() const {
  return reinterpret_cast<Shared *>(static_cast<char *>(pinned.get()) + copied.value);
}

/// Results are zeros, which no sum is.
Status GpuBench::fill() {
  std::memset(pinned.get(), filling, size_t(copied.value));
  *shared() = {};
  for (size_t step = 0; step < StepCount; ++step)
    shared()->steps[step].token_rows = shared()->steps[step].layer_rows = rowsOf[step];
  const LinearDesc &near = kernels.near.linear();
  const std::tuple<const DeviceBytes *, int, int64_t> bytes[] = {
      {&weights, filling, std::max(kernels.near.bytesOfWeights(), kernels.streamed.bytesOfWeights())},
      {&x, filling, GpuTimings::rowCount * std::max(near.x.stride, kernels.streamed.linear().x.stride) * 2},
      {&y, 0, GpuTimings::rowCount * near.y.stride * 2},
      {&status, 0, int64_t(sizeof(k2rt_ir_gpu_status))}};
  for (const auto &[memory, value, count] : bytes)
    if (Status set = driver.call<&Cuda::cuMemsetD8Async>(memory->get(), static_cast<unsigned char>(value),
                                                         size_t(count), stream.get());
        !set)
      return set;
  if (Status sent = driver.call<&Cuda::cuMemcpyHtoDAsync_v2>(steps.get(), static_cast<const void *>(shared()->steps),
                                                             sizeof(Shared::steps), stream.get());
      !sent)
    return sent;
  return wait("the first copy");
}

Status GpuBench::load(const GpuKernel &kernel) {
  const std::string what = "kernel " + shortened(kernel.entry);
  LoadedCode loaded;
  loaded.result = CUDA_ERROR_NO_BINARY_FOR_GPU;
  if (!kernel.cubin.empty())
    loaded = loadCode(driver, kernel.cubin);
  if (loaded.result == CUDA_ERROR_NO_BINARY_FOR_GPU)
    loaded = loadCode(driver, kernel.ptx);
  if (loaded.result != CUDA_SUCCESS)
    return loaded.failure(driver, what);
  libraries.push_back(std::move(loaded.library));
  Expected<CUkernel> entry = kernelNamed(driver, libraries.back(), kernel.entry, what);
  if (!entry)
    return entry.takeError();
  entries.emplace_back(&kernel, *entry);
  return {};
}

Status GpuBench::enqueue(const Launches &launches) {
  const GpuKernel &kernel = launches.kernel;
  const Grid grid = gridOf(kernel.desc, kernel.tile);
  k2rt_ir_gpu_launch first = {};
  first.step = reinterpret_cast<void *>(steps.get() + launches.step * sizeof(k2rt_ir_step));
  first.status = reinterpret_cast<void *>(status.get());
  first.scratch = reinterpret_cast<void *>(scratch.get());
  first.scratch_bytes = scratchBytes(kernel.desc, kernel.tile);
  first.rows = offsetof(k2rt_ir_step, token_rows);
  first.slots = 1;
  first.rows_per_item = grid.rowsPerItem;
  first.items = grid.itemsPerBlock;
  first.begun = &shared()->begun;
  first.number = 1;
  CUdeviceptr arguments[] = {x.get(), weights.get(), y.get()};
  void *parameters[] = {&first, &arguments[0], &arguments[1], &arguments[2]};
  KernelLaunch launch;
  for (const auto &[of, entry] : entries)
    if (of == &kernel)
      launch.kernel = entry;
  const int64_t workers = kernels.target.workersPerCta(), items = itemCount(grid, rowsOf[launches.step]);
  launch.ctas = items == 0 ? kernels.ctas : std::min((items + workers - 1) / workers, kernels.ctas);
  launch.threads = kernels.target.threads;
  launch.parameters = parameters;
  Status done;
  for (int64_t i = 0; i < launches.count && done; ++i)
    done = enqueueKernel(driver, launch, stream.get());
  return done;
}

Status GpuBench::prepare(GpuTimings &timings) {
  if (Status kept = keep(createStream(driver), stream); !kept)
    return kept;
  for (Event *event : {&begin, &end})
    if (Status kept = keep(createTimedEvent(driver), *event); !kept)
      return kept;
  if (Status taken = allocate(timings); !taken)
    return taken;
  if (Status filled = fill(); !filled)
    return filled;
  for (const GpuKernel *kernel : {&kernels.near, &kernels.streamed})
    if (Status loaded = load(*kernel); !loaded)
      return loaded;
  for (const Launches &launches : graphsToRun()) {
    Expected<GraphExecutable> graph = captureGraph(driver, stream.get(), [&] { return enqueue(launches); });
    if (!graph)
      return graph.takeError();
    graphs.push_back({launches.name, std::move(*graph), launches.timing});
  }
  return {};
}

/// Without pauses, as the driver's own calls wait; the emulated one goes on when it is asked.
Status GpuBench::wait(const char *name) {
  const double begin = now();
  CUresult result = driver.entries().cuStreamQuery(stream.get());
  for (; result == CUDA_ERROR_NOT_READY; result = driver.entries().cuStreamQuery(stream.get()))
    if (deadline && now() - begin > deadline->value) {
      driver.abandon();
      return Error{K2RT_DEVICE_FAILED, "calibration",
                   std::string(name) + " has not ended within " + formatNumber(deadline->value, 6) + " s",
                   "run it again while nothing else uses the GPU"};
    }
  if (result == CUDA_SUCCESS)
    return {};
  Error failed = driver.failure(callName<&Cuda::cuStreamQuery>, result);
  failed.message += std::string(" on ") + name;
  return failed;
}

Status GpuBench::time(const char *name, const std::function<Status()> &work, GpuTiming &timing) {
  if (Status marked = driver.call<&Cuda::cuEventRecord>(begin.get(), stream.get()); !marked)
    return marked;
  if (Status enqueued = work(); !enqueued)
    return enqueued;
  if (Status marked = driver.call<&Cuda::cuEventRecord>(end.get(), stream.get()); !marked)
    return marked;
  if (Status ended = wait(name); !ended)
    return ended;
  float milliseconds = 0;
  if (Status asked = driver.call<&Cuda::cuEventElapsedTime>(&milliseconds, begin.get(), end.get()); !asked)
    return asked;
  timing.runs.push_back(double(milliseconds) * 1e-3);
  return {};
}

Status GpuBench::round(GpuTimings &timings) {
  for (const TimedGraph &each : graphs) {
    auto launch = [&] { return driver.call<&Cuda::cuGraphLaunch>(each.graph.get(), stream.get()); };
    if (Status timed = time(each.name, launch, timings.*each.timing); !timed)
      return timed;
  }
  auto copy = [&] {
    return driver.call<&Cuda::cuMemcpyHtoDAsync_v2>(weights.get(), static_cast<const void *>(pinned.get()),
                                                    size_t(copied.value), stream.get());
  };
  return time("a copy from the host", copy, timings.copy);
}

Status GpuBench::check() {
  const LinearDesc &near = kernels.near.linear();
  const int64_t last = (GpuTimings::rowCount - 1) * near.y.stride;
  std::vector<uint16_t> row(size_t(near.y.width));
  if (Status copiedBack = driver.call<&Cuda::cuMemcpyDtoHAsync_v2>(
          static_cast<void *>(row.data()), y.get() + CUdeviceptr(last * 2), row.size() * 2, stream.get());
      !copiedBack)
    return copiedBack;
  if (Status done = wait("the copy of a sum"); !done)
    return done;
  const double element = fromBf16(filledBf16), sum = element * element * double(near.w.k);
  for (uint16_t bits : row)
    if (!(std::abs(fromBf16(bits) - sum) <= 0.01 * sum))
      return Error{K2RT_DEVICE_FAILED, "calibration",
                   "a kernel left " + formatNumber(fromBf16(bits), 4) + " where the sum is " + formatNumber(sum, 4),
                   "report it with the GPU's name"};
  return {};
}

} // namespace

Expected<GpuRates> ratesOf(const GpuTimings &timings, const GpuKernels &kernels) {
  const double one = timings.one.least();
  const double launch = (timings.many.least() - one) / double(GpuTimings::manyLaunches - 1);
  GpuRates rates;
  rates.launch = Seconds(launch);
  const Cost ofOne = count(kernels.near.desc, {1, 0, 0}, kernels.near.tile.weights);
  const double bytes = double((ofOne.weights + ofOne.read + ofOne.written).value);
  const double flops = count(kernels.near.desc, {GpuTimings::rowCount, 0, 0}, kernels.near.tile.weights).flops.value;
  std::vector<std::tuple<const GpuTiming *, int64_t, double, double *>> measured = {
      {&timings.streamed, 1, double(kernels.streamed.bytesOfWeights()), &rates.memoryRead.value},
      {&timings.rows, GpuTimings::rowsLaunches, flops, &rates.f32.value}};
  if (kernels.nearFits)
    measured.push_back({&timings.near, GpuTimings::nearLaunches, bytes, &rates.l2Read.emplace().value});
  for (const auto &[timing, launches, work, rate] : measured) {
    const double empty = one + double(launches - 1) * launch, own = timing->least() - empty;
    if (!(launch > 0 && own > 0))
      return Error{K2RT_DEVICE_FAILED, "calibration",
                   std::to_string(launches) + (launches == 1 ? " launch" : " launches") + " of a linear took " +
                       format(Seconds(timing->least())) + ", and as many empty ones " + format(Seconds(empty)),
                   "run it again while nothing else uses the GPU"};
    *rate = work * double(launches) / own;
  }
  rates.fromHost = Bandwidth(double(timings.copied.value) / std::max(timings.copy.least(), 1e-9));
  for (const GpuTiming *timing :
       {&timings.one, &timings.many, &timings.streamed, &timings.near, &timings.rows, &timings.copy})
    if (!timing->runs.empty())
      rates.spread = std::max(rates.spread, timing->spread());
  return rates;
}

static Expected<GpuTimings> measure(const Driver &driver, const GpuFacts &gpu, const GpuKernels &kernels,
                                    const MeasureOptions &options) {
  constexpr int64_t minRounds = 3;
  Expected<GpuContext> context = GpuContext::retain(driver, gpu);
  if (!context)
    return context.takeError();
  GpuBench bench(driver, kernels, std::move(*context), options.deadline);
  GpuTimings timings;
  if (Status prepared = bench.prepare(timings); !prepared)
    return prepared.takeError();
  double spent = 0;
  const double begin = now();
  for (int64_t round = 1; round <= minRounds || spent < options.budget.value; ++round) {
    if (Status ran = bench.round(timings); !ran)
      return ran.takeError();
    spent = now() - begin;
    if (options.progress)
      options.progress(int64_t(99 * std::min({double(round) / minRounds, spent / options.budget.value, 1.0})));
  }
  if (Status right = bench.check(); !right)
    return right.takeError();
  return timings;
}

Expected<GpuTimings> measureGpu(const Driver &driver, const GpuFacts &gpu, const GpuKernels &kernels,
                                const MeasureOptions &options) {
  std::optional<Error> unreturned;
  driver.keepIn(&unreturned);
  Expected<GpuTimings> timings = measure(driver, gpu, kernels, options);
  driver.keepIn(nullptr);
  if (timings && unreturned)
    return *unreturned;
  return timings;
}

} // namespace k2c::calibration

// A step: its arrays into pinned memory (upload), then a graph, whose head copies them to the device and whose end
// copies status and samples back, then the rows of captures that the step has. Rows of logits come where somebody wants
// them, or where the host draws samples.
//
// A step may be enqueued behind one that runs. It has a place of its own, and reads the samples of that one where they
// lie; both share the status, so that behind a step that fails no kernel does anything.
//
// Nothing here blocks on the device while kernels run: an event is asked for again and again, ever more seldom, so that
// an interrupt or a deadline is seen. Either writes a result into the status of the device, and kernels that have not
// begun do nothing. If one does not end at all, the driver is left to the end of the process: each call that gives
// something back would wait for that kernel.
//
// All memory is there before the first graph is launched, and none is taken later.
#include "device/cuda/CudaDevice.h"
#include "program/StepFailure.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace k2c::runtime {

using std::chrono::nanoseconds;

static constexpr nanoseconds busy = std::chrono::microseconds(200); // asked without a pause
static constexpr nanoseconds longestPause = std::chrono::milliseconds(1);
static constexpr nanoseconds defaultStep = std::chrono::seconds(60);
static constexpr nanoseconds mercy = std::chrono::seconds(1); // of kernels that were told to end
static constexpr nanoseconds emulatedMercy = std::chrono::seconds(3);
static const char emulatedLibrary[] = "lib/libk2c-cuda.so";

Expected<std::unique_ptr<Driver>> openDriver(const std::string &folder, const DeviceFacts &device,
                                             const CudaOptions &options) {
  if (options.driver != emulatedDriver)
    return Driver::open(options.driver.empty() ? "libcuda.so.1" : options.driver);
  if (!bundleFileExists(folder, emulatedLibrary))
    return Error{K2RT_UNSUPPORTED, "--driver emulated", std::string("the bundle has no ") + emulatedLibrary,
                 "compile it with a k2c that was built with the emulated driver"};
  Expected<FileList> files = FileList::read(folder);
  if (!files)
    return files.takeError();
  if (Status right = files->checkHash(emulatedLibrary); !right)
    return right.takeError();
  ::setenv("K2C_EMULATED_ARCH", device.arch.c_str(), /*overwrite=*/0);
  ::setenv("K2C_EMULATED_MEMORY", std::to_string(device.memory).c_str(), /*overwrite=*/0);
  if (options.emulatedSeed)
    ::setenv("K2C_EMULATED_SEED", std::to_string(*options.emulatedSeed).c_str(), /*overwrite=*/1);
  return Driver::open(folder + "/" + emulatedLibrary);
}

CudaDevice::CudaDevice(const Bundle &bundle, const CudaOptions &options, std::unique_ptr<Driver> driver,
                       GpuContext context)
    : bundle(bundle), options(options), driver(std::move(driver)), context(std::move(context)),
      sampling(bundle.manifest.memory.limits) {}

static DeviceNeeds needsOf(const Bundle &bundle, const StepCaptures &captures) {
  const Manifest &manifest = bundle.manifest;
  return {DeviceWeights::bytesOf(bundle.weights),
          manifest.cacheBytes(bundle.rank),
          manifest.memory.arena,
          manifest.workspaceBytes(),
          manifest.device->reserve,
          CaptureArrays::bytesOf(manifest, captures)};
}

Expected<std::unique_ptr<CudaDevice>> CudaDevice::create(const Bundle &bundle, const CudaOptions &options) {
  const DeviceFacts &wanted = *bundle.manifest.device;
  Expected<std::unique_ptr<Driver>> driver = openDriver(bundle.folder, wanted, options);
  if (!driver)
    return driver.takeError();
  (*driver)->keepIn(options.unreturned);
  Expected<GpuFacts> gpu = readGpu(**driver, options.device);
  if (!gpu)
    return gpu.takeError();
  if (Status right = checkGpu(*gpu, wanted); !right)
    return right.takeError();
  Expected<GpuContext> context = GpuContext::retain(**driver, *gpu);
  if (!context)
    return context.takeError();
  if (Status fits = checkMemory(**driver, *gpu, needsOf(bundle, options.captures)); !fits)
    return fits.takeError();
  std::unique_ptr<CudaDevice> device(new CudaDevice(bundle, options, std::move(*driver), std::move(*context)));
  for (Stream *stream : {&device->stream, &device->stopping}) {
    Expected<Stream> created = createStream(*device->driver);
    if (!created)
      return created.takeError();
    *stream = std::move(*created);
  }
  return device;
}

CudaDevice::~CudaDevice() {
  if (driver->abandoned())
    return;
  driver->keep(context.makeCurrent());              // who destroys it may be another thread
  while (collected < submitted && waitForKernels()) // of a step that nobody wants, up to the deadline
    ++collected;
  driver->giveBack<&Cuda::cuCtxSynchronize>();
}

Expected<std::byte *> CudaDevice::allocate(int64_t bytes, const char *purpose, MemoryUse use) {
  if (use == MemoryUse::engine) {
    Expected<PinnedBytes> pinned = allocatePinned(*driver, bytes, purpose);
    if (!pinned)
      return pinned.takeError();
    ofEngine.push_back(std::move(*pinned));
    if (bytes > 0)
      std::memset(ofEngine.back().get(), 0, static_cast<size_t>(bytes));
    return static_cast<std::byte *>(ofEngine.back().get());
  }
  Expected<DeviceBytes> memory = takeZeroed(bytes, purpose);
  if (!memory)
    return memory.takeError();
  ofProgram.push_back(std::move(*memory));
  return reinterpret_cast<std::byte *>(ofProgram.back().get());
}

Expected<DeviceBytes> CudaDevice::takeZeroed(int64_t bytes, const char *purpose) {
  Expected<DeviceBytes> memory = allocateOnDevice(*driver, bytes, purpose);
  if (!memory || bytes == 0)
    return memory;
  if (Status zeroed = driver->call<&Cuda::cuMemsetD8Async>(memory->get(), static_cast<unsigned char>(0),
                                                           static_cast<size_t>(bytes), stream.get());
      !zeroed)
    return zeroed.takeError();
  return memory;
}

Status CudaDevice::load(const RankMemory &memory, Trace *toTrace) {
  trace = toTrace;
  const Manifest &manifest = bundle.manifest;
  const std::tuple<DeviceBytes *, int64_t, const char *> workspace[] = {
      {&scratch, manifest.device->workers() * manifest.memory.scratchPerWorker, "scratch"},
      {&logits, manifest.memory.logits, "logits"}};
  for (const auto &[bytes, size, purpose] : workspace) {
    Expected<DeviceBytes> taken = takeZeroed(size, purpose);
    if (!taken)
      return taken.takeError();
    *bytes = std::move(*taken);
  }
  Expected<CaptureArrays> captured = CaptureArrays::allocate(*driver, manifest, options.captures);
  if (!captured)
    return captured.takeError();
  captures = std::move(*captured);
  k2rt_ir_step written = {};
  written.logits = reinterpret_cast<void *>(logits.get());
  captures->setAddresses(written);
  Expected<DeviceBytes> zeroed = takeZeroed(StepOutcome::bytesOf(manifest.limits.step_tokens), "samples");
  if (!zeroed)
    return zeroed.takeError();
  Expected<StepOutcome> outcome = StepOutcome::create(*driver, std::move(*zeroed));
  if (!outcome)
    return outcome.takeError();
  stepOutcome.emplace(std::move(*outcome));
  if (Status added = addPlaces(written); !added)
    return added;
  Expected<DeviceWeights> brought = DeviceWeights::upload(*driver, bundle, stream.get(), options.trust);
  if (!brought)
    return brought.takeError();
  weights.emplace(std::move(*brought));
  return loadCode(memory);
}

Status CudaDevice::addPlaces(const k2rt_ir_step &written) {
  for (StepPlace &place : places) {
    Expected<StepMirror> mirror = StepMirror::create(*driver, bundle.manifest, *stepOutcome, written);
    if (!mirror)
      return mirror.takeError();
    place.mirror.emplace(std::move(*mirror));
    Expected<Event> done = createEvent(*driver);
    if (!done)
      return done.takeError();
    place.done = std::move(*done);
  }
  return {};
}

/// Steps of few rows, of generated tokens alone, have launches of their own size.
Status CudaDevice::loadCode(const RankMemory &memory) {
  Expected<Modules> loaded = Modules::load(*driver, gpu(), bundle.folder, bundle.manifest);
  if (!loaded)
    return loaded.takeError();
  modules.emplace(std::move(*loaded));
  const k2rt_limits &limits = bundle.manifest.limits;
  for (StepPlace &place : places) {
    Recorder recorder(*driver, bundle, *modules, *place.mirror, {scratch.get(), weights->slots(), &memory},
                      /*isTraced=*/trace != nullptr);
    const std::pair<RecordedStep *, int64_t> graphs[] = {{&place.fewRows, limits.max_sequences},
                                                         {&place.allRows, limits.step_tokens}};
    for (const auto &[known, rows] : graphs) {
      if (rows > limits.step_tokens)
        continue;
      Expected<RecordedStep> recorded = recorder.record(bundle.program.entry(serveEntry), rows, stream.get());
      if (!recorded)
        return recorded.takeError();
      *known = std::move(*recorded);
    }
  }
  return driver->call<&Cuda::cuStreamSynchronize>(stream.get());
}

void CudaDevice::use(const void *const *other) {
  if (other != bundle.weights.slots())
    refused = Error{K2RT_UNSUPPORTED, "--placement", "moves experts between ranks, a GPU's program has one", ""};
}

void CudaDevice::upload(const k2rt_ir_step &step, bool wantsLogits) {
  StepPlace &place = next();
  place.step = step;
  place.draws = HostSampling::draws(step);
  place.wantsLogits = wantsLogits;
  place.mirror->fill(step);
  if (Status known = captures->checkKnown(step); !known)
    refused = known.takeError();
}

const RecordedStep &CudaDevice::recordedOf(const StepPlace &place) const {
  const bool isSmall = place.fewRows.graph.get() && place.step.token_rows <= bundle.manifest.limits.max_sequences;
  return isSmall ? place.fewRows : place.allRows;
}

/// Behind a step that was ended: once the word that did so can come no more.
Status CudaDevice::clearOutcome() {
  if (Status told = driver->call<&Cuda::cuStreamSynchronize>(stopping.get()); !told)
    return told;
  hasEnded = false;
  return stepOutcome->clear(stream.get());
}

Status CudaDevice::launch(const StepPlace &place) {
  if (Status current = context.makeCurrent(); !current)
    return current;
  if (Status cleared = hasEnded ? clearOutcome() : Status(); !cleared)
    return cleared;
  const k2rt_ir_step &step = place.step;
  if (Status copied = captures->copyToDevice(step, stream.get()); !copied)
    return copied;
  if (Status begun = driver->call<&Cuda::cuGraphLaunch>(recordedOf(place).graph.get(), stream.get()); !begun)
    return begun;
  if (const int64_t bytes = step.output_rows * bundle.manifest.vocab * 4;
      bytes > 0 && (place.wantsLogits || place.draws))
    if (Status copied = driver->call<&Cuda::cuMemcpyDtoHAsync_v2>(step.logits, logits.get(), static_cast<size_t>(bytes),
                                                                  stream.get());
        !copied)
      return copied;
  return driver->call<&Cuda::cuEventRecord>(place.done.get(), stream.get());
}

/// What a step that ends early has come to; or, unless it has ended, what of it does not end.
std::string CudaDevice::progress(bool hasEnded) const {
  const std::vector<const RecordedLaunch *> launches = recordedOf(first()).latest(first().mirror->begun());
  const std::string kernels = textOf(launches, hasEnded ? " and " : " or ", first().step, bundle.program);
  if (kernels.empty())
    return ", and no kernel of it has begun";
  return hasEnded ? ", it had come to " + kernels : ", and " + kernels + " does not end";
}

/// After a deadline or an interrupt: kernels are told to end.
Status CudaDevice::endEarly(bool isLate) {
  hasEnded = true;
  if (Status told = stepOutcome->stop(stopping.get()); !told)
    return told;
  const bool isEmulated = options.driver == emulatedDriver;
  const auto begin = std::chrono::steady_clock::now();
  CUresult result = CUDA_ERROR_NOT_READY;
  while (result == CUDA_ERROR_NOT_READY &&
         std::chrono::steady_clock::now() - begin < (isEmulated ? emulatedMercy : mercy)) {
    if (!isEmulated)
      std::this_thread::sleep_for(longestPause);
    result = driver->entries().cuStreamQuery(stream.get());
  }
  const std::string late = isLate ? progress(result != CUDA_ERROR_NOT_READY) : "";
  if (result == CUDA_ERROR_NOT_READY)
    driver->abandon();
  if (!isLate)
    return Error{K2RT_INTERRUPTED, "", "interrupted", ""};
  const nanoseconds limit = options.deadline.value_or(defaultStep);
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%g", std::chrono::duration<double>(limit).count());
  return Error{K2RT_DEVICE_FAILED, "step " + std::to_string(collected),
               std::string("has not ended within ") + seconds + " s" + late, "give it more time with --deadline"};
}

Status CudaDevice::waitForKernels() {
  const auto begin = std::chrono::steady_clock::now();
  const bool hasEnd = options.deadline || options.driver != emulatedDriver;
  for (nanoseconds pause = std::chrono::microseconds(20);;) {
    const CUresult result = driver->entries().cuEventQuery(first().done.get());
    if (result == CUDA_SUCCESS)
      return {};
    if (result != CUDA_ERROR_NOT_READY) {
      Error failed = driver->failure(callName<&Cuda::cuEventQuery>, result);
      failed.message += progress(/*hasEnded=*/true);
      return failed;
    }
    const nanoseconds spent = std::chrono::steady_clock::now() - begin;
    const bool isLate = hasEnd && spent > options.deadline.value_or(defaultStep);
    if (isLate || interrupted.load(std::memory_order_relaxed))
      return endEarly(isLate);
    if (spent < busy || options.driver == emulatedDriver) // which goes on when it is asked
      continue;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, longestPause);
  }
}

/// A call that fails ends the device: what it has enqueued of the step nobody knows.
Status CudaDevice::submit(k2rt_ir_step_fn) {
  if (refused)
    return *refused;
  if (interrupted.load())
    return Error{K2RT_INTERRUPTED, "", "interrupted", ""};
  StepPlace &place = next();
  place.begunNs = Trace::nowNs();
  if (Status launched = launch(place); !launched)
    return *(refused = launched.takeError());
  ++submitted;
  return {};
}

Status CudaDevice::collect() {
  if (collected == submitted)
    return {};
  Status done = context.makeCurrent();
  if (done)
    done = waitForKernels();
  if (done && interrupted.load())
    done = endEarly(/*isLate=*/false);
  if (done)
    done = outcome();
  if (done)
    done = finishFirst();
  collected = done ? collected + 1 : submitted;
  return done;
}

/// Of a step that is done: captures, samples and its place in the trace.
Status CudaDevice::finishFirst() {
  const StepPlace &place = first();
  const k2rt_ir_step &step = place.step;
  if (Status copied = captures->copyBack(step, stream.get()); !copied)
    return copied;
  if (captures->areWritten(step))
    if (Status waited = driver->call<&Cuda::cuStreamSynchronize>(stream.get()); !waited)
      return waited;
  if (step.sampling)
    std::copy_n(place.mirror->samples(), step.output_rows, static_cast<int32_t *>(step.samples));
  if (place.draws)
    sampling.run(step);
  last = {static_cast<const float *>(step.logits), static_cast<const int32_t *>(step.samples)};
  const int64_t begin = std::max(place.begunNs, lastNs);
  lastNs = Trace::nowNs();
  if (!trace)
    return {};
  Status done = recordedOf(place).trace(*driver, step, collected, begin, *trace);
  trace->record(workers(), {begin, lastNs, step.seq_rows, step.output_rows, step.layer_rows, collected, -1, 0});
  return done;
}

Status CudaDevice::outcome() {
  const k2rt_ir_gpu_status &status = first().mirror->status();
  if (status.result == 0)
    return {};
  hasEnded = true;
  (void)driver->call<&Cuda::cuStreamSynchronize>(stream.get()); // those behind it have nothing to do, and end at once
  const std::vector<RecordedLaunch> &launches = recordedOf(first()).launches;
  const auto number = static_cast<size_t>(status.launch);
  const RecordedLaunch failed = number - 1 < launches.size() ? launches[number - 1] : RecordedLaunch{-1};
  return kernelFailed(bundle, failed.kernel, status.result, weights->hostEntry(status.absent),
                      placeOf(failed, status.worker, bundle.manifest.device->workersPerCta, first().step));
}

} // namespace k2c::runtime

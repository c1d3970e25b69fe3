// What can be refused cheaply comes first; threads before memory, so that each touches its own part.
#include "device/cpu/CpuDevice.h"
#include "base/FormatBytes.h"
#include <mutex>

namespace k2c::runtime {

/// With every digit: what is needed may exceed what is allowed by little.
static std::string exactly(int64_t bytes) { return formatBytes(bytes) + " = " + std::to_string(bytes) + " bytes"; }

Status checkMemoryFits(const Manifest &manifest, int32_t threads, const Container &container) {
  const int64_t anonymous = manifest.memory.anonymousBytes(threads);
  const int64_t peak = manifest.memory.peakBytes(threads);
  const std::string remedy = "give the container more memory, or compile with smaller --max-sequences, --max-context "
                             "or --step-tokens";
  if (peak > container.memoryBytes)
    return Error{K2RT_OUT_OF_MEMORY, "memory",
                 "the bundle needs " + exactly(peak) + ", " + container.memorySource + " allows " +
                     exactly(container.memoryBytes),
                 remedy};
  if (anonymous > container.availableBytes)
    return Error{K2RT_OUT_OF_MEMORY, "memory",
                 "the bundle needs " + exactly(anonymous) + " beside its weights, " +
                     exactly(container.availableBytes) + " are available",
                 "end other programs, or " + remedy};
  return {};
}

static Expected<int32_t> chooseThreads(int32_t asked, const Container &container) {
  if (asked < 0 || asked > maxThreads)
    return Error{"--threads", "is " + std::to_string(asked) + ", must be within 1.." + std::to_string(maxThreads), ""};
  return asked == 0 ? container.defaultThreads : asked;
}

Expected<std::unique_ptr<CpuDevice>> CpuDevice::create(const Bundle &bundle, const CpuOptions &options) {
  const Container container = options.container ? *options.container : readContainer();
  Expected<int32_t> threads = chooseThreads(options.threads, container);
  if (!threads)
    return threads.takeError();
  Status fits = checkMemoryFits(bundle.manifest, *threads, container);
  if (!fits)
    return fits.takeError();
  std::unique_ptr<CpuDevice> device(new CpuDevice(bundle, container, options.trust));
  Expected<std::unique_ptr<WorkerPool>> pool = WorkerPool::start(*threads, container);
  if (!pool)
    return pool.takeError();
  device->pool = std::move(*pool);
  return device;
}

Expected<std::byte *> CpuDevice::allocate(int64_t bytes, const char *purpose, MemoryUse use) {
  Expected<Region> region = Region::allocate(bytes, purpose);
  if (!region)
    return region.takeError();
  std::vector<Region> &regions = use == MemoryUse::program ? ofProgram : ofEngine;
  regions.push_back(std::move(*region));
  return regions.back().data();
}

Status CpuDevice::load(const RankMemory &memory, Trace *trace) {
  std::vector<void *> bases;
  for (int32_t worker = 0; worker < pool->count(); ++worker) {
    Expected<Region> region = Region::allocate(bundle.manifest.memory.scratchPerWorker, "scratch");
    if (!region)
      return region.takeError();
    bases.push_back(region->data());
    scratch.push_back(std::move(*region));
  }
  if (Status loaded = bringIn(); !loaded)
    return loaded;
  executor = std::make_unique<Executor>(bundle, *pool, memory, bases, trace);
  countMisplaced();
  return {};
}

/// Touches all memory and brings in the weights, each worker its own part; checks them unless they are trusted.
Status CpuDevice::bringIn() {
  std::optional<WeightCheck> check;
  if (!trust)
    check.emplace(bundle.weights);
  const ReadAdvice advice(bundle.weights, limits.nodes.size() > 1);
  pool->run([&](int32_t worker) {
    auto owns = [&binding = pool->binding(worker)](int64_t chunk) { return binding.owns(chunk); };
    for (const Region &region : ofProgram)
      region.populate(owns);
    scratch[worker].populate();
    for (const Region &region : ofEngine)
      region.populate(owns);
    populateWeights(bundle.weights, pool->binding(worker), worker, pool->count(), check ? &*check : nullptr);
  });
  if (!check)
    return {};
  pool->run([&](int32_t worker) { check->compareRest(pool->binding(worker), worker, pool->count()); });
  return check->result();
}

void CpuDevice::countMisplaced() {
  if (limits.nodes.size() == 1)
    return;
  std::mutex adding;
  pool->run([&](int32_t worker) {
    const int32_t node = limits.nodes[pool->binding(worker).node].memory;
    const WeightPageCounts own = countOwnPages(bundle.weights, node, worker, pool->count());
    std::lock_guard<std::mutex> hold(adding);
    pageCounts.add(own);
  });
}

std::vector<std::pair<const std::byte *, int64_t>> CpuDevice::memory() const {
  std::vector<std::pair<const std::byte *, int64_t>> parts;
  for (const MappedFile &file : bundle.weights.mappedFiles())
    parts.emplace_back(static_cast<const std::byte *>(file.data()), file.size());
  for (const std::vector<Region> *regions : {&ofProgram, &scratch})
    for (const Region &region : *regions)
      parts.emplace_back(region.data(), region.size());
  return parts;
}

Expected<CpuEngine> CpuEngine::create(const Bundle &bundle, const CpuOptions &onCpu, const EngineOptions &options) {
  Expected<std::unique_ptr<CpuDevice>> device = CpuDevice::create(bundle, onCpu);
  if (!device)
    return device.takeError();
  CpuDevice *kept = device->get();
  Expected<std::unique_ptr<Engine>> engine = Engine::create(bundle, std::move(*device), options);
  if (!engine)
    return engine.takeError();
  return CpuEngine{std::move(*engine), kept};
}

} // namespace k2c::runtime

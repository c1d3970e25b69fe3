// What can be refused cheaply comes first; threads before memory, so that each touches its own part.
//
// Of several ranks on a host each has its part of the processors. Whether their memory fits is asked once, for all of
// them, before the first takes any: afterwards the others' would look like that of strangers.
#include "device/cpu/CpuDevice.h"
#include "base/FormatBytes.h"
#include "base/Utf8.h"
#include <algorithm>
#include <mutex>
#include <new>

namespace k2c::runtime {

/// With every digit: what is needed may exceed what is allowed by little.
static std::string exactly(int64_t bytes) { return formatBytes(bytes) + " = " + std::to_string(bytes) + " bytes"; }

/// Of the weights of a rank, what no other need have: experts and parts; of stages all.
static int64_t ownWeights(const Manifest &manifest) {
  if (!manifest.ranks.stages.empty())
    return manifest.memory.weights;
  int64_t bytes = 0;
  for (const SlotShares &run : manifest.shares)
    if (run.parts > 1 || run.share.experts > 0)
      bytes += run.slots / run.parts * k2rt_share_blocks(&run.share) * run.share.items * run.share.item_bytes;
  return bytes;
}

Status checkMemoryFits(const Manifest &manifest, int32_t threads, const Container &container, int32_t ranks) {
  const MemoryCertificate &memory = manifest.memory;
  const int64_t anonymous = ranks * memory.anonymousBytes(threads);
  const int64_t peak =
      k2rt_host_bytes(ranks, memory.peakBytes(threads), memory.weights + memory.code - ownWeights(manifest));
  const std::string what = ranks == 1 ? "the bundle needs " : std::to_string(ranks) + " ranks of the bundle need ";
  const std::string remedy = "give the container more memory, or compile with smaller --max-sequences, --max-context "
                             "or --step-tokens";
  if (peak > container.memoryBytes)
    return Error{K2RT_OUT_OF_MEMORY, "memory",
                 what + exactly(peak) + ", " + container.memorySource + " allows " + exactly(container.memoryBytes),
                 remedy};
  if (anonymous > container.availableBytes)
    return Error{K2RT_OUT_OF_MEMORY, "memory",
                 what + exactly(anonymous) + " beside its weights, " + exactly(container.availableBytes) +
                     " are available",
                 "end other programs, or " + remedy};
  return {};
}

Expected<int32_t> threadsOf(const Manifest &manifest, const CpuOptions &options, const Container &host) {
  const int32_t asked = options.threads;
  if (asked < 0 || asked > maxThreads)
    return Error{"--threads", "is " + std::to_string(asked) + ", must be within 1.." + std::to_string(maxThreads), ""};
  if (asked > 0)
    return asked;
  const int32_t allowed = partOf(host, options.share).defaultThreads;
  const bool isBounded = manifest.ranks.areSeveral() && manifest.cores > 0;
  return isBounded ? static_cast<int32_t>(std::min<int64_t>(allowed, manifest.cores)) : allowed;
}

Expected<std::unique_ptr<CpuDevice>> CpuDevice::create(const Bundle &bundle, const CpuOptions &options) {
  const Container host = options.container ? *options.container : readContainer();
  const HostShare &share = options.share;
  Expected<int32_t> threads = threadsOf(bundle.manifest, options, host);
  if (!threads)
    return threads.takeError();
  if (share.ranks == 1) // who starts several asks for all of them
    if (Status fits = checkMemoryFits(bundle.manifest, *threads, host); !fits)
      return fits.takeError();
  const Container container = partOf(host, share);
  std::unique_ptr<CpuDevice> device(new CpuDevice(bundle, container, options.trust));
  Expected<std::unique_ptr<WorkerPool>> pool =
      WorkerPool::start(*threads, container, {share.isApart(host), share.ranks > 1 && share.isCrowded(host, *threads)});
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

Expected<CpuEngine> CpuEngine::create(const Bundle &bundle, const CpuOptions &onCpu, const EngineOptions &options,
                                      std::unique_ptr<Exchange> exchange) {
  Expected<std::unique_ptr<CpuDevice>> device = CpuDevice::create(bundle, onCpu);
  if (!device) {
    if (exchange)
      exchange->fail(device.error());
    return device.takeError();
  }
  CpuDevice *kept = device->get();
  Expected<std::unique_ptr<Engine>> engine = Engine::create(bundle, std::move(*device), options, std::move(exchange));
  if (!engine)
    return engine.takeError();
  return CpuEngine{std::move(*engine), kept};
}

/// `exchange` is the rank's once that has been made, which tells what fails from then on.
static Status serveOpened(const std::function<Expected<Bundle>()> &open, const CpuOptions &onCpu,
                          std::unique_ptr<Exchange> &exchange, const std::function<void(RankMember *)> &whenServing) {
  Expected<Bundle> bundle = open();
  if (!bundle)
    return bundle.takeError();
  Expected<std::unique_ptr<CpuDevice>> device = CpuDevice::create(*bundle, onCpu);
  if (!device)
    return device.takeError();
  std::unique_ptr<Trace> trace;
  if (onCpu.traces) {
    Expected<std::unique_ptr<Trace>> created = Trace::create((*device)->workers());
    if (!created)
      return created.takeError();
    trace = std::move(*created);
  }
  Expected<std::unique_ptr<RankMember>> member =
      RankMember::create(*bundle, std::move(*device), trace.get(), std::move(exchange));
  if (!member)
    return member.takeError();
  whenServing(member->get());
  Status served = (*member)->serve();
  whenServing(nullptr);
  return served;
}

Status serveRank(const std::function<Expected<Bundle>()> &open, const CpuOptions &onCpu,
                 std::unique_ptr<Exchange> exchange, const std::function<void(RankMember *)> &whenServing) {
  const std::string place = "rank " + std::to_string(exchange->rank());
  Status served;
  try {
    served = serveOpened(open, onCpu, exchange, whenServing);
  } catch (const std::bad_alloc &) {
    served = Error{K2RT_OUT_OF_MEMORY, place, "the system refuses memory", ""};
  } catch (const std::exception &unexpected) {
    served = Error{K2RT_SYSTEM, place, shortened(unexpected.what(), maxQuoted), ""};
  }
  if (!served && exchange)
    exchange->fail(served.error());
  return served;
}

} // namespace k2c::runtime

// Allocation order: what can be refused cheaply first; threads before memory, so that each touches its own part.
#include "engine/Session.h"
#include <mutex>

namespace k2rt {

static std::string megabytes(int64_t bytes) {
  return std::to_string(bytes) + " bytes (" + std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB)";
}

Status checkMemoryFits(const Manifest &manifest, int32_t threads, const Container &container) {
  const int64_t anonymous = manifest.memory.anonymousBytes(threads);
  const int64_t peak = manifest.memory.peakBytes(threads);
  const std::string remedy = "give the container more memory, or compile with smaller --max-sequences, --max-context "
                             "or --step-tokens";
  if (peak > container.memoryBytes)
    return Error{K2RT_OUT_OF_MEMORY, "memory",
                 "the bundle needs " + megabytes(peak) + ", " + container.memorySource + " allows " +
                     megabytes(container.memoryBytes),
                 remedy};
  if (anonymous > container.availableBytes)
    return Error{K2RT_OUT_OF_MEMORY, "memory",
                 "the bundle needs " + megabytes(anonymous) + " beside its weights, " +
                     megabytes(container.availableBytes) + " are available",
                 "end other programs, or " + remedy};
  return {};
}

static Result<int32_t> chooseThreads(int32_t asked, const Container &container) {
  if (asked < 0 || asked > mostThreads)
    return Error{K2RT_INVALID_ARGUMENT, "--threads",
                 "is " + std::to_string(asked) + ", must be within 1.." + std::to_string(mostThreads), ""};
  return asked == 0 ? container.defaultThreads : asked;
}

Result<std::unique_ptr<Session>> Session::create(const Bundle &bundle, const SessionOptions &options) {
  const Container container = options.container ? *options.container : readContainer();
  Result<int32_t> threads = chooseThreads(options.threads, container);
  if (!threads)
    return threads.takeError();
  if (options.chunk < 0)
    return Error{K2RT_INVALID_ARGUMENT, "--chunk", "is " + std::to_string(options.chunk) + ", must be at least 1", ""};
  Status fits = checkMemoryFits(bundle.manifest, *threads, container);
  if (!fits)
    return fits.takeError();
  Result<StepArrays> arrays = StepArrays::allocate(bundle.manifest);
  if (!arrays)
    return arrays.takeError();
  std::unique_ptr<Session> session(new Session(bundle, std::move(*arrays), container));
  session->chunkTokens = options.chunk > 0 ? options.chunk : bundle.manifest.limits.step_tokens;
  if (!options.traceFile.empty()) {
    Result<std::unique_ptr<Trace>> trace = Trace::create(options.traceFile, *threads);
    if (!trace)
      return trace.takeError();
    session->trace = std::move(*trace);
  }
  Result<std::unique_ptr<WorkerPool>> pool = WorkerPool::start(*threads, container);
  if (!pool)
    return pool.takeError();
  session->pool = std::move(*pool);
  Status allocated = session->allocate(options.trust);
  if (!allocated)
    return allocated.takeError();
  session->countMisplaced();
  return session;
}

Status Session::allocate(bool trust) {
  const Manifest &manifest = theBundle.manifest;
  ProgramMemory memory;
  auto take = [&](int64_t bytes, const char *purpose, void *&base) -> Status {
    Result<Region> region = Region::allocate(bytes, purpose);
    if (!region)
      return region.takeError();
    base = region->data();
    regions.push_back(std::move(*region));
    return {};
  };
  for (const CachePlane &plane : manifest.planes) {
    memory.planes.push_back(nullptr);
    if (Status taken = take(plane.bytes(), "cache", memory.planes.back()); !taken)
      return taken;
  }
  if (Status taken = take(manifest.memory.arena, "arena", memory.arena); !taken)
    return taken;
  const size_t shared = regions.size();
  for (int32_t worker = 0; worker < pool->count(); ++worker) {
    memory.scratch.push_back(nullptr);
    if (Status taken = take(manifest.memory.scratchPerWorker, "scratch", memory.scratch.back()); !taken)
      return taken;
  }
  for (int64_t count : manifest.groupPages)
    pages.emplace_back(count);
  std::optional<WeightCheck> check;
  if (!trust)
    check.emplace(theBundle.weights);
  const ReadAdvice advice(theBundle.weights, limits.nodes.size() > 1);
  pool->run([&](int32_t worker) {
    auto owns = [&place = pool->place(worker)](int64_t chunk) { return place.owns(chunk); };
    for (size_t i = 0; i < shared; ++i)
      regions[i].populate(owns);
    regions[shared + worker].populate();
    arrays.populate(owns);
    populateWeights(theBundle.weights, pool->place(worker), worker, pool->count(), check ? &*check : nullptr);
  });
  if (check) {
    pool->run([&](int32_t worker) { check->compareRest(pool->place(worker), worker, pool->count()); });
    if (Status right = check->result(); !right)
      return right;
  }
  executor = std::make_unique<Executor>(theBundle, *pool, std::move(memory), trace.get());
  return {};
}

void Session::countMisplaced() {
  if (limits.nodes.size() == 1)
    return;
  std::mutex adding;
  pool->run([&](int32_t worker) {
    const int32_t node = limits.nodes[pool->place(worker).node].memory;
    const WeightCensus own = countOwnPages(theBundle.weights, node, worker, pool->count());
    std::lock_guard<std::mutex> hold(adding);
    census.add(own);
  });
}

std::vector<std::pair<const std::byte *, int64_t>> Session::memory() const {
  std::vector<std::pair<const std::byte *, int64_t>> parts;
  for (const MappedFile &file : theBundle.weights.mappedFiles())
    parts.emplace_back(static_cast<const std::byte *>(file.data()), file.size());
  for (const Region &region : regions)
    parts.emplace_back(region.data(), region.size());
  return parts;
}

Status Session::finishTrace() { return trace ? trace->write(theBundle.program) : Status(); }

} // namespace k2rt

// Two buffers take turns: while one is on its way to the device, the next piece is hashed and copied into the other.
// A piece is what has a hash. Slots may share a range, which is there once.
#include "device/cuda/DeviceWeights.h"
#include "base/Hash.h"
#include "k2rt/reserve.h"
#include <cstring>
#include <map>

namespace k2c::runtime {

namespace {

constexpr int64_t alignment = 512; // of what TMA and vector loads read

int64_t aligned(int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

/// Pinned memory that a stream copies from, one half after the other.
class Staging {
public:
  static_assert(K2RT_GPU_STAGING_BYTES == 2 * hugePageBytes);

  Staging(const Driver &driver, CUstream stream) : driver(driver), stream(stream) {}

  Status create() {
    Expected<PinnedBytes> pinned = allocatePinned(driver, K2RT_GPU_STAGING_BYTES, "weights on their way");
    if (!pinned)
      return pinned.takeError();
    memory = std::move(*pinned);
    for (Event &done : copied) {
      Expected<Event> created = createEvent(driver);
      if (!created)
        return created.takeError();
      done = std::move(*created);
    }
    return {};
  }

  /// At most hugePageBytes.
  Status copy(CUdeviceptr to, const void *from, size_t bytes) {
    const size_t half = pieces++ % 2;
    if (pieces > 2)
      if (Status done = driver.call<&Cuda::cuEventSynchronize>(copied[half].get()); !done)
        return done;
    auto *buffer = static_cast<std::byte *>(memory.get()) + half * hugePageBytes;
    std::memcpy(buffer, from, bytes);
    if (Status begun = driver.call<&Cuda::cuMemcpyHtoDAsync_v2>(to, static_cast<const void *>(buffer), bytes, stream);
        !begun)
      return begun;
    return driver.call<&Cuda::cuEventRecord>(copied[half].get(), stream);
  }

  Status finish() const { return driver.call<&Cuda::cuStreamSynchronize>(stream); }

private:
  const Driver &driver;
  const CUstream stream;
  PinnedBytes memory;
  Event copied[2];
  size_t pieces = 0;
};

Status copyRange(Staging &staging, const Weights &weights, const WeightRange &range, CUdeviceptr to, bool trust) {
  for (int64_t begin = 0, chunk = 0; begin < range.bytes; begin += hugePageBytes, ++chunk) {
    const auto bytes = static_cast<size_t>(std::min(hugePageBytes, range.bytes - begin));
    if (const uint64_t hash = trust ? 0 : hashOf(range.base + begin, bytes); !trust && hash != range.hashes[chunk])
      return weights.damaged(range, static_cast<size_t>(chunk), hash);
    if (Status copied = staging.copy(to + begin, range.base + begin, bytes); !copied)
      return copied;
  }
  return {};
}

const void *asPointer(CUdeviceptr address) { return reinterpret_cast<const void *>(address); }

} // namespace

int64_t DeviceWeights::bytesOf(const Weights &weights) {
  int64_t bytes = 0;
  for (const WeightRange &range : weights.ranges())
    bytes += aligned(range.bytes);
  return bytes;
}

Expected<DeviceWeights> DeviceWeights::upload(const Driver &driver, const Bundle &bundle, CUstream stream, bool trust) {
  const Weights &weights = bundle.weights;
  const k2rt_ir_program &program = bundle.program.description();
  const auto *experts = static_cast<const int64_t *>(program.slot_experts);
  int64_t entries = 0;
  for (int32_t slot = 0; slot < program.n_weights; ++slot)
    entries += experts[slot];
  DeviceWeights made;
  Expected<DeviceBytes> memory = allocateOnDevice(driver, bytesOf(weights), "weights");
  if (!memory)
    return memory.takeError();
  Expected<DeviceBytes> ofTables = allocateOnDevice(driver, entries * 8, "tables of experts");
  if (!ofTables)
    return ofTables.takeError();
  Staging staging(driver, stream);
  if (Status created = staging.create(); !created)
    return created.takeError();
  std::map<const void *, CUdeviceptr> places = {{nullptr, 0}};
  CUdeviceptr at = memory->get();
  for (const WeightRange &range : weights.ranges()) {
    if (range.base)
      places[range.base] = at;
    if (Status copied = copyRange(staging, weights, range, at, trust); !copied) {
      (void)staging.finish(); // before its memory goes
      return copied.takeError();
    }
    at += static_cast<CUdeviceptr>(aligned(range.bytes));
  }
  std::vector<CUdeviceptr> tables;
  at = ofTables->get();
  for (int32_t slot = 0; slot < program.n_weights; ++slot) {
    const void *const base = weights.slots()[slot];
    const auto count = static_cast<size_t>(experts[slot]);
    made.bases.push_back(asPointer(count == 0 ? places[base] : at));
    if (count == 0)
      continue;
    const auto *table = static_cast<const void *const *>(base);
    made.tables.push_back({at, table, count});
    for (size_t expert = 0; expert < count; ++expert)
      tables.push_back(places[table[expert]]);
    at += count * sizeof(CUdeviceptr);
  }
  Status done;
  for (size_t begin = 0; done && begin < tables.size(); begin += hugePageBytes / sizeof(CUdeviceptr)) {
    const size_t count = std::min(tables.size() - begin, hugePageBytes / sizeof(CUdeviceptr));
    done =
        staging.copy(ofTables->get() + begin * sizeof(CUdeviceptr), tables.data() + begin, count * sizeof(CUdeviceptr));
  }
  if (Status finished = staging.finish(); done)
    done = std::move(finished);
  if (!done)
    return done.takeError();
  made.memory = std::move(*memory);
  made.tableMemory = std::move(*ofTables);
  return made;
}

const void *DeviceWeights::hostEntry(const void *entry) const {
  const auto address = reinterpret_cast<CUdeviceptr>(entry);
  for (const Table &table : tables)
    if (const CUdeviceptr offset = address - table.device; offset / sizeof(CUdeviceptr) < table.experts)
      return table.host + offset / sizeof(CUdeviceptr);
  return nullptr;
}

} // namespace k2c::runtime

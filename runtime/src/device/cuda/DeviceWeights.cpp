// Two buffers take turns: while one is on its way to the device, the next chunk is read into the other, of a blob or of
// the checkpoint's files, and hashed there. A chunk is what has a hash.
//
// Ranges lie one behind the other in one piece of device memory, and slots that share a range have one address. A slot
// of routed experts is a table of addresses in device memory, too; a kernel that meets an empty entry says which entry
// it is, and hostEntry finds it among those of Weights, which know its layer and expert.
#include "device/cuda/DeviceWeights.h"
#include "base/Hash.h"
#include "k2rt/reserve.h"
#include <cstring>

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

  /// Sends `bytes` bytes, at most hugePageBytes, which fill(buffer) writes.
  template <class Fill> Status copy(CUdeviceptr to, size_t bytes, Fill fill) {
    const size_t half = chunks++ % 2;
    if (chunks > 2)
      if (Status done = driver.call<&Cuda::cuEventSynchronize>(copied[half].get()); !done)
        return done;
    auto *buffer = static_cast<std::byte *>(memory.get()) + half * hugePageBytes;
    if (Status filled = fill(buffer); !filled)
      return filled;
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
  size_t chunks = 0;
};

Status copyRange(Staging &staging, const Weights &weights, const WeightRange &range, CUdeviceptr to, bool trust) {
  for (int64_t begin = 0, chunk = 0; begin < range.bytes; begin += hugePageBytes, ++chunk) {
    const int64_t bytes = std::min(hugePageBytes, range.bytes - begin);
    auto fill = [&](std::byte *buffer) -> Status {
      if (Status read = weights.read(range, begin, buffer, bytes); !read || trust)
        return read;
      const uint64_t hash = hashOf(buffer, static_cast<size_t>(bytes));
      return hash == range.hashes[chunk] ? Status() : weights.damaged(range, static_cast<size_t>(chunk), hash);
    };
    if (Status copied = staging.copy(to + begin, static_cast<size_t>(bytes), fill); !copied)
      return copied;
  }
  return {};
}

const void *asPointer(CUdeviceptr address) { return reinterpret_cast<const void *>(address); }

} // namespace

/// Where each range begins, and behind these where the last one ends.
static std::vector<int64_t> offsetsOf(const Weights &weights) {
  std::vector<int64_t> offsets = {0};
  for (const WeightRange &range : weights.ranges())
    offsets.push_back(offsets.back() + aligned(range.bytes));
  return offsets;
}

int64_t DeviceWeights::bytesOf(const Weights &weights) { return offsetsOf(weights).back(); }

Status DeviceWeights::take(const Driver &driver, const Bundle &bundle) {
  offsets = offsetsOf(bundle.weights);
  const k2rt_ir_program &program = bundle.program.description();
  const auto *experts = static_cast<const int64_t *>(program.slot_experts);
  int64_t entries = 0;
  for (int32_t slot = 0; slot < program.n_weights; ++slot)
    entries += experts[slot];
  Expected<DeviceBytes> taken = allocateOnDevice(driver, offsets.back(), "weights");
  if (!taken)
    return taken.takeError();
  memory = std::move(*taken);
  Expected<DeviceBytes> ofTables = allocateOnDevice(driver, entries * 8, "tables of experts");
  if (!ofTables)
    return ofTables.takeError();
  tableMemory = std::move(*ofTables);
  return {};
}

/// Addresses of slots and of the entries of their tables, which are what `entries` has then.
void DeviceWeights::addSlots(const Bundle &bundle, std::vector<CUdeviceptr> &entries) {
  const auto &ranges = bundle.weights.ranges();
  auto placeOf = [&](const std::vector<size_t> &numbers, size_t i) {
    const size_t range = i < numbers.size() ? numbers[i] : Weights::noRange;
    const bool isThere = range != Weights::noRange && ranges[range].bytes > 0;
    return isThere ? memory.get() + static_cast<CUdeviceptr>(offsets[range]) : 0;
  };
  const k2rt_ir_program &program = bundle.program.description();
  CUdeviceptr at = tableMemory.get();
  for (int32_t slot = 0; slot < program.n_weights; ++slot) {
    const std::vector<size_t> &numbers = bundle.weights.rangesOf(static_cast<size_t>(slot));
    const auto count = static_cast<size_t>(static_cast<const int64_t *>(program.slot_experts)[slot]);
    bases.push_back(asPointer(count == 0 ? placeOf(numbers, 0) : at));
    if (count == 0)
      continue;
    tables.push_back({at, static_cast<const void *const *>(bundle.weights.slots()[slot]), count});
    for (size_t expert = 0; expert < count; ++expert)
      entries.push_back(placeOf(numbers, expert));
    at += count * sizeof(CUdeviceptr);
  }
}

Expected<DeviceWeights> DeviceWeights::upload(const Driver &driver, const Bundle &bundle, CUstream stream, bool trust) {
  DeviceWeights made;
  if (Status taken = made.take(driver, bundle); !taken)
    return taken.takeError();
  Staging staging(driver, stream);
  Status done = staging.create();
  const auto &ranges = bundle.weights.ranges();
  for (size_t i = 0; done && i < ranges.size(); ++i)
    done = copyRange(staging, bundle.weights, ranges[i], made.memory.get() + static_cast<CUdeviceptr>(made.offsets[i]),
                     trust);
  std::vector<CUdeviceptr> entries;
  made.addSlots(bundle, entries);
  constexpr size_t perPiece = hugePageBytes / sizeof(CUdeviceptr);
  for (size_t begin = 0; done && begin < entries.size(); begin += perPiece) {
    const size_t bytes = std::min(entries.size() - begin, perPiece) * sizeof(CUdeviceptr);
    done = staging.copy(made.tableMemory.get() + begin * sizeof(CUdeviceptr), bytes, [&](std::byte *buffer) {
      std::memcpy(buffer, entries.data() + begin, bytes);
      return Status();
    });
  }
  if (Status finished = staging.finish(); done) // before its memory goes
    done = std::move(finished);
  if (!done)
    return done.takeError();
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

//===- Packer.cpp - A weight map and a checkpoint become blobs ------------===//
//
// Check every slot, pack slots on a few threads (each takes the next one), link shared blobs into the bundle, write
// the index last: a bundle with an index is complete.
//
//===----------------------------------------------------------------------===//
#include "k2c/Weights/Packer.h"

#include "OperandStream.h"
#include "Reference.h"
#include "SlotPacker.h"
#include "base/Container.h"
#include "base/Utf8.h"
#include "k2c/Weights/WeightIndex.h"
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <unistd.h>

namespace fs = std::filesystem;

namespace k2c {

using namespace weights;

namespace {

/// The state the worker threads share.
class PackRun {
public:
  /// Operands go to `store`, tables to `tables` (the bundle's own folder).
  PackRun(const WeightMap &map, const TensorSource &tensors, const BlobStore &store, const BlobStore &tables,
          const PackOptions &options)
      : map(map), tensors(tensors), store(store), tables(tables), options(options), total(map.totalBytes()),
        packed(map.slots.size()) {}

  /// Packs all slots. Error: the first that occurred.
  Status run();
  const std::vector<PackedSlot> &slots() const { return packed; }

private:
  void work();
  Expected<PackedSlot> packSlot(const WeightSlot &slot);
  bool advance(int64_t bytes);

  const WeightMap &map;
  const TensorSource &tensors;
  const BlobStore &store, &tables;
  const PackOptions &options;
  const int64_t total;
  std::vector<PackedSlot> packed; // each entry is written by one thread
  std::atomic<size_t> next{0};
  std::atomic<bool> stopped{false};
  std::mutex mutex; // done, failure, progress calls
  int64_t done = 0;
  Status failure;
};

} // namespace

Status PackRun::run() {
  int threads = options.threads > 0 ? options.threads : readContainer().defaultThreads;
  threads = int(std::min<size_t>(threads, map.slots.size()));
  std::vector<std::thread> pool;
  for (int i = 1; i < threads; ++i)
    pool.emplace_back([this] { work(); });
  work();
  for (std::thread &thread : pool)
    thread.join();
  return failure;
}

void PackRun::work() {
  for (size_t i = next++; i < map.slots.size() && !stopped; i = next++) {
    Expected<PackedSlot> slot = packSlot(map.slots[i]);
    if (slot) {
      packed[i] = std::move(*slot);
      continue;
    }
    std::lock_guard<std::mutex> lock(mutex);
    if (!stopped.exchange(true))
      failure = slot.takeError();
  }
}

Expected<PackedSlot> PackRun::packSlot(const WeightSlot &slot) try {
  int64_t counted = 0, bytes = rangeBytes(slot);
  Expected<PackedSlot> result =
      std::holds_alternative<Table>(slot.transform) ? packTable(slot, tables)
      : map.isReference
          ? referToOperand(slot, tensors, [&](int64_t count) { return counted += count, advance(count); })
          : packOperand(
                slot, tensors, store, [&](int64_t expert) { return !options.takes || options.takes(slot, expert); },
                [&](int64_t count) { return counted += count, advance(count); });
  advance(bytes - counted); // padding; a table
  return result;
} catch (const std::bad_alloc &) {
  return Error{"weights '" + shortened(slot.family) + "'", "not enough memory to pack it",
               "use fewer threads or a larger limit"};
}

bool PackRun::advance(int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex);
  done += bytes;
  if (options.progress && !stopped)
    options.progress(done, total);
  return !stopped;
}

/// Makes `file` of the shared folder appear in the bundle, complete from the first moment: a link, or a copy where the
/// folders are of two file systems.
static Status linkInto(const std::string &from, const std::string &to, const std::string &file) {
  const std::string source = from + "/" + file, target = to + "/" + file, temporary = target + ".tmp";
  ::unlink(temporary.c_str());
  std::error_code code;
  if (::link(source.c_str(), temporary.c_str()) != 0) {
    fs::copy_file(source, temporary, code);
    Descriptor copy(::open(temporary.c_str(), O_RDONLY | O_CLOEXEC));
    if (!code && (copy.number < 0 || ::fdatasync(copy.number) != 0))
      code = std::error_code(errno, std::generic_category());
  }
  if (!code)
    fs::rename(temporary, target, code);
  ::unlink(temporary.c_str()); // two links of one file are not renamed
  if (code)
    return diskError(target, "cannot copy from the shared folder", code.value());
  return Status::success();
}

Status checkLayouts(const WeightMap &map) {
  for (const WeightSlot &slot : map.slots)
    if (map.isReference)
      if (Status status = checkReference(slot); !status)
        return status;
  return Status::success();
}

Status checkSources(const WeightMap &map, const TensorSource &tensors) {
  for (const WeightSlot &slot : map.slots) {
    if (std::holds_alternative<Table>(slot.transform))
      continue;
    if (map.isReference) {
      if (Expected<std::vector<FilePiece>> pieces = piecesOf(slot, tensors); !pieces)
        return pieces.takeError();
    } else if (Expected<OperandStream> stream = OperandStream::open(tensors, slot); !stream) {
      return stream.takeError();
    }
  }
  return Status::success();
}

/// Opens a folder of blobs; what an earlier index of the bundle says of them decides whether they are damaged.
static Expected<BlobStore> openStore(const std::string &folder, const std::string &bundle) {
  Expected<BlobStore> store = BlobStore::open(folder);
  if (!store)
    return store;
  if (Expected<WeightIndex> earlier = readWeightIndex(bundle))
    for (const IndexedSlot &slot : earlier->slots)
      for (const std::optional<BlobRange> &range : slot.ranges)
        if (range && range->pieces.empty())
          store->expect(*range);
  return store;
}

Expected<PackReport> packWeights(const WeightMap &map, const TensorSource &tensors, const std::string &bundle,
                                 const PackOptions &options) {
  if (Status status = checkSources(map, tensors); !status)
    return status.takeError();
  std::string folder = bundle + "/weights";
  bool shared = !options.sharedFolder.empty();
  Expected<BlobStore> own = openStore(folder, bundle);
  if (!own)
    return own.takeError();
  Expected<BlobStore> store = shared ? openStore(options.sharedFolder, bundle) : *own;
  if (!store)
    return store.takeError();

  PackRun run(map, tensors, *store, *own, options);
  if (Status status = run.run(); !status)
    return status.takeError();
  if (Status status = store->sync(); !status)
    return status.takeError();

  PackReport report;
  WeightIndex index;
  if (map.isReference)
    index.files = tensors.files();
  std::set<std::string> linked;
  RunningHash common;
  for (const WeightSlot &slot : map.slots) {
    const PackedSlot &packed = run.slots()[slot.slot];
    (packed.writtenBytes == 0 ? report.reused : report.written) += 1;
    report.writtenBytes += packed.writtenBytes;
    IndexedSlot indexed{slot.slot, slot.family, slot.layer, {}, slot.experts > 0};
    for (const std::optional<BlobRange> &range : packed.ranges) {
      if (range && shared && !std::holds_alternative<Table>(slot.transform) && linked.insert(range->file).second)
        if (Status status = linkInto(store->folder(), folder, range->file); !status)
          return status.takeError();
      const std::string &name = range ? range->name : packed.leftOut;
      if (!indexed.isTable)
        common.update(name.data(), name.size());
      indexed.ranges.push_back(range);
    }
    index.slots.push_back(std::move(indexed));
  }
  if (Status status = writeWeightIndex(index, bundle); !status)
    return status.takeError();
  own->removeFinishedList();
  report.common = common.value();
  return report;
}

} // namespace k2c

//===- SlotPacker.cpp - One slot into ranges of blobs ---------------------===//
//
// The name of a range is known when its sources have been read. A first run packs while it reads. When the folder had a
// range of the right size at the start (a resumed run, another placement of the same experts), the sources are read
// once for the name alone, and written only when no blob has it:
//
//   slot of experts   0   1   2   3          a blob that is there   0 2 3 ..        a new blob   1
//
// Experts lie in a blob in the order of the slot that was packed first. Rejected: the order of their names, which would
// give renumbered experts the same file in two folders that share nothing; the sources would have to be read twice
// always. A range begins on a page, not on a huge one (Architecture, "Experts are ranges").
//
//===----------------------------------------------------------------------===//
#include "SlotPacker.h"

#include "OperandStream.h"
#include "base/Utf8.h"
#include <algorithm>

namespace k2c::weights {

/// The name of the range that `slot`, which has one, would be.
static Expected<std::string> nameOf(const WeightSlot &slot, const TensorSource &tensors) {
  Expected<OperandStream> stream = OperandStream::open(tensors, slot);
  if (!stream)
    return stream.takeError();
  if (Status status = stream->skim(); !status)
    return status.takeError();
  return stream->rangeName();
}

/// The range that `slot`, which has one, would be; nothing when no blob has it.
static Expected<std::optional<BlobRange>> findRange(const WeightSlot &slot, const TensorSource &tensors,
                                                    const BlobStore &store) {
  const int64_t bytes = rangeBytes(slot);
  if (!store.hadSize(bytes))
    return std::optional<BlobRange>();
  Expected<std::string> name = nameOf(slot, tensors);
  if (!name)
    return name.takeError();
  return store.find(*name, bytes);
}

/// Appends the range of `slot` to the blob.
static Status writeRange(const WeightSlot &slot, const TensorSource &tensors, BlobWriter &writer, const Meter &meter) {
  Expected<OperandStream> stream = OperandStream::open(tensors, slot);
  if (!stream)
    return stream.takeError();
  Status status = stream->pack([&](const char *data, int64_t count) -> Status {
    if (!meter(count))
      return Error{"weights '" + shortened(slot.family) + "'", "stopped", ""};
    return writer.write(data, count);
  });
  if (!status)
    return status;
  return writer.endRange(stream->rangeName());
}

Expected<PackedSlot> packOperand(const WeightSlot &slot, const TensorSource &tensors, const BlobStore &store,
                                 const TakesRange &takes, const Meter &meter) {
  PackedSlot packed;
  std::optional<BlobWriter> writer;
  std::vector<size_t> fresh; // ranges that the writer has
  const int64_t ranges = std::max<int64_t>(slot.experts, 1);
  for (int64_t i = 0; i < ranges; ++i) {
    const WeightSlot part = slot.experts > 0 ? slotOfExpert(slot, i) : slot;
    if (!takes(slot.experts > 0 ? i : -1)) {
      if (slot.experts == 0) {
        Expected<std::string> name = nameOf(slot, tensors);
        if (!name)
          return name.takeError();
        packed.leftOut = std::move(*name);
      }
      packed.ranges.emplace_back();
      meter(rangeBytes(part));
      continue;
    }
    Expected<std::optional<BlobRange>> found = findRange(part, tensors, store);
    if (!found)
      return found.takeError();
    packed.ranges.push_back(*found);
    if (*found) {
      meter(rangeBytes(part));
      continue;
    }
    if (!writer) {
      Expected<BlobWriter> created = store.create();
      if (!created)
        return created.takeError();
      writer.emplace(std::move(*created));
    }
    if (Status status = writeRange(part, tensors, *writer, meter); !status)
      return status.takeError();
    fresh.push_back(size_t(i));
  }
  if (!writer)
    return packed;
  Expected<std::vector<BlobRange>> written = writer->finish();
  if (!written)
    return written.takeError();
  for (size_t i = 0; i < fresh.size(); ++i) {
    packed.writtenBytes += (*written)[i].bytes;
    packed.ranges[fresh[i]] = std::move((*written)[i]);
  }
  return packed;
}

/// Runs the generator in pieces.
static Status generate(const Table &table, const std::function<Status(const char *, int64_t)> &sink) {
  std::vector<char> piece(std::min<int64_t>(table.bytes, 1 << 20));
  for (int64_t first = 0; first < table.bytes; first += int64_t(piece.size())) {
    int64_t count = std::min(int64_t(piece.size()), table.bytes - first);
    table.generate(first, piece.data(), count);
    if (Status status = sink(piece.data(), count); !status)
      return status;
  }
  return Status::success();
}

Expected<PackedSlot> packTable(const WeightSlot &slot, const BlobStore &store) {
  const auto &table = std::get<Table>(slot.transform);
  int64_t bytes = rangeBytes(slot);
  std::string name = table.file.substr(0, table.file.find('.'));
  if (table.generate) {
    RunningHash hash;
    Status status = generate(table, [&](const char *data, int64_t count) {
      hash.update(data, count);
      return Status::success();
    });
    if (!status)
      return status.takeError();
    name = hash.text128();
  }
  Expected<std::optional<BlobRange>> found = store.find(name, bytes);
  if (!found)
    return found.takeError();
  if (*found)
    return PackedSlot{{std::move(**found)}, 0, {}};
  if (!table.generate)
    return Error{store.folder() + "/" + table.file,
                 "the table '" + shortened(slot.family) + "' (" + std::to_string(bytes) +
                     " bytes) is missing or damaged",
                 "the bundle is damaged: compile again"};
  Expected<BlobWriter> writer = store.create();
  if (!writer)
    return writer.takeError();
  if (Status status = generate(table, [&](const char *data, int64_t count) { return writer->write(data, count); });
      !status)
    return status.takeError();
  if (Status status = writer->endRange(name); !status)
    return status.takeError();
  Expected<std::vector<BlobRange>> ranges = writer->finish();
  if (!ranges)
    return ranges.takeError();
  return PackedSlot{{ranges->begin(), ranges->end()}, bytes, {}};
}

} // namespace k2c::weights

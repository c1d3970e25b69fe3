//===- SlotPacker.cpp - One slot into one blob ----------------------------===//
//
// The name of a blob is known when its sources have been read. A first run packs while it reads. When the folder had a
// blob of the right size at the start (a resumed run), the sources are read once for the name alone, and written only
// when no blob has it.
//
//===----------------------------------------------------------------------===//
#include "SlotPacker.h"

#include "OperandStream.h"
#include "base/Utf8.h"
#include <algorithm>

namespace k2c::weights {

Expected<PackedSlot> packOperand(const WeightSlot &slot, const TensorSource &tensors, const BlobStore &store,
                                 const Meter &meter) {
  int64_t bytes = blobBytes(slot.transform);
  if (store.hadSize(bytes)) {
    Expected<OperandStream> stream = OperandStream::open(tensors, slot);
    if (!stream)
      return stream.takeError();
    if (Status status = stream->skim(); !status)
      return status.takeError();
    Expected<std::optional<Blob>> found = store.find(stream->blobName(), bytes);
    if (!found)
      return found.takeError();
    if (*found) {
      meter(bytes);
      return PackedSlot{std::move(**found), true};
    }
  }
  Expected<OperandStream> stream = OperandStream::open(tensors, slot);
  if (!stream)
    return stream.takeError();
  Expected<BlobWriter> writer = store.create();
  if (!writer)
    return writer.takeError();
  Status status = stream->pack([&](const char *data, int64_t count) -> Status {
    if (!meter(count))
      return Error{"weights '" + shortened(slot.family) + "'", "stopped", ""};
    return writer->write(data, count);
  });
  if (!status)
    return status.takeError();
  Expected<Blob> blob = writer->finish(stream->blobName(), bytes);
  if (!blob)
    return blob.takeError();
  return PackedSlot{std::move(*blob), false};
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
  int64_t bytes = blobBytes(slot.transform);
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
  Expected<std::optional<Blob>> found = store.find(name, bytes);
  if (!found)
    return found.takeError();
  if (*found)
    return PackedSlot{std::move(**found), true};
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
  Expected<Blob> blob = writer->finish(name, bytes);
  if (!blob)
    return blob.takeError();
  return PackedSlot{std::move(*blob), false};
}

} // namespace k2c::weights

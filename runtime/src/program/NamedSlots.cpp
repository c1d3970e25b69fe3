// Every number has a bound before it is used.
#include "program/NamedSlots.h"
#include "base/Hash.h"
#include "program/Weights.h"
#include <algorithm>

namespace k2c::runtime {

static constexpr size_t maxSlots = 1 << 20;
static constexpr size_t maxExperts = 1 << 20;
static constexpr int64_t maxBlobBytes = int64_t(1) << 46;
static constexpr int64_t pageBytes = 4096;

namespace {

/// The hashes of the chunks of `bytes` bytes.
std::vector<uint64_t> readHashes(const JsonFields &entry, int64_t bytes) {
  std::vector<uint64_t> hashes;
  for (const std::string &digits : entry.strings("chunks", static_cast<size_t>(maxBlobBytes / hugePageBytes))) {
    const std::optional<uint64_t> hash = parseHash(digits);
    if (!hash)
      entry.fail("chunks", "has a hash that is not 16 hex digits");
    hashes.push_back(hash.value_or(0));
  }
  const int64_t chunks = (bytes + hugePageBytes - 1) / hugePageBytes;
  if (static_cast<int64_t>(hashes.size()) != chunks)
    entry.fail("chunks", "has " + std::to_string(hashes.size()) + " hashes, " + std::to_string(bytes) + " bytes have " +
                             std::to_string(chunks));
  return hashes;
}

bool isPlainName(const std::string &name) {
  return !name.empty() && name.size() < 256 && name[0] != '.' &&
         std::all_of(
             name.begin(), name.end(),
             [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-'; });
}

NamedRange readRange(const JsonFields &entry, const std::vector<PieceFile> &files) {
  NamedRange range;
  range.bytes = entry.integer("bytes", 0, maxBlobBytes);
  range.hashes = readHashes(entry, range.bytes);
  if (entry.has("pieces")) {
    range.pieces = readFilePieces(entry, "pieces", range.bytes, files);
    return range;
  }
  range.file = entry.string("file");
  if (!isPlainName(range.file))
    entry.fail("file", "is not the plain name of a file beside the index");
  return range;
}

NamedSlot readSlot(const JsonFields &entry, int32_t slotCount, const std::vector<PieceFile> &files) {
  NamedSlot slot;
  slot.number = entry.integer("slot", 0, slotCount - 1);
  slot.name = entry.string("name", "");
  if (entry.has("layer"))
    slot.layer = entry.integer("layer", 0, INT64_MAX);
  entry.integer("chunk_bytes", hugePageBytes, hugePageBytes);
  slot.isTable = entry.has("experts");
  if (!slot.isTable) {
    slot.ranges.emplace_back();
    if (entry.has("file") || entry.has("pieces"))
      slot.ranges[0] = readRange(entry, files);
    return slot;
  }
  for (const std::optional<JsonFields> &expert : entry.objectsOrNulls("experts", maxExperts)) {
    slot.ranges.emplace_back();
    if (!expert)
      continue;
    slot.ranges.back() = readRange(*expert, files);
    if (!slot.ranges.back()->pieces.empty())
      continue;
    slot.ranges.back()->offset = expert->integer("offset", 0, maxBlobBytes);
    const NamedRange &range = *slot.ranges.back();
    if (range.offset % pageBytes || range.bytes % pageBytes || range.bytes == 0)
      expert->fail("offset",
                   "is " + std::to_string(range.offset) + ", of " + std::to_string(range.bytes) +
                       " bytes: an expert is one or more whole pages of " + std::to_string(pageBytes),
                   "run k2c pack");
  }
  return slot;
}

} // namespace

std::vector<NamedSlot> readNamedSlots(const JsonFields &root, int32_t slotCount, const std::vector<PieceFile> &files) {
  root.integer("format", 1, 1);
  std::vector<NamedSlot> slots(slotCount);
  for (const JsonFields &entry : root.objects("slots", maxSlots)) {
    NamedSlot slot = readSlot(entry, slotCount, files);
    if (slots[slot.number].number >= 0)
      entry.fail("slot", std::to_string(slot.number) + " is listed twice");
    slots[slot.number] = std::move(slot);
  }
  for (int32_t i = 0; i < slotCount; ++i)
    if (slots[i].number < 0)
      root.fail("slots", "slot " + std::to_string(i) + " of " + std::to_string(slotCount) + " is missing",
                "run k2c pack");
  return slots;
}

} // namespace k2c::runtime

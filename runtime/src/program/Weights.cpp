// A blob's name is its content's hash, so slots with equal contents share one mapping.
#include "program/Weights.h"
#include "base/Hash.h"
#include "base/JsonFields.h"
#include <algorithm>
#include <map>
#include <numeric>

namespace k2c::runtime {

static constexpr size_t mostSlots = 1 << 20;
static constexpr int64_t mostBlobBytes = int64_t(1) << 46;

namespace {

struct Slot {
  int64_t number;
  std::string file;
  int64_t bytes;
  std::vector<uint64_t> hashes; ///< of its chunks
};

/// The hashes of the chunks of a file of `bytes` bytes.
std::vector<uint64_t> readHashes(JsonFields &entry, int64_t bytes) {
  std::vector<uint64_t> hashes;
  entry.integer("chunk_bytes", hugePageBytes, hugePageBytes);
  for (const std::string &digits : entry.strings("chunks", static_cast<size_t>(mostBlobBytes / hugePageBytes))) {
    const std::optional<uint64_t> hash = parseHash(digits);
    if (!hash)
      entry.fail("chunks", "has a hash that is not 16 hex digits");
    hashes.push_back(hash.value_or(0));
  }
  const int64_t chunks = (bytes + hugePageBytes - 1) / hugePageBytes;
  if (static_cast<int64_t>(hashes.size()) != chunks)
    entry.fail("chunks", "has " + std::to_string(hashes.size()) + " hashes, a file of " + std::to_string(bytes) +
                             " bytes has " + std::to_string(chunks));
  return hashes;
}

bool isPlainName(const std::string &name) {
  return !name.empty() && name.size() < 256 && name[0] != '.' &&
         std::all_of(
             name.begin(), name.end(),
             [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-'; });
}

Expected<std::vector<Slot>> readIndex(const std::string &text, const std::string &place, int32_t slotCount) {
  Expected<nlohmann::json> document = parseJsonFields(text, place);
  if (!document)
    return document.takeError();
  Error error;
  JsonFields root(*document, place + ": ", error);
  root.integer("format", 1, 1);
  std::vector<Slot> slots(slotCount, Slot{-1, "", 0, {}});
  for (JsonFields &entry : root.objects("slots", mostSlots)) {
    Slot slot{
        entry.integer("slot", 0, slotCount - 1), entry.string("file"), entry.integer("bytes", 0, mostBlobBytes), {}};
    slot.hashes = readHashes(entry, slot.bytes);
    if (!isPlainName(slot.file))
      entry.fail("file", "is not the plain name of a file beside the index");
    if (!root.ok())
      return error;
    if (slots[slot.number].number >= 0)
      entry.fail("slot", std::to_string(slot.number) + " is listed twice");
    slots[slot.number] = std::move(slot);
  }
  for (int32_t i = 0; i < slotCount; ++i)
    if (slots[i].number < 0)
      root.fail("slots", "slot " + std::to_string(i) + " of " + std::to_string(slotCount) + " is missing",
                "run k2c pack");
  if (!root.ok())
    return error;
  return slots;
}

} // namespace

/// The runs of `shares` name every slot once, and no more bytes than it has.
static Status checkShares(const std::vector<SlotShares> &shares, const std::vector<Slot> &slots,
                          const std::string &place) {
  size_t slot = 0;
  for (const SlotShares &run : shares) {
    const int64_t items = run.share.groups * run.share.items;
    for (int64_t i = 0; i < run.slots && slot < slots.size(); ++i, ++slot)
      if (items > 0 && slots[slot].bytes / std::max<int64_t>(run.share.item_bytes, 1) < items)
        return Error{K2RT_INVALID_BUNDLE, place,
                     "slot " + std::to_string(slot) + " has " + std::to_string(slots[slot].bytes) +
                         " bytes, the manifest's shares count " + std::to_string(items) + " items of " +
                         std::to_string(run.share.item_bytes),
                     "compile the bundle again"};
  }
  const int64_t named = std::accumulate(shares.begin(), shares.end(), int64_t(0),
                                        [](int64_t sum, const SlotShares &run) { return sum + run.slots; });
  if (!shares.empty() && named != static_cast<int64_t>(slots.size()))
    return Error{K2RT_INVALID_BUNDLE, place,
                 "has " + std::to_string(slots.size()) + " slots, the manifest's shares name " + std::to_string(named),
                 "compile the bundle again"};
  return {};
}

Expected<Weights> Weights::map(const std::string &folder, const std::string &index, const std::string &text,
                               int32_t slotCount, const std::vector<SlotShares> &shares) {
  Expected<std::vector<Slot>> slots = readIndex(text, folder + "/" + index, slotCount);
  if (!slots)
    return slots.takeError();
  const size_t slash = index.rfind('/');
  const std::string prefix = slash == std::string::npos ? "" : index.substr(0, slash + 1);
  if (Status fits = checkShares(shares, *slots, folder + "/" + index); !fits)
    return fits.takeError();
  Weights weights;
  weights.shares = shares;
  std::map<std::string, const MappedFile *> mapped;
  weights.files.reserve(slots->size()); // pointers into it stay valid
  for (Slot &slot : *slots) {
    const MappedFile *&file = mapped[slot.file];
    if (!file) {
      Expected<MappedFile> opened = MappedFile::open(folder, prefix + slot.file, slot.bytes);
      if (!opened)
        return opened.takeError();
      weights.files.push_back(std::move(*opened));
      weights.hashes.push_back(std::move(slot.hashes));
      weights.total += slot.bytes;
      file = &weights.files.back();
    }
    if (file->size() != slot.bytes)
      return Error{K2RT_INVALID_BUNDLE, folder + "/" + index,
                   "slot " + std::to_string(slot.number) + " says " + std::to_string(slot.bytes) + " bytes, file " +
                       slot.file + " has " + std::to_string(file->size()),
                   "run k2c pack"};
    weights.bases.push_back(file->data());
    weights.sizes.push_back(slot.bytes);
  }
  if (shares.empty())
    weights.shares.push_back({slotCount, {}});
  return weights;
}

int64_t Weights::hugePageableBytes() const {
  int64_t bytes = 0;
  for (const MappedFile &file : files)
    bytes += file.size() / hugePageBytes * hugePageBytes;
  return bytes;
}

} // namespace k2c::runtime

// A blob's name is its content's hash, so slots with equal contents share one mapping.
#include "program/Weights.h"
#include "program/Fields.h"
#include <algorithm>
#include <map>
#include <sys/mman.h>

namespace k2rt {

static constexpr int64_t mostIndexBytes = int64_t(256) << 20;
static constexpr size_t mostSlots = 1 << 20;
static constexpr int64_t mostBlobBytes = int64_t(1) << 46;

namespace {

struct Slot {
  int64_t number;
  std::string file;
  int64_t bytes;
};

bool isPlainName(const std::string &name) {
  return !name.empty() && name.size() < 256 && name[0] != '.' &&
         std::all_of(
             name.begin(), name.end(),
             [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-'; });
}

Result<std::vector<Slot>> readIndex(const std::string &folder, const std::string &index, int32_t slotCount) {
  const std::string place = folder + "/" + index;
  Result<std::string> text = readBundleFile(folder, index, mostIndexBytes);
  if (!text)
    return text.takeError();
  Result<nlohmann::json> document = parseJson(*text, place);
  if (!document)
    return document.takeError();
  Error error;
  Fields root(*document, place + ": ", error);
  root.integer("format", 1, 1);
  std::vector<Slot> slots(slotCount, Slot{-1, "", 0});
  for (Fields &entry : root.objects("slots", mostSlots)) {
    Slot slot{entry.integer("slot", 0, slotCount - 1), entry.string("file"), entry.integer("bytes", 0, mostBlobBytes)};
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

Result<Weights> Weights::map(const std::string &folder, const std::string &index, int32_t slotCount) {
  Result<std::vector<Slot>> slots = readIndex(folder, index, slotCount);
  if (!slots)
    return slots.takeError();
  const size_t slash = index.rfind('/');
  const std::string prefix = slash == std::string::npos ? "" : index.substr(0, slash + 1);
  Weights weights;
  std::map<std::string, const MappedFile *> mapped;
  weights.files.reserve(slots->size()); // pointers into it stay valid
  for (const Slot &slot : *slots) {
    const MappedFile *&file = mapped[slot.file];
    if (!file) {
      Result<MappedFile> opened = MappedFile::open(folder, prefix + slot.file, slot.bytes);
      if (!opened)
        return opened.takeError();
      weights.files.push_back(std::move(*opened));
      weights.total += slot.bytes;
      file = &weights.files.back();
    }
    if (file->size() != slot.bytes)
      return Error{K2RT_INVALID_BUNDLE, folder + "/" + index,
                   "slot " + std::to_string(slot.number) + " says " + std::to_string(slot.bytes) + " bytes, file " +
                       slot.file + " has " + std::to_string(file->size()),
                   "run k2c pack"};
    weights.bases.push_back(file->data());
  }
  return weights;
}

void Weights::prefault(int64_t part, int64_t parts) const {
  constexpr int64_t chunk = int64_t(4) << 20;
  int64_t number = 0;
  for (const MappedFile &file : files)
    for (int64_t offset = 0; offset < file.size(); offset += chunk, ++number)
      if (number % parts == part) {
        auto *base = static_cast<char *>(const_cast<void *>(file.data())) + offset;
    // Best effort: an older kernel refuses, and the first step faults instead.
#ifdef MADV_POPULATE_READ
        ::madvise(base, static_cast<size_t>(std::min(chunk, file.size() - offset)), MADV_POPULATE_READ);
#else
        ::madvise(base, static_cast<size_t>(std::min(chunk, file.size() - offset)), MADV_WILLNEED);
#endif
      }
}

} // namespace k2rt

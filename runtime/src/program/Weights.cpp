// The index is read as a whole and checked against itself and the manifest; then each file is mapped once for each run
// of named bytes, and ranges are addresses in these mappings:
//
//   slot 3: experts a, b, none, d       file   | a | b | c | d |       two mappings, 0 to 2 pages and 3 to 4
//
// Pieces of a checkpoint are not mapped, as they need not lie as memory must have them: its files are opened.
//
// So a program with all experts of a layer has one mapping of them, and huge pages lie across their borders. A range's
// name and place are its content's, so slots with equal contents share it.
#include "program/Weights.h"
#include "base/Hash.h"
#include "base/JsonFields.h"
#include "base/Utf8.h"
#include "program/NamedSlots.h"
#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <tuple>

namespace k2c::runtime {

namespace {

/// Leaves of the slots those of a rank. `shares` are of all slots.
void takePart(std::vector<NamedSlot> &slots, const std::vector<SlotShares> &shares, const RankPart &part) {
  size_t slot = 0;
  for (const SlotShares &run : shares)
    for (int64_t i = 0; i < run.slots && slot < slots.size(); ++i, ++slot) {
      NamedSlot &own = slots[slot];
      own.isElsewhere = own.layer ? *own.layer < part.firstLayer || *own.layer >= part.endLayer
                                  : (run.stage == SlotStage::first && !part.isFirst) ||
                                        (run.stage == SlotStage::last && !part.isLast);
      own.isElsewhere |= run.parts > 1 && i % run.parts != part.place % run.parts;
      if (own.isElsewhere)
        own.ranges.clear();
    }
}

/// What a rank reads is there; of experts that is a matter of the placement.
Status checkPresent(const std::vector<NamedSlot> &slots, const std::string &place) {
  for (const NamedSlot &slot : slots)
    if (!slot.isElsewhere && !slot.isTable && !slot.ranges[0])
      return Error{K2RT_INVALID_BUNDLE, place,
                   "slot " + std::to_string(slot.number) + " (" + shortened(slot.name) +
                       (slot.layer ? " of layer " + std::to_string(*slot.layer) : "") +
                       ") is left out, and this rank reads it",
                   "run k2c pack DIR --checkpoint FOLDER --ranks with all ranks of this host"};
  return {};
}

/// Leaves in each table of experts what is in the slots of a rank by table `table`.
Status takeExperts(std::vector<NamedSlot> &slots, const Placement &placement, size_t table, const std::string &place) {
  for (NamedSlot &slot : slots) {
    if (!slot.isTable || slot.isElsewhere)
      continue;
    const int32_t *experts = slot.layer ? placement.expertsOf(table, *slot.layer) : nullptr;
    if (!experts || static_cast<int64_t>(slot.ranges.size()) != placement.experts())
      return Error{K2RT_INVALID_BUNDLE, place,
                   "slot " + std::to_string(slot.number) + " has " + std::to_string(slot.ranges.size()) +
                       " experts of layer " + (slot.layer ? std::to_string(*slot.layer) : "null") +
                       ", the placement has " + (experts ? std::to_string(placement.experts()) : "none"),
                   "compile the bundle again"};
    slot.experts.assign(experts, experts + placement.slotsOfRank());
    std::vector<std::optional<NamedRange>> taken;
    for (const int32_t expert : slot.experts)
      taken.push_back(expert < 0 ? std::nullopt : slot.ranges[expert]);
    slot.ranges = std::move(taken);
  }
  return {};
}

/// What contradicts the manifest in slot `number`, of which launches read `share`; "" when nothing does.
std::string contradiction(const NamedSlot &slot, const k2rt_share &share) {
  if (slot.isElsewhere)
    return "";
  const std::string name = "slot " + std::to_string(slot.number) + " has ";
  const int64_t experts = slot.isTable ? static_cast<int64_t>(slot.ranges.size()) : 0;
  if (slot.isTable != (share.experts > 0))
    return "slot " + std::to_string(slot.number) +
           (slot.isTable ? " is a table of experts, the manifest's shares say one block"
                         : " is one block, the manifest's shares say a table of experts");
  if (experts != share.experts)
    return name + std::to_string(experts) + " experts, the manifest's shares say " + std::to_string(share.experts);
  for (const std::optional<NamedRange> &range : slot.ranges)
    if (range && share.items > 0 && range->bytes / std::max<int64_t>(share.item_bytes, 1) < share.items)
      return name + std::to_string(range->bytes) + " bytes, the manifest's shares count " +
             std::to_string(share.items) + " items of " + std::to_string(share.item_bytes);
  return "";
}

/// The runs of `shares` name every slot once, and no more bytes than it has.
Status checkShares(const std::vector<SlotShares> &shares, const std::vector<NamedSlot> &slots,
                   const std::string &place) {
  size_t slot = 0;
  for (const SlotShares &run : shares)
    for (int64_t i = 0; i < run.slots && slot < slots.size(); ++i, ++slot)
      if (std::string said = contradiction(slots[slot], run.share); !said.empty())
        return Error{K2RT_INVALID_BUNDLE, place, std::move(said), "compile the bundle again"};
  const int64_t named = std::accumulate(shares.begin(), shares.end(), int64_t(0),
                                        [](int64_t sum, const SlotShares &run) { return sum + run.slots; });
  if (named != static_cast<int64_t>(slots.size()))
    return Error{K2RT_INVALID_BUNDLE, place,
                 "has " + std::to_string(slots.size()) + " slots, the manifest's shares name " + std::to_string(named),
                 "compile the bundle again"};
  return {};
}

} // namespace

/// Maps what the slots of an index name.
class WeightMapper {
public:
  /// `prefix` leads from `folder` to the files.
  WeightMapper(std::string folder, std::string prefix, Weights &weights)
      : folder(std::move(folder)), prefix(std::move(prefix)), weights(weights) {}

  /// All that the slots of some tables name.
  Status mapFiles(const std::vector<std::vector<NamedSlot>> &tables, const std::string &place);
  Status addSlot(NamedSlot &slot, const std::string &place);

private:
  struct Extent {
    int64_t begin, end;
  };
  struct File {
    std::optional<int64_t> bytes; ///< its size, when a slot is all of it
    std::vector<Extent> extents;  ///< named bytes
  };
  Status mapFile(const std::string &name, File &file);
  void findMapping(const NamedRange &range, WeightRange &found);
  std::optional<size_t> rangeOf(NamedRange &range);

  const std::string folder, prefix;
  Weights &weights;
  std::map<std::string, std::vector<size_t>> mappings; ///< of a file, numbers in ascending order of their bytes
  std::map<std::tuple<std::string, int64_t, int64_t, std::vector<FilePiece>>, size_t> known;
};

Status WeightMapper::mapFiles(const std::vector<std::vector<NamedSlot>> &tables, const std::string &place) {
  std::map<std::string, File> files;
  std::vector<std::string> order;
  for (const std::vector<NamedSlot> &slots : tables)
    for (const NamedSlot &slot : slots)
      for (const std::optional<NamedRange> &range : slot.ranges) {
        if (!range || !range->pieces.empty())
          continue;
        File &file = files[range->file];
        if (file.extents.empty())
          order.push_back(range->file);
        if (!slot.isTable && file.bytes.value_or(range->bytes) != range->bytes)
          return Error{K2RT_INVALID_BUNDLE, place,
                       "slot " + std::to_string(slot.number) + " says " + std::to_string(range->bytes) +
                           " bytes, file " + range->file + " has " + std::to_string(*file.bytes),
                       "run k2c pack"};
        if (!slot.isTable)
          file.bytes = range->bytes;
        file.extents.push_back({range->offset, range->offset + range->bytes});
      }
  for (const std::string &name : order)
    if (Status done = mapFile(name, files[name]); !done)
      return done;
  return {};
}

/// Extents that touch are one mapping.
Status WeightMapper::mapFile(const std::string &name, File &file) {
  std::sort(file.extents.begin(), file.extents.end(),
            [](const Extent &a, const Extent &b) { return a.begin < b.begin; });
  std::vector<Extent> merged;
  for (const Extent &extent : file.extents)
    if (!merged.empty() && extent.begin <= merged.back().end)
      merged.back().end = std::max(merged.back().end, extent.end);
    else
      merged.push_back(extent);
  for (const auto &[begin, end] : merged) {
    const bool isWhole = file.bytes && begin == 0 && end == *file.bytes;
    Expected<MappedFile> mapped = isWhole ? MappedFile::open(folder, prefix + name, end)
                                          : MappedFile::openPart(folder, prefix + name, begin, end - begin);
    if (!mapped)
      return mapped.takeError();
    mappings[name].push_back(weights.files.size());
    weights.files.push_back(std::move(*mapped));
    weights.total += end - begin;
  }
  return {};
}

/// Where a range of a blob is.
void WeightMapper::findMapping(const NamedRange &range, WeightRange &found) {
  const std::vector<size_t> &numbers = mappings[range.file];
  const auto after = std::upper_bound(numbers.begin(), numbers.end(), range.offset, [&](int64_t offset, size_t number) {
    return offset < weights.files[number].offset();
  });
  found.mapping = after[-1];
  const MappedFile &file = weights.files[found.mapping];
  if (file.data())
    found.base = static_cast<const std::byte *>(file.data()) + (range.offset - file.offset());
}

/// The number of a range, which is added where it is new; nothing when it is known with other hashes.
std::optional<size_t> WeightMapper::rangeOf(NamedRange &range) {
  const auto [entry, isNew] =
      known.emplace(std::tuple(range.file, range.offset, range.bytes, range.pieces), weights.all.size());
  if (!isNew)
    return weights.all[entry->second].hashes == range.hashes ? std::optional(entry->second) : std::nullopt;
  WeightRange added;
  if (range.pieces.empty())
    findMapping(range, added);
  added.bytes = range.bytes;
  added.hashes = std::move(range.hashes);
  added.offset = range.offset;
  added.pieces = std::move(range.pieces);
  if (!weights.all.empty())
    added.firstChunk = weights.all.back().firstChunk + weights.all.back().hashes.size();
  weights.all.push_back(std::move(added));
  return entry->second;
}

/// Where its bytes are, for a message.
static std::string placeOf(const NamedRange &range) {
  return range.pieces.empty() ? range.file + " at " + std::to_string(range.offset)
                              : "its pieces from byte " + std::to_string(range.pieces.front().offset) + " on";
}

Status WeightMapper::addSlot(NamedSlot &slot, const std::string &place) {
  Weights::Slot added{std::move(slot.name), slot.layer, {}, {}, std::move(slot.experts), slot.isElsewhere};
  for (std::optional<NamedRange> &range : slot.ranges) {
    const std::optional<size_t> number = range ? rangeOf(*range) : Weights::noRange;
    if (!number)
      return Error{K2RT_INVALID_BUNDLE, place,
                   "slot " + std::to_string(slot.number) + " has other hashes for " + placeOf(*range) +
                       " than an entry before it",
                   "run k2c pack"};
    added.ranges.push_back(*number);
    if (slot.isTable)
      added.table.push_back(range ? weights.all[added.ranges.back()].base : nullptr);
  }
  weights.parts.push_back(std::move(added));
  const Weights::Slot &last = weights.parts.back(); // its table stays where it is when the slot is moved
  weights.addresses.push_back(slot.isElsewhere ? nullptr
                              : slot.isTable   ? static_cast<const void *>(last.table.data())
                                               : weights.all[last.ranges[0]].base);
  return {};
}

Expected<Weights> Weights::map(const std::string &folder, const std::string &index, const std::string &text,
                               int32_t slotCount, const std::vector<SlotShares> &shares, const Placement &placement,
                               const RankPart &part) {
  const std::string place = folder + "/" + index;
  std::vector<PieceFile> files;
  Expected<std::vector<NamedSlot>> slots = readJsonFields(text, place, [&](const JsonFields &root) {
    if (root.has("files"))
      files = readPieceFiles(root, "files");
    return readNamedSlots(root, slotCount, files);
  });
  if (!slots)
    return slots.takeError();
  takePart(*slots, shares, part);
  if (Status present = checkPresent(*slots, place); !present)
    return present.takeError();
  std::vector<std::vector<NamedSlot>> tables(std::max<size_t>(placement.count(), 1) - 1, *slots);
  tables.push_back(std::move(*slots)); // of one table, as a rule, nothing is copied
  Weights weights;
  weights.slotCount = static_cast<size_t>(slotCount);
  weights.shares = shares;
  if (shares.empty())
    weights.shares.push_back({slotCount, {}});
  for (size_t table = 0; table < tables.size(); ++table) {
    if (placement.count() > 0)
      if (Status taken = takeExperts(tables[table], placement, table, place); !taken)
        return taken.takeError();
    if (Status fits = checkShares(weights.shares, tables[table], place); !fits)
      return fits.takeError();
  }
  const size_t slash = index.rfind('/');
  const std::string prefix = slash == std::string::npos ? "" : index.substr(0, slash + 1);
  if (!files.empty()) {
    Expected<PieceFiles> opened = PieceFiles::open(folder + "/" + prefix + checkpointLink, files);
    if (!opened)
      return opened.takeError();
    weights.checkpoint = std::move(*opened);
  }
  WeightMapper mapper(folder, prefix, weights);
  if (Status mapped = mapper.mapFiles(tables, place); !mapped)
    return mapped.takeError();
  for (std::vector<NamedSlot> &table : tables) {
    weights.firstRanges.push_back(weights.all.size());
    for (NamedSlot &slot : table)
      if (Status added = mapper.addSlot(slot, place); !added)
        return added.takeError();
  }
  return weights;
}

/// Kernels take addresses and trust them: the program's own numbers are held to the index, whatever the manifest says.
Status Weights::checkFits(const k2rt_ir_program &program, const std::string &place) const {
  size_t stated = 0;
  for (const SlotShares &run : shares)
    for (int64_t i = 0; i < run.slots; ++i, ++stated)
      if (const int64_t parts = static_cast<const int64_t *>(program.slot_parts)[stated]; parts != run.parts)
        return Error{K2RT_INVALID_BUNDLE, place,
                     "slot " + std::to_string(stated) + " is one of " + std::to_string(parts) +
                         " parts to the program, the manifest's shares say of " + std::to_string(run.parts),
                     "compile the bundle again"};
  for (size_t part = 0; part < parts.size(); ++part) {
    const size_t slot = part % slotCount;
    const auto experts = static_cast<size_t>(static_cast<const int64_t *>(program.slot_experts)[slot]);
    const int64_t bytes = static_cast<const int64_t *>(program.slot_bytes)[slot];
    const int64_t needed = bytes / static_cast<int64_t>(std::max<size_t>(experts, 1)); // of a range
    const std::string name = "slot " + std::to_string(slot) + " has ";
    if (parts[part].isElsewhere)
      continue;
    if (parts[part].table.size() != experts)
      return Error{K2RT_INVALID_BUNDLE, place,
                   name + std::to_string(parts[part].table.size()) + " experts, the program reads " +
                       std::to_string(experts),
                   "compile the bundle again"};
    for (const size_t range : parts[part].ranges)
      if (range != noRange && all[range].bytes < needed)
        return Error{K2RT_INVALID_BUNDLE, place,
                     name + "a range of " + std::to_string(all[range].bytes) + " bytes, the program reads " +
                         std::to_string(needed),
                     "compile the bundle again"};
  }
  return {};
}

HugePages hugePagesOf(const MappedFile &file) {
  const int64_t first = (file.offset() + hugePageBytes - 1) / hugePageBytes;
  const int64_t last = (file.offset() + file.size()) / hugePageBytes;
  return {static_cast<const std::byte *>(file.data()) + (first * hugePageBytes - file.offset()),
          std::max<int64_t>(last - first, 0)};
}

bool Weights::hasAll(size_t table) const {
  const auto first = parts.begin() + static_cast<ptrdiff_t>(table * slotCount);
  return std::all_of(first, first + static_cast<ptrdiff_t>(slotCount), [](const Slot &slot) {
    for (size_t at = 0; at < slot.experts.size(); ++at)
      if (slot.experts[at] >= 0 && slot.ranges[at] == noRange)
        return false;
    return true;
  });
}

int64_t Weights::firstBytes() const {
  const auto end = all.begin() + static_cast<ptrdiff_t>(firstRanges.size() > 1 ? firstRanges[1] : all.size());
  return std::accumulate(all.begin(), end, int64_t(0),
                         [](int64_t sum, const WeightRange &range) { return sum + range.bytes; });
}

int64_t Weights::hugePageableBytes() const {
  int64_t bytes = 0;
  for (const MappedFile &file : files)
    bytes += hugePagesOf(file).count * hugePageBytes;
  return bytes;
}

Status Weights::read(const WeightRange &range, int64_t begin, void *out, int64_t bytes) const {
  if (!range.pieces.empty())
    return checkpoint->read(range.pieces, begin, out, bytes);
  std::memcpy(out, range.base + begin, static_cast<size_t>(bytes));
  return {};
}

Error Weights::damaged(const WeightRange &range, size_t chunk, uint64_t hash) const {
  const int64_t begin = static_cast<int64_t>(chunk) * hugePageBytes;
  const int64_t end = std::min(begin + hugePageBytes, range.bytes);
  if (const FilePiece *piece = pieceAt(range.pieces, begin))
    return {K2RT_INVALID_BUNDLE, checkpoint->path(piece->file),
            "the weights from byte " + std::to_string(piece->offset + std::max<int64_t>(begin - piece->at, 0)) +
                " on hash to " + hashText(hash) + ", the index says " + hashText(range.hashes[chunk]),
            checkpointRemedy};
  return {K2RT_INVALID_BUNDLE, files[range.mapping].path(),
          "bytes " + std::to_string(range.offset + begin) + " to " + std::to_string(range.offset + end) + " hash to " +
              hashText(hash) + ", the index says " + hashText(range.hashes[chunk]),
          "k2c pack with the checkpoint writes it again, or compile the bundle again"};
}

std::optional<AbsentExpert> Weights::expertAt(const void *entry) const {
  for (const Slot &slot : parts)
    for (size_t at = 0; at < slot.table.size(); ++at)
      if (&slot.table[at] == entry)
        return AbsentExpert{slot.name, slot.layer,
                            slot.experts.empty() ? static_cast<int64_t>(at) : int64_t(slot.experts[at])};
  return std::nullopt;
}

} // namespace k2c::runtime

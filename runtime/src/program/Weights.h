// The weights of a bundle: weights/index.json says which range of which file each slot of the program is, and each
// routed expert of a slot; these are mapped, and no others. Of a range that is pieces of a checkpoint the files are
// opened, and whoever fills memory with weights reads them.
#ifndef K2RT_PROGRAM_WEIGHTS_H
#define K2RT_PROGRAM_WEIGHTS_H

#include "base/FilePieces.h"
#include "k2rt/program.h"
#include "program/Manifest.h"
#include "program/Placement.h"
#include <optional>
#include <string>
#include <vector>

namespace k2c::runtime {

/// Bytes that belong together, a slot's or a routed expert's: of a mapped file, or pieces of a checkpoint.
struct WeightRange {
  const std::byte *base = nullptr; ///< page aligned; null for an empty slot, and for pieces
  int64_t bytes = 0;
  std::vector<uint64_t> hashes; ///< XXH3-64 of each huge page's length of it, the last one shorter: what the index says
  size_t mapping = 0;           ///< number of the file that it is in
  int64_t offset = 0;           ///< in that file
  size_t firstChunk = 0;        ///< chunks of the ranges before it
  std::vector<FilePiece> pieces;
};

/// The huge pages of a file that lie in a mapping of it as a whole.
struct HugePages {
  const std::byte *first = nullptr;
  int64_t count = 0;
};
HugePages hugePagesOf(const MappedFile &file);

/// A routed expert that the index leaves out, although a token wants it.
struct AbsentExpert {
  std::string slot; ///< its name in the index
  std::optional<int64_t> layer;
  int64_t expert = 0;
};

/// What of a model a rank has: of its stage layers [firstLayer, endLayer), and what enters or leaves there; of weights
/// that its tensor-parallel group divides one part.
struct RankPart {
  int64_t firstLayer = 0, endLayer = INT64_MAX;
  bool isFirst = true, isLast = true;
  int64_t place = 0; ///< among the ranks of its stage
};

/// Mapped ranges; slots may share one. Lives as long as anything that reads a slot.
class Weights {
public:
  /// Reads `text`, which `folder`/`index` holds, and maps what it names from the index's folder. Refuses a slot that is
  /// missing, twice or out of range, a file name that is a path, a file of another size, and another number of hashes
  /// than a range has chunks. `slotCount`: what the program has. `shares`: how launches read the slots, and which are
  /// of experts (manifest); refused when it does not fit them. Of tables of experts only those in the rank's slots by
  /// `placement` are mapped, by whichever of its tables, in the order of its slots; all where it has none. Slots of
  /// other ranks than `part` says are left out, and have no address.
  static Expected<Weights> map(const std::string &folder, const std::string &index, const std::string &text,
                               int32_t slotCount, const std::vector<SlotShares> &shares = {},
                               const Placement &placement = {}, const RankPart &part = {});
  /// Refuses slots that are not what the program reads: a part of so many, a table of experts or none, so many experts,
  /// so many bytes at least. `place` names the index.
  Status checkFits(const k2rt_ir_program &program, const std::string &place) const;

  /// What the program gets for each slot by table `table` of the placement: its base, page aligned, null for an empty
  /// one; of a slot of routed experts the table of their bases, null for one that the index leaves out and for an empty
  /// slot of a rank.
  const void *const *slots(size_t table = 0) const { return addresses.data() + table * slotCount; }
  /// Whether all experts in the rank's slots by this table are there.
  bool hasAll(size_t table) const;
  /// Each range once, in the order of the slots.
  const std::vector<WeightRange> &ranges() const { return all; }
  /// What is mapped: ranges that lie one behind the other in a file are in one of these.
  const std::vector<MappedFile> &mappedFiles() const { return files; }
  /// Bytes mapped, each once: of the placement's first table, and of all of them.
  int64_t firstBytes() const;
  int64_t bytes() const { return total; }
  /// Whether some ranges are pieces of a checkpoint, which have no address here.
  bool arePieces() const { return checkpoint.has_value(); }
  /// Writes bytes [begin, begin + bytes) of a range to `out`.
  Status read(const WeightRange &range, int64_t begin, void *out, int64_t bytes) const;
  /// The numbers in ranges() of what slot `slot` of the first table has: one, or of routed experts one each, noRange
  /// for one that is left out.
  const std::vector<size_t> &rangesOf(size_t slot) const { return parts[slot].ranges; }
  static constexpr size_t noRange = SIZE_MAX;
  /// What is wrong where chunk `chunk` of a range hashes to `hash` and not to what the index says.
  Error damaged(const WeightRange &range, size_t chunk, uint64_t hash) const;
  /// Bytes of these that could lie in huge pages.
  int64_t hugePageableBytes() const;
  /// Whose entry of a table (of slots()) is at `entry`; none when it is of no table.
  std::optional<AbsentExpert> expertAt(const void *entry) const;
  /// Calls visit(range, begin, end) for what workers [first, end) of `workers` alone read, bytes [begin, end) of the
  /// range: in the order of the slots, none empty.
  template <class Visit> void visitOwn(int64_t first, int64_t end, int64_t workers, Visit visit) const {
    visitBlocks([&](const WeightRange &range, const k2rt_share &share, int64_t block) {
      const int64_t from = k2rt_block_begin(&share, block, first, workers);
      const int64_t to = k2rt_block_begin(&share, block, end, workers);
      if (from < to)
        visit(range, from * share.item_bytes, to * share.item_bytes);
    });
  }
  /// Calls visit(range, 0, bytes) for each range that belongs to no worker; for all of them when nothing is known.
  template <class Visit> void visitCommon(Visit visit) const {
    visitBlocks([&](const WeightRange &range, const k2rt_share &share, int64_t) {
      if (share.items == 0)
        visit(range, 0, range.bytes);
    });
  }

private:
  struct Slot {
    std::string name;
    std::optional<int64_t> layer;
    std::vector<size_t> ranges;      ///< numbers in `all`; noRange: an expert that is left out
    std::vector<const void *> table; ///< of experts
    std::vector<int32_t> experts;    ///< what is in each entry of the table; empty: the expert of its number
    bool isElsewhere = false;        ///< of other ranks: it has no ranges
  };

  /// Calls visit(range, share, block) for each block of each slot that is there.
  /// Of a table but the first, what none before it has.
  template <class Visit> void visitBlocks(Visit visit) const {
    size_t slot = 0;
    for (const size_t firstNew : firstRanges)
      for (const SlotShares &run : shares)
        for (int64_t i = 0; i < run.slots; ++i, ++slot)
          for (size_t block = 0; block < parts[slot].ranges.size(); ++block)
            if (const size_t range = parts[slot].ranges[block]; range != noRange && range >= firstNew)
              visit(all[range], run.share, static_cast<int64_t>(block));
  }

  std::vector<MappedFile> files;
  std::optional<PieceFiles> checkpoint;
  std::vector<WeightRange> all;
  size_t slotCount = 0;
  std::vector<Slot> parts; ///< of each table one behind the other, as `addresses`
  std::vector<const void *> addresses;
  std::vector<size_t> firstRanges; ///< of each table, the number of the first range that none before it has
  std::vector<SlotShares> shares;
  int64_t total = 0;
  friend class WeightMapper;
};

} // namespace k2c::runtime

#endif

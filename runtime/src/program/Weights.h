// The packed weights of a bundle: weights/index.json says which file each slot of the program is; files are mapped.
#ifndef K2RT_PROGRAM_WEIGHTS_H
#define K2RT_PROGRAM_WEIGHTS_H

#include "base/File.h"
#include "program/Manifest.h"
#include <string>
#include <vector>

namespace k2c::runtime {

/// Mapped blobs; slots may share one. Lives as long as anything that reads a slot.
class Weights {
public:
  /// Reads `text`, which `folder`/`index` holds, and maps what it names from the index's folder. Refuses a slot that is
  /// missing, twice or out of range, a file name that is a path, a file of another size, and another number of hashes
  /// than it has chunks. `slotCount`: what the program has. `shares`: how launches read the slots (manifest); refused
  /// when it does not fit them.
  static Expected<Weights> map(const std::string &folder, const std::string &index, const std::string &text,
                               int32_t slotCount, const std::vector<SlotShares> &shares = {});

  /// Base of each slot, page aligned; null for an empty slot.
  const std::vector<const void *> &slots() const { return bases; }
  /// Each file once.
  const std::vector<MappedFile> &mappedFiles() const { return files; }
  /// XXH3-64 of each huge page of file `file` of these, the last one shorter: what the index says.
  const std::vector<uint64_t> &chunkHashes(size_t file) const { return hashes[file]; }
  /// Bytes mapped, each file once.
  int64_t bytes() const { return total; }
  /// Bytes of these that could lie in huge pages.
  int64_t hugePageableBytes() const;
  /// Calls visit(base, begin, end) for what workers [first, end) of `workers` alone read, bytes [begin, end) of the
  /// slot at `base`: in the order of the slots, none empty.
  template <class Visit> void visitOwn(int64_t first, int64_t end, int64_t workers, Visit visit) const {
    size_t slot = 0;
    for (const SlotShares &run : shares)
      for (int64_t i = 0; i < run.slots; ++i, ++slot)
        for (int64_t group = 0; group < run.share.groups && run.share.items > 0; ++group) {
          const int64_t from = k2rt_group_begin(&run.share, group, first, workers);
          const int64_t to = k2rt_group_begin(&run.share, group, end, workers);
          if (from < to)
            visit(static_cast<const std::byte *>(bases[slot]), (group * run.share.items + from) * run.share.item_bytes,
                  (group * run.share.items + to) * run.share.item_bytes);
        }
  }
  /// Calls visit(base, 0, bytes) for each slot that belongs to no worker; for all of them when nothing is known.
  template <class Visit> void visitCommon(Visit visit) const {
    size_t slot = 0;
    for (const SlotShares &run : shares)
      for (int64_t i = 0; i < run.slots; ++i, ++slot)
        if (run.share.items == 0)
          visit(static_cast<const std::byte *>(bases[slot]), 0, sizes[slot]);
  }

private:
  std::vector<MappedFile> files;
  std::vector<std::vector<uint64_t>> hashes; ///< of the chunks of each file
  std::vector<const void *> bases;
  std::vector<int64_t> sizes; ///< of the slots
  std::vector<SlotShares> shares;
  int64_t total = 0;
};

} // namespace k2c::runtime

#endif

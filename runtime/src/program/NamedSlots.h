// The slots of weights/index.json as it names them, before anything is mapped.
#ifndef K2RT_PROGRAM_NAMEDSLOTS_H
#define K2RT_PROGRAM_NAMEDSLOTS_H

#include "base/FilePieces.h"
#include "base/JsonFields.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace k2c::runtime {

/// Bytes [offset, offset + bytes) of a file, as the index says, or bytes that are pieces of a checkpoint.
struct NamedRange {
  std::string file; ///< "" of pieces
  int64_t offset = 0, bytes = 0;
  std::vector<uint64_t> hashes; ///< of its chunks
  std::vector<FilePiece> pieces;
};

struct NamedSlot {
  int64_t number = -1;
  std::string name;
  std::optional<int64_t> layer;
  bool isTable = false;
  /// One, the whole file; of a table one for each entry. None: it is left out.
  std::vector<std::optional<NamedRange>> ranges;
  std::vector<int32_t> experts; ///< in the slots of a rank; empty: the table is of all
  bool isElsewhere = false;     ///< of other ranks
};

/// Reads the slots of an index, `slotCount` of them by number. Refuses what is missing, twice or out of range, a file
/// name that is a path, another number of hashes than a range has chunks, and pieces that are not of `files`.
std::vector<NamedSlot> readNamedSlots(const JsonFields &root, int32_t slotCount, const std::vector<PieceFile> &files);

} // namespace k2c::runtime

#endif

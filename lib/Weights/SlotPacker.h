//===- SlotPacker.h - One slot into ranges of blobs -----------------------===//
#ifndef K2C_LIB_WEIGHTS_SLOTPACKER_H
#define K2C_LIB_WEIGHTS_SLOTPACKER_H

#include "BlobStore.h"
#include "k2c/Weights/TensorSource.h"
#include "k2c/Weights/WeightMap.h"
#include <functional>
#include <optional>

namespace k2c::weights {

/// The ranges of a slot: one, or one for each expert, none for one that is left out; and the bytes of those that were
/// not there already.
struct PackedSlot {
  std::vector<std::optional<BlobRange>> ranges;
  int64_t writtenBytes = 0;
  std::string leftOut; ///< of a slot without experts that is left out: the name that its range would have
};

/// Called with the bytes packed since the last call; false stops the work (the slot then fails).
using Meter = std::function<bool(int64_t bytes)>;

/// Whether the slot is packed, or an expert of it; -1: it has none.
using TakesRange = std::function<bool(int64_t expert)>;

/// Packs a slot made of tensors. Experts that no blob has go into one new blob. Of a slot that is left out the sources
/// are read for its name, by which hosts agree that they have one checkpoint.
Expected<PackedSlot> packOperand(const WeightSlot &slot, const TensorSource &tensors, const BlobStore &store,
                                 const TakesRange &takes, const Meter &meter);

/// Writes a computed table; without a generator, checks that its blob is there.
Expected<PackedSlot> packTable(const WeightSlot &slot, const BlobStore &store);

} // namespace k2c::weights

#endif // K2C_LIB_WEIGHTS_SLOTPACKER_H

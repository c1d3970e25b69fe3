//===- Packer.h - A weight map and a checkpoint become blobs --------------===//
//
// For each slot: stream the sources through their transform into DIR/weights/<hash>.bin, then write the index.
//
//   range  = the bytes of a slot, or of one routed expert of it: whole pages of a blob
//   name   = xxh3-128(stored bytes, slices, transform, layout version): the same content is stored once, and a range
//            that is there already (an interrupted run, another layer, a shared folder, experts that were numbered
//            otherwise) is not written again
//   memory = a few panels of rows for each thread, whatever the size of the tensors
//   reference = of a map that is one, blobs are of computed tables alone (lib/Weights/Reference.cpp)
//   safety = all sources are checked before the first is packed; a blob gets its name when it is complete and on disk
//
// Architecture, section 4.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_WEIGHTS_PACKER_H
#define K2C_WEIGHTS_PACKER_H

#include "k2c/Weights/TensorSource.h"
#include "k2c/Weights/WeightMap.h"
#include <functional>
#include <string>

namespace k2c {

struct PackOptions {
  /// Where blobs live when several bundles share them: they are hard-linked (copied across file systems) into the
  /// bundle. Empty: in the bundle only.
  std::string sharedFolder;
  /// Worker threads; 0: as many as this process may use.
  int threads = 0;
  /// Called from worker threads, one at a time: blob bytes finished and in all.
  std::function<void(int64_t done, int64_t total)> progress;
  /// Which ranges are packed: of a slot, or of routed expert `expert` of it, -1 where it has none. The index leaves
  /// others out. None: all.
  std::function<bool(const WeightSlot &slot, int64_t expert)> takes;
};

/// What a run did.
struct PackReport {
  int64_t written = 0;      ///< slots of which something was packed
  int64_t reused = 0;       ///< slots whose ranges were all there
  int64_t writtenBytes = 0; ///< bytes of the ranges packed
  uint64_t common = 0;      ///< hash of what slots without experts have, packed or not: of equal checkpoints the same
};

/// Error: a slot of a map that is to be a reference does not lie as tensors are stored. Asks no checkpoint.
Status checkLayouts(const WeightMap &map);

/// Checks that `tensors` has what `map` reads, in the shapes and element types it says; of a reference, that it lies
/// there as it is read. packWeights does so first.
Status checkSources(const WeightMap &map, const TensorSource &tensors);

/// Packs every slot of `map` into `bundle`/weights and writes weights/index.json. Of a reference it packs tables alone:
/// the index names the pieces of `tensors` that the others are. Errors: a tensor that is missing or
/// does not fit its layout (before anything is written); reading, writing, a full disk (finished blobs stay).
Expected<PackReport> packWeights(const WeightMap &map, const TensorSource &tensors, const std::string &bundle,
                                 const PackOptions &options = {});

/// Writes weights/map.json, and the blobs of computed tables: these do not need a checkpoint.
Status writeWeightMap(const WeightMap &map, const std::string &bundle);

/// Reads weights/map.json. The file is hostile input: sizes, names and order are checked.
Expected<WeightMap> readWeightMap(const std::string &bundle);

} // namespace k2c

#endif // K2C_WEIGHTS_PACKER_H

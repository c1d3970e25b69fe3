//===- WeightIndex.h - weights/index.json and its verification ------------===//
//
// The index says which file holds each slot, how long it is and what its bytes hash to, as a whole and chunk by chunk.
// The runtime maps files by it, and its workers compare the chunks that they bring into memory; `k2c verify` reads
// every byte.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_WEIGHTS_WEIGHTINDEX_H
#define K2C_WEIGHTS_WEIGHTINDEX_H

#include "base/Error.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace k2c {

/// A chunk of a blob is a huge page: workers bring in, and compare, one at a time.
constexpr int64_t blobChunkBytes = int64_t(2) << 20;

/// One slot. Several slots may name one file.
struct IndexedSlot {
  int64_t slot = 0;
  std::string name;                ///< family or table
  std::optional<int64_t> layer;    ///< checkpoint layer index
  std::string file;                ///< "<32 hex digits>.bin", in the folder of the index
  int64_t bytes = 0;               ///< size of the file, a multiple of 4096
  std::string xxh3;                ///< 16 hex digits: XXH3-64 of the file
  std::vector<std::string> chunks; ///< the same of each blobChunkBytes of it; the last chunk may be shorter
};

/// Writes `bundle`/weights/index.json, atomically.
Status writeWeightIndex(const std::vector<IndexedSlot> &slots, const std::string &bundle);

/// Reads it. Hostile input: slots must be 0, 1, 2, ..., files plain blob names, sizes whole pages.
Expected<std::vector<IndexedSlot>> readWeightIndex(const std::string &bundle);

/// What verifyBundle read, and every file that is not what the index says (missing, short, changed; both values).
struct VerifyReport {
  int64_t files = 0;
  int64_t bytes = 0;
  std::vector<Error> problems;
};

/// Hashes every blob of a bundle. Error: the index itself cannot be read.
Expected<VerifyReport> verifyBundle(const std::string &bundle);

/// True for "<32 lower-case hex digits>.bin".
bool isBlobName(const std::string &file);

} // namespace k2c

#endif // K2C_WEIGHTS_WEIGHTINDEX_H

//===- WeightIndex.h - weights/index.json and its verification ------------===//
//
// The index says which range of which file holds each slot, and each routed expert of a slot, and what its bytes hash
// to, as a whole and chunk by chunk. The runtime maps these ranges and no others, and its workers compare the chunks
// that they bring into memory; `k2c verify` reads every byte that is named.
//
//   {"slot":0,"name":"q","layer":0,"file":"<32 hex digits>.bin","bytes":8192,"xxh3":..,
//    "chunk_bytes":2097152,"chunks":[..]}
//   {"slot":1,"name":"up","layer":0,"chunk_bytes":2097152,"experts":[
//     {"name":"<32 hex digits>","file":..,"offset":4096,"bytes":4096,"xxh3":..,"chunks":[..]},null,..]}
//
// An expert may lie anywhere in any blob: which one a token meets is its place in the list. null leaves it out.
//
// Of weights that are a checkpoint's own bytes, "files" lists the files of the checkpoint, whose folder the link
// weights/checkpoint leads to, and a range has pieces of them (base/FilePieces.h) in place of a file:
//
//   {"format":1,"files":[{"file":"model.safetensors","bytes":..},..],"slots":[
//   {"slot":0,"name":"q","layer":0,"bytes":8192,"xxh3":..,"chunk_bytes":2097152,"chunks":[..],
//    "pieces":[[0,4296,8192,0]]}
//
//===----------------------------------------------------------------------===//
#ifndef K2C_WEIGHTS_WEIGHTINDEX_H
#define K2C_WEIGHTS_WEIGHTINDEX_H

#include "base/FilePieces.h"
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace k2c {

/// A chunk of a range is as long as a huge page: workers bring in, and compare, one at a time.
constexpr int64_t blobChunkBytes = int64_t(2) << 20;

/// Bytes [offset, offset + bytes) of a blob: all of it, or one of several ranges. Or bytes that are pieces of a
/// checkpoint, behind which they are zero; then `file` is "".
struct BlobRange {
  std::string name;                ///< 32 hex digits: hash of what the bytes were made from
  std::string file;                ///< "<32 hex digits>.bin", in the folder of the index
  int64_t offset = 0;              ///< a multiple of 4096
  int64_t bytes = 0;               ///< the same
  std::string xxh3;                ///< 16 hex digits: XXH3-64 of the bytes
  std::vector<std::string> chunks; ///< the same of each blobChunkBytes of them; the last chunk may be shorter
  std::vector<FilePiece> pieces;   ///< of WeightIndex::files; none: of a blob
  /// The blob has no other range.
  bool isWholeBlob() const { return file == name + ".bin"; }
};

/// Whether names, hash and numbers are such as BlobRange says; its chunks are not looked at.
bool isSound(const BlobRange &range);

/// One slot. Several slots may name one range.
struct IndexedSlot {
  int64_t slot = 0;
  std::string name;             ///< family or table
  std::optional<int64_t> layer; ///< checkpoint layer index
  /// A whole blob; or, where `isTable`, one range for each routed expert. None: it is left out.
  std::vector<std::optional<BlobRange>> ranges;
  bool isTable = false;
};

struct WeightIndex {
  std::vector<IndexedSlot> slots;
  std::vector<PieceFile> files; ///< of the checkpoint of which ranges are pieces
};

/// Writes `bundle`/weights/index.json, atomically.
Status writeWeightIndex(const WeightIndex &index, const std::string &bundle);

/// Reads it. Hostile input: slots must be 0, 1, 2, ..., files plain blob names, sizes whole pages, pieces inside their
/// files and ranges, names and hashes hex digits: messages quote these whole.
Expected<WeightIndex> readWeightIndex(const std::string &bundle);

/// Makes `bundle`/weights/checkpoint a link to `folder`, whose tensors ranges are pieces of, by its absolute path: a
/// bundle may be moved.
Status linkCheckpoint(const std::string &folder, const std::string &bundle);

/// What verifyBundle read, and every file or range that is not what the index says (missing, short, changed; both
/// values).
struct VerifyReport {
  int64_t files = 0;
  int64_t bytes = 0;
  std::vector<Error> problems;
};

/// Hashes every range that the index of a bundle names; tells `progress` the bytes, if it is given. Error: the index
/// itself cannot be read.
Expected<VerifyReport> verifyBundle(const std::string &bundle,
                                    const std::function<void(int64_t done, int64_t total)> &progress = {});

/// True for "<32 lower-case hex digits>.bin".
bool isBlobName(const std::string &file);

} // namespace k2c

#endif // K2C_WEIGHTS_WEIGHTINDEX_H

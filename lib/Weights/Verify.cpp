//===- Verify.cpp - Every hash of the weights of a bundle -----------------===//
//
// Reads every range that the index names once, in the order of the files; of a file that cannot be read one line is
// enough. Ranges that are pieces of a checkpoint come first, and are hashed as they lie in a program's memory.
//
//===----------------------------------------------------------------------===//
#include "BlobStore.h"
#include <algorithm>
#include <set>
#include <tuple>

namespace k2c {

using namespace weights;

static constexpr const char *blobRemedy =
    "`k2c pack` with the checkpoint writes its blobs again; a table needs `k2c compile`";

/// What is wrong with the bytes of `range`, of which `digest` was made; "" when nothing is.
static std::string differenceOf(const BlobRange &range, const FileDigest &digest) {
  std::string part;
  if (!range.pieces.empty())
    part = "the weights from byte " + std::to_string(range.pieces.front().offset) + " on: ";
  else if (!range.isWholeBlob())
    part = "bytes " + std::to_string(range.offset) + " to " + std::to_string(range.offset + range.bytes) + ": ";
  if (digest.bytes != range.bytes)
    return part + "has " + std::to_string(digest.bytes) + " bytes, the index says " + std::to_string(range.bytes);
  if (digest.xxh3 != range.xxh3)
    return part + "hashes to " + digest.xxh3 + ", the index says " + range.xxh3;
  if (digest.chunks != range.chunks)
    return part + "has the hash that the index says, its chunks have others";
  return "";
}

namespace {

/// Reads ranges and keeps what is wrong with them.
class Verification {
public:
  Verification(const std::string &bundle, const WeightIndex &index) : bundle(bundle), index(index) {}

  /// Of a blob.
  void readBlob(const BlobRange &range);
  /// Of a checkpoint.
  void readPieces(const BlobRange &range);

  VerifyReport report;

private:
  void refuse(Error error);
  void compare(const std::string &path, const BlobRange &range, const FileDigest &digest, const char *remedy);

  const std::string &bundle;
  const WeightIndex &index;
  std::string last, unreadable; ///< blobs
  std::optional<PieceFiles> checkpoint;
  bool isUnreadable = false; ///< the checkpoint
};

} // namespace

void Verification::refuse(Error error) { report.problems.push_back(std::move(error)); }

void Verification::compare(const std::string &path, const BlobRange &range, const FileDigest &digest,
                           const char *remedy) {
  report.bytes += digest.bytes;
  if (std::string difference = differenceOf(range, digest); !difference.empty())
    refuse({path, std::move(difference), remedy});
}

void Verification::readBlob(const BlobRange &range) {
  report.files += range.file != last;
  last = range.file;
  if (range.file == unreadable)
    return;
  const FilePart part = range.isWholeBlob() ? FilePart() : FilePart{range.offset, range.bytes};
  Expected<FileDigest> digest = digestBundleFile(bundle, "weights/" + range.file, part);
  if (digest)
    return compare(bundle + "/weights/" + range.file, range, *digest, blobRemedy);
  unreadable = range.file;
  Error error = digest.takeError();
  if (error.remedy.empty())
    error.remedy = blobRemedy;
  refuse(std::move(error));
}

void Verification::readPieces(const BlobRange &range) {
  if (!checkpoint && !isUnreadable) {
    Expected<PieceFiles> opened = PieceFiles::open(bundle + "/weights/" + checkpointLink, index.files);
    isUnreadable = !opened;
    if (opened)
      checkpoint = std::move(*opened);
    else
      refuse(opened.takeError());
    report.files += int64_t(index.files.size());
  }
  if (isUnreadable)
    return;
  RunningDigest digest;
  std::vector<char> chunk(size_t(std::min(range.bytes, blobChunkBytes)));
  for (int64_t begin = 0; begin < range.bytes; begin += blobChunkBytes) {
    const int64_t bytes = std::min(blobChunkBytes, range.bytes - begin);
    if (Status status = checkpoint->read(range.pieces, begin, chunk.data(), bytes); !status)
      return refuse(status.takeError());
    digest.update(chunk.data(), bytes);
  }
  compare(checkpoint->path(range.pieces.front().file), range, digest.finish(), checkpointRemedy);
}

Expected<VerifyReport> verifyBundle(const std::string &bundle,
                                    const std::function<void(int64_t done, int64_t total)> &progress) {
  Expected<WeightIndex> index = readWeightIndex(bundle);
  if (!index)
    return index.takeError();
  // File by file; a range that is listed again with other hashes is one more to compare.
  auto comesBefore = [](const BlobRange *a, const BlobRange *b) {
    return std::tie(a->file, a->offset, a->bytes, a->xxh3, a->chunks, a->pieces) <
           std::tie(b->file, b->offset, b->bytes, b->xxh3, b->chunks, b->pieces);
  };
  std::set<const BlobRange *, decltype(comesBefore)> ranges(comesBefore);
  for (const IndexedSlot &slot : index->slots)
    for (const std::optional<BlobRange> &range : slot.ranges)
      if (range)
        ranges.insert(&*range);
  int64_t total = 0; // at most, since an index may claim anything
  for (const BlobRange *range : ranges)
    total = std::min(total + range->bytes, int64_t(1) << 62);
  Verification verification(bundle, *index);
  for (const BlobRange *range : ranges) {
    if (progress)
      progress(verification.report.bytes, total);
    range->pieces.empty() ? verification.readBlob(*range) : verification.readPieces(*range);
  }
  return std::move(verification.report);
}

} // namespace k2c

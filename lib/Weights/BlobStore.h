//===- BlobStore.h - A folder of content-addressed files ------------------===//
//
// A blob `<32 hex digits>.bin` appears under its name complete and on disk, or not at all: it is written as
// `*.partial`, synced, then renamed. A writer holds a lock on its partial file, so that the next run can tell the
// remains of a killed process (no lock) from the work of a living one.
//
// A blob holds ranges of whole pages, one behind the other, that are named by the hash of their sources: one, whose
// name it has, or one for each routed expert that no other blob had. A range is used again, wherever it lies, only when
// its bytes have the hash that was written down when it was finished: a line of finished.txt ("<name> <file> <offset>
// <bytes> <xxh3>"), or the index of a complete bundle. Its name says nothing of a disk that flipped a bit, nor of a
// file that someone put there. A line that is damaged is a range that is written again.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_WEIGHTS_BLOBSTORE_H
#define K2C_LIB_WEIGHTS_BLOBSTORE_H

#include "base/File.h"
#include "base/Hash.h"
#include "k2c/Weights/WeightIndex.h"
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace k2c::weights {

class BlobStore;

/// Hash (16 hex digits) and size of bytes, and the hashes of their chunks.
struct FileDigest {
  std::string xxh3;
  int64_t bytes = 0;
  std::vector<std::string> chunks;
};

/// Makes digests while the bytes come.
class RunningDigest {
public:
  void update(const char *data, int64_t bytes);
  int64_t bytes() const { return taken; }
  /// Of the bytes; the next one begins another.
  FileDigest finish();
  /// The range of that name that the bytes are, zeros behind them up to a whole page; likewise.
  BlobRange finishRange(const std::string &name);

private:
  void endChunk();

  RunningHash hash, chunkHash;
  std::vector<std::string> chunks;
  int64_t taken = 0;
};

/// The list of finished ranges in the folder.
inline constexpr const char *finishedList = "finished.txt";

/// A blob being written. Dropped without `finish`, it leaves nothing. Bytes go to the file a huge page at a time, over
/// the ends of ranges, so that the page cache, which the runtime maps, keeps them in huge pages where the file system
/// has these.
class BlobWriter {
public:
  BlobWriter(BlobWriter &&other) noexcept = default;
  ~BlobWriter();

  Status write(const char *data, int64_t bytes);
  /// What was written since the last range is a range: pads it with zeros to whole pages.
  Status endRange(const std::string &name);
  /// Syncs, gives the blob its name and records its ranges, which it returns.
  Expected<std::vector<BlobRange>> finish();

private:
  friend class BlobStore;
  BlobWriter(const BlobStore &store, std::string path, Descriptor file);
  Status append(const char *data, int64_t bytes);
  Status flush();

  const BlobStore *store;
  std::string path;
  Descriptor file;               ///< none: nothing to remove
  std::vector<BlobRange> ranges; ///< that are complete
  std::vector<char> pending;     ///< at most a huge page that is not yet in the file, across ranges
  RunningDigest digest;          ///< of the range that is being written
};

/// The folder. Members may be called from several threads.
class BlobStore {
public:
  /// Creates the folder, removes partial files nobody writes, reads the list of finished ranges.
  static Expected<BlobStore> open(const std::string &folder);

  const std::string &folder() const { return path; }
  /// A range of this size was known when the store was opened: it may pay to look for it by name.
  bool hadSize(int64_t bytes) const { return sizes.count(bytes) != 0; }
  Expected<BlobWriter> create() const;
  /// That range is sound when it has this hash. Comes from the bundle's index; the list of finished ranges is read by
  /// `open`.
  void expect(BlobRange range);
  /// The range of that name and size, read and hashed; nothing when there is none, or its hash is not the one expected.
  Expected<std::optional<BlobRange>> find(const std::string &name, int64_t bytes) const;
  /// Makes renames durable.
  Status sync() const;
  /// The bundle's index states the hashes from here on.
  void removeFinishedList() const;

private:
  friend class BlobWriter;
  void readFinished();
  Status record(const std::vector<BlobRange> &ranges) const;

  std::string path;
  std::set<int64_t> sizes;
  std::multimap<std::string, BlobRange> expected; ///< by name; a range may lie in several blobs
};

/// Which bytes of a file are read: up to its end at most.
struct FilePart {
  int64_t offset = 0; ///< whole pages
  int64_t bytes = INT64_MAX;
};

/// The digest of a part of a file, read in pieces. Leaves it in the page cache as the runtime wants it.
Expected<FileDigest> digestFile(const std::string &path, FilePart part = {});
/// The same of `bundle`/`name`, refusing what the runtime refuses: what is reached through a symbolic link.
Expected<FileDigest> digestBundleFile(const std::string &bundle, const std::string &name, FilePart part = {});

/// The text of `errno`, with the free space when the disk is full.
Error diskError(const std::string &path, const std::string &action, int code);

} // namespace k2c::weights

#endif // K2C_LIB_WEIGHTS_BLOBSTORE_H

//===- BlobStore.h - A folder of content-addressed files ------------------===//
//
// A blob `<32 hex digits>.bin` appears under its name complete and on disk, or not at all: it is written as
// `*.partial`, synced, then renamed. A writer holds a lock on its partial file, so that the next run can tell the
// remains of a killed process (no lock) from the work of a living one.
//
// A blob is used again only when its bytes have the hash that was written down when it was finished: a line of
// finished.txt ("<file> <xxh3>"), or the index of a complete bundle. Its name is the hash of its sources, which says
// nothing of a disk that flipped a bit, nor of a file that someone put there.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_WEIGHTS_BLOBSTORE_H
#define K2C_LIB_WEIGHTS_BLOBSTORE_H

#include "base/Error.h"
#include "base/Hash.h"
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace k2c::weights {

/// A file descriptor that closes itself.
class File {
public:
  explicit File(int fd = -1) : fd(fd) {}
  File(File &&other) noexcept : fd(other.fd) { other.fd = -1; }
  File &operator=(File &&other) noexcept;
  ~File();
  int get() const { return fd; }

private:
  int fd;
};

/// What a finished blob is: its file name, the hash of its bytes (16 hex digits), and that of each chunk.
struct Blob {
  std::string file;
  std::string xxh3;
  std::vector<std::string> chunks;
};

class BlobStore;

/// The list of finished blobs in the folder.
inline constexpr const char *finishedList = "finished.txt";

/// A blob being written. Dropped without `finish`, it leaves nothing. Bytes go to the file a chunk at a time, which is
/// a huge page, so that the page cache, which the runtime maps, keeps them in huge pages where the file system has
/// these.
class BlobWriter {
public:
  BlobWriter(BlobWriter &&other) noexcept;
  ~BlobWriter();

  Status write(const char *data, int64_t bytes);
  /// Pads with zeros to `bytes`, syncs, renames to `name`.bin and records the hash.
  Expected<Blob> finish(const std::string &name, int64_t bytes);

private:
  friend class BlobStore;
  BlobWriter(const BlobStore &store, std::string path, File file);
  Status flush();

  const BlobStore *store;
  std::string path; // empty: nothing to remove
  File file;
  RunningHash hash;
  std::vector<char> pending; ///< at most a chunk that is not yet in the file
  std::vector<std::string> chunks;
  int64_t written = 0; ///< bytes, those pending included
};

/// The folder. Members may be called from several threads.
class BlobStore {
public:
  /// Creates the folder, removes partial files nobody writes, remembers the sizes of the blobs that are there.
  static Expected<BlobStore> open(const std::string &folder);

  const std::string &folder() const { return path; }
  /// A blob of this size was there when the store was opened: it may pay to look for it by name.
  bool hadSize(int64_t bytes) const { return sizes.count(bytes) != 0; }
  /// A blob of that name and size is there.
  bool contains(const std::string &name, int64_t bytes) const;
  Expected<BlobWriter> create() const;
  /// A blob of that file name is sound when it has this hash. Comes from the bundle's index; the list of finished
  /// blobs is read by `open`.
  void expect(const std::string &file, const std::string &xxh3) { expected[file] = xxh3; }
  /// The blob of that name and size, read and hashed; nothing when there is none, or its hash is not the one expected.
  Expected<std::optional<Blob>> find(const std::string &name, int64_t bytes) const;
  /// Makes renames durable.
  Status sync() const;
  /// The bundle's index states the hashes from here on.
  void removeFinishedList() const;

private:
  friend class BlobWriter;
  void readFinished();
  Status record(const Blob &blob) const;

  std::string path;
  std::set<int64_t> sizes;
  std::map<std::string, std::string> expected;
};

/// Hash (16 hex digits) and size of a file and the hashes of its chunks, read in pieces. Leaves it in the page cache as
/// the runtime wants it.
struct FileDigest {
  std::string xxh3;
  int64_t bytes = 0;
  std::vector<std::string> chunks;
};
Expected<FileDigest> digestFile(const std::string &path);
/// The same of `bundle`/`name`, refusing what the runtime refuses: what is reached through a symbolic link.
Expected<FileDigest> digestBundleFile(const std::string &bundle, const std::string &name);

/// Writes `text` to `path` through a synced temporary file and a rename.
Status replaceFile(const std::string &path, const std::string &text);

/// The text of `errno`, with the free space when the disk is full.
Error diskError(const std::string &path, const std::string &action, int code);

} // namespace k2c::weights

#endif // K2C_LIB_WEIGHTS_BLOBSTORE_H

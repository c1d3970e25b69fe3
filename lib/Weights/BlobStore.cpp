//===- BlobStore.cpp - A folder of content-addressed files ----------------===//
//
// A blob is written under a name that no reader looks at, hashed as it passes, flushed, renamed, then recorded:
//
//   <pid>-<n>.partial, locked  ->  fdatasync  ->  rename to <name>.bin  ->  a line for each range in finished.txt
//
// A process that is killed anywhere in this chain leaves a partial file without a lock, which the next run removes, or
// a blob without lines, which it writes again. Between creating a file and locking it another process may remove it:
// the writer then finds a file without links and takes the next number. A range is reused only when its bytes hash to
// what was recorded; its name, the hash of its sources, says nothing of its content. Hashes are of the range and of its
// chunks, so that a reader can check a part. When files are hashed they are brought into the page cache through a
// mapping with huge pages, as the runtime will map them.
//
// A blob of one range has its name; one of several is named by the hash of their names in their order. So a name says
// which bytes a file has, and writers of the same ranges may replace each other's file.
//
//===----------------------------------------------------------------------===//
#include "BlobStore.h"

#include "base/File.h"
#include "k2c/Support/Units.h"
#include "k2c/Weights/BundleFiles.h"
#include "k2c/Weights/WeightMap.h"
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace fs = std::filesystem;

namespace k2c::weights {

Error diskError(const std::string &path, const std::string &action, int code) {
  std::string message = action + ": " + std::strerror(code), remedy;
  if (code == ENOSPC || code == EDQUOT) {
    struct statvfs info{};
    if (::statvfs(fs::path(path).parent_path().c_str(), &info) == 0)
      message += " (" + format(Bytes(int64_t(info.f_bavail) * int64_t(info.f_frsize))) + " free)";
    remedy = "free space or choose another folder, then run the same command: "
             "finished blobs are kept";
  }
  return Error{path, message, remedy};
}

static Status writeAll(int fd, const std::string &path, const char *data, int64_t bytes) {
  while (bytes > 0) {
    ssize_t count = ::write(fd, data, bytes);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return diskError(path, "cannot write " + format(Bytes(bytes)), errno);
    data += count;
    bytes -= count;
  }
  return Status::success();
}

//===----------------------------------------------------------------------===//
// RunningDigest
//===----------------------------------------------------------------------===//

void RunningDigest::update(const char *data, int64_t bytes) {
  hash.update(data, bytes);
  for (int64_t at = 0; at < bytes;) {
    const int64_t part = std::min(bytes - at, blobChunkBytes - taken % blobChunkBytes);
    chunkHash.update(data + at, part);
    at += part;
    taken += part;
    if (taken % blobChunkBytes == 0)
      endChunk();
  }
}

void RunningDigest::endChunk() {
  chunks.push_back(hashText(chunkHash.value()));
  chunkHash = RunningHash();
}

FileDigest RunningDigest::finish() {
  if (taken % blobChunkBytes != 0)
    endChunk();
  return {hashText(std::exchange(hash, RunningHash()).value()), std::exchange(taken, 0), std::exchange(chunks, {})};
}

BlobRange RunningDigest::finishRange(const std::string &name) {
  const std::vector<char> padding((blobAlignment - taken % blobAlignment) % blobAlignment);
  update(padding.data(), int64_t(padding.size()));
  FileDigest digest = finish();
  return {name, "", 0, digest.bytes, std::move(digest.xxh3), std::move(digest.chunks), {}};
}

//===----------------------------------------------------------------------===//
// BlobWriter
//===----------------------------------------------------------------------===//

BlobWriter::BlobWriter(const BlobStore &store, std::string path, Descriptor file)
    : store(&store), path(std::move(path)), file(std::move(file)) {}

BlobWriter::~BlobWriter() {
  if (file.number >= 0)
    ::unlink(path.c_str());
}

Status BlobWriter::write(const char *data, int64_t bytes) {
  digest.update(data, bytes);
  return append(data, bytes);
}

Status BlobWriter::append(const char *data, int64_t bytes) {
  while (bytes > 0) {
    const int64_t taken = std::min(bytes, blobChunkBytes - int64_t(pending.size()));
    pending.insert(pending.end(), data, data + taken);
    data += taken;
    bytes -= taken;
    if (int64_t(pending.size()) == blobChunkBytes)
      if (Status status = flush(); !status)
        return status;
  }
  return Status::success();
}

Status BlobWriter::flush() {
  Status status = writeAll(file.number, path, pending.data(), int64_t(pending.size()));
  pending.clear();
  return status;
}

Status BlobWriter::endRange(const std::string &name) {
  const int64_t written = digest.bytes();
  BlobRange range = digest.finishRange(name);
  const std::vector<char> padding(size_t(range.bytes - written));
  range.offset = ranges.empty() ? 0 : ranges.back().offset + ranges.back().bytes;
  ranges.push_back(std::move(range));
  return append(padding.data(), int64_t(padding.size()));
}

/// The name of a blob of these ranges.
static std::string blobName(const std::vector<BlobRange> &ranges) {
  if (ranges.size() == 1)
    return ranges[0].name;
  RunningHash hash;
  for (const BlobRange &range : ranges)
    hash.update(range.name.data(), int64_t(range.name.size()));
  return hash.text128();
}

Expected<std::vector<BlobRange>> BlobWriter::finish() {
  if (Status status = flush(); !status)
    return status.takeError();
  if (::fdatasync(file.number) != 0)
    return diskError(path, "cannot flush to disk", errno);
  const std::string name = blobName(ranges) + ".bin", target = store->folder() + "/" + name;
  for (BlobRange &range : ranges)
    range.file = name;
  if (::rename(path.c_str(), target.c_str()) != 0)
    return diskError(target, "cannot rename the finished blob", errno);
  file = Descriptor();
  if (Status status = store->record(ranges); !status)
    return status.takeError();
  return std::move(ranges);
}

//===----------------------------------------------------------------------===//
// BlobStore
//===----------------------------------------------------------------------===//

/// Removes `path` when no process holds its lock.
static void removeAbandoned(const fs::path &path) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (file.number >= 0 && ::flock(file.number, LOCK_EX | LOCK_NB) == 0)
    ::unlink(path.c_str());
}

Expected<BlobStore> BlobStore::open(const std::string &folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code)
    return Error{folder, "cannot create the folder: " + code.message(), ""};
  BlobStore store;
  store.path = folder;
  fs::directory_iterator entries(folder, code);
  if (code)
    return Error{folder, "cannot list the folder: " + code.message(), ""};
  for (const fs::directory_entry &entry : entries) {
    if (entry.path().extension() == ".partial")
      removeAbandoned(entry.path());
  }
  store.readFinished();
  return store;
}

/// What earlier runs finished. A line that was cut short or is of another kind says nothing.
void BlobStore::readFinished() {
  std::ifstream list(path + "/" + finishedList);
  for (std::string line; std::getline(list, line);) {
    std::istringstream words(line);
    BlobRange range;
    if (words >> range.name >> range.file >> range.offset >> range.bytes >> range.xxh3 && isSound(range))
      expect(std::move(range));
  }
}

void BlobStore::expect(BlobRange range) {
  sizes.insert(range.bytes);
  expected.emplace(range.name, std::move(range));
}

Status BlobStore::record(const std::vector<BlobRange> &ranges) const {
  std::string name = path + "/" + finishedList, lines;
  for (const BlobRange &range : ranges)
    lines += range.name + " " + range.file + " " + std::to_string(range.offset) + " " + std::to_string(range.bytes) +
             " " + range.xxh3 + "\n";
  Descriptor list(::open(name.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (list.number < 0)
    return diskError(name, "cannot create", errno);
  return writeAll(list.number, name, lines.data(), int64_t(lines.size()));
}

void BlobStore::removeFinishedList() const { ::unlink((path + "/" + finishedList).c_str()); }

Expected<BlobWriter> BlobStore::create() const {
  static std::atomic<int64_t> counter{0};
  for (;;) {
    std::string name = path + "/" + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".partial";
    Descriptor file(::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (file.number < 0 && errno == EEXIST)
      continue; // of a process of that number on another machine, or abandoned
    if (file.number < 0)
      return diskError(name, "cannot create", errno);
    // Another process may take a file without a lock for abandoned. It holds the lock while it removes it: so wait.
    struct stat info{};
    while (::flock(file.number, LOCK_EX) != 0 && errno == EINTR)
      ;
    if (::fstat(file.number, &info) == 0 && info.st_nlink == 0)
      continue;
    return BlobWriter(*this, std::move(name), std::move(file));
  }
}

Expected<std::optional<BlobRange>> BlobStore::find(const std::string &name, int64_t bytes) const {
  const auto [first, last] = expected.equal_range(name);
  for (auto known = first; known != last; ++known) {
    BlobRange range = known->second;
    const std::string file = path + "/" + range.file;
    struct stat info{};
    if (range.bytes != bytes || ::stat(file.c_str(), &info) != 0 || !S_ISREG(info.st_mode) ||
        (range.isWholeBlob() && info.st_size != bytes))
      continue;
    Expected<FileDigest> digest = digestFile(file, {range.offset, bytes});
    if (!digest)
      return digest.takeError();
    if (digest->bytes != bytes || digest->xxh3 != range.xxh3)
      continue;
    range.chunks = std::move(digest->chunks);
    return std::optional<BlobRange>(std::move(range));
  }
  return std::optional<BlobRange>();
}

Status BlobStore::sync() const {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.number < 0 || ::fsync(folder.number) != 0)
    return diskError(path, "cannot flush the folder to disk", errno);
  return Status::success();
}

//===----------------------------------------------------------------------===//
// Whole files
//===----------------------------------------------------------------------===//

/// Reads `bytes` from `offset` into the page cache as the runtime's mapping would: read(2) would bring small pages,
/// which stay. Best effort, and a file that shrinks meanwhile is a refusal here, where touching a mapping would be a
/// fault.
static void fetch(int fd, int64_t offset, int64_t bytes) {
#ifdef MADV_POPULATE_READ
  void *mapping = ::mmap(nullptr, size_t(bytes), PROT_READ, MAP_SHARED, fd, offset);
  if (mapping == MAP_FAILED)
    return;
  ::madvise(mapping, size_t(bytes), MADV_HUGEPAGE);
  ::madvise(mapping, size_t(bytes), MADV_POPULATE_READ);
  ::munmap(mapping, size_t(bytes));
#endif
}

Expected<FileDigest> digestFile(const std::string &path, FilePart part) {
  Descriptor file(::open(path.c_str(),
                         O_RDONLY | O_CLOEXEC | O_NONBLOCK)); // a fifo must not block
  struct stat info{};
  if (file.number < 0 || ::fstat(file.number, &info) != 0)
    return diskError(path, "cannot open", errno);
  if (!S_ISREG(info.st_mode))
    return Error{path, "is not a regular file", ""};
  std::vector<char> chunk(blobChunkBytes);
  RunningDigest digest;
  for (ssize_t count = 1; count != 0;) {
    const int64_t at = part.offset + digest.bytes(), wanted = part.bytes - digest.bytes();
    const int64_t filled = digest.bytes() % blobChunkBytes; // of the chunk
    if (const int64_t left = std::min(info.st_size - at, wanted); left > 0 && filled == 0)
      fetch(file.number, at, std::min(left, blobChunkBytes));
    count = ::pread(file.number, chunk.data(), std::min(blobChunkBytes - filled, wanted), at);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return diskError(path, "cannot read at byte " + std::to_string(at), errno);
    digest.update(chunk.data(), count);
  }
  return digest.finish();
}

Expected<FileDigest> digestBundleFile(const std::string &bundle, const std::string &name, FilePart part) {
  Expected<int64_t> bytes = bundleFileBytes(bundle, name);
  if (!bytes && bundleFileExists(bundle, name))
    return bytes.takeError();
  return digestFile(bundle + "/" + name, part);
}

} // namespace k2c::weights

k2c::Status k2c::replaceFile(const std::string &path, const std::string &text) {
  using namespace weights;
  // The same name for a retry, which removes what a killed one left, and follows no link.
  std::string temporary = path + ".tmp";
  ::unlink(temporary.c_str());
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.number < 0)
    return diskError(temporary, "cannot create", errno);
  Status status = writeAll(file.number, temporary, text.data(), int64_t(text.size()));
  if (status && ::fdatasync(file.number) != 0)
    status = diskError(temporary, "cannot flush to disk", errno);
  if (status && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = diskError(path, "cannot replace", errno);
  if (!status)
    ::unlink(temporary.c_str());
  return status;
}

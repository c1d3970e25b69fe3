// A range is read piece by piece: a binary search finds the first piece that ends behind the bytes that are wanted, and
// whatever lies between two pieces, or behind the last, is zero. That needs pieces in the order of the range that do
// not overlap, so the index is refused unless they are: readers of a range then touch each of its pieces once.
//
// The index may name any size. A file is refused when it is opened unless it has the bytes that the index says, and
// each piece was held against these before; a file that shrinks later ends a read early, with its name.
#include "base/FilePieces.h"
#include "base/JsonFields.h"
#include "base/Utf8.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>

namespace k2c {

static constexpr size_t maxFiles = 1 << 16;
static constexpr size_t maxPieces = 1 << 20;
static constexpr int64_t maxFileBytes = int64_t(1) << 50;

static bool isFileName(const std::string &name) {
  return isInsidePath(name) && name.find('/') == std::string::npos && name.size() < 256;
}

std::vector<PieceFile> readPieceFiles(const JsonFields &in, const char *key) {
  std::vector<PieceFile> files;
  for (const JsonFields &entry : in.objects(key, maxFiles)) {
    files.push_back({entry.string("file"), entry.integer("bytes", 0, maxFileBytes)});
    if (!isFileName(files.back().name))
      entry.fail("file", "'" + shortened(files.back().name) + "' is not the name of a file in the checkpoint's folder");
  }
  return files;
}

std::vector<FilePiece> readFilePieces(const JsonFields &in, const char *key, int64_t rangeBytes,
                                      const std::vector<PieceFile> &files) {
  constexpr size_t numbers = 4;
  std::vector<FilePiece> pieces;
  int64_t end = 0; // of the piece before
  for (const std::vector<int64_t> &entry : in.integerLists(key, 0, maxFileBytes, -1, maxPieces, numbers)) {
    const std::string place = std::string(key) + "[" + std::to_string(pieces.size()) + "]";
    if (entry.size() != numbers || std::count(entry.begin(), entry.end(), -1) > 0)
      in.fail(place, "is not a list of file, offset, bytes and at");
    const FilePiece piece{entry[0], entry[1], entry[2], entry[3]};
    if (piece.file >= int64_t(files.size()))
      in.fail(place, "is of file " + std::to_string(piece.file) + ", the index lists " + std::to_string(files.size()));
    const PieceFile &file = files[size_t(piece.file)];
    if (piece.bytes == 0 || piece.offset + piece.bytes > file.bytes)
      in.fail(place, "is bytes " + std::to_string(piece.offset) + " to " + std::to_string(piece.offset + piece.bytes) +
                         " of " + shortened(file.name) + ", which has " + std::to_string(file.bytes));
    if (piece.at < end)
      in.fail(place, "begins at byte " + std::to_string(piece.at) + " of its range, the one before it ends at " +
                         std::to_string(end));
    end = piece.at + piece.bytes;
    if (end > rangeBytes)
      in.fail(place, "ends at byte " + std::to_string(end) + " of its range, which has " + std::to_string(rangeBytes));
    pieces.push_back(piece);
  }
  if (pieces.empty())
    in.fail(key, "is empty: a range has one or more");
  return pieces;
}

Expected<PieceFiles> PieceFiles::open(const std::string &folder, const std::vector<PieceFile> &files) {
  PieceFiles opened;
  for (const PieceFile &file : files) {
    const std::string path = folder + "/" + file.name;
    Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)); // a FIFO must not block
    struct stat facts;
    if (descriptor.number < 0 && (errno == ENOENT || errno == ENOTDIR))
      return Error{K2RT_INVALID_BUNDLE, path,
                   "is missing, the index says a file of " + std::to_string(file.bytes) + " bytes", checkpointRemedy};
    if (descriptor.number < 0 || ::fstat(descriptor.number, &facts) != 0)
      return systemError(path, "cannot open", errno);
    if (!S_ISREG(facts.st_mode))
      return Error{K2RT_INVALID_BUNDLE, path, "is not a regular file", checkpointRemedy};
    if (facts.st_size != file.bytes)
      return Error{K2RT_INVALID_BUNDLE, path,
                   "has " + std::to_string(facts.st_size) + " bytes, the index says " + std::to_string(file.bytes),
                   checkpointRemedy};
    opened.descriptors.push_back(std::move(descriptor));
    opened.paths.push_back(path);
  }
  return opened;
}

/// Reads `bytes` bytes of an open file from `offset` on, which are there.
static Status readAll(const Descriptor &file, const std::string &path, int64_t offset, char *out, int64_t bytes) {
  const BytesRead read = readAt(file.number, offset, out, bytes);
  const std::string end = std::to_string(offset + read.count);
  if (read.error)
    return systemError(path, "cannot read at byte " + end, read.error);
  if (read.count < bytes)
    return Error{K2RT_INVALID_BUNDLE, path,
                 "ends at byte " + end + ", " + std::to_string(bytes - read.count) +
                     " bytes before what the index names",
                 checkpointRemedy};
  return {};
}

const FilePiece *pieceAt(const std::vector<FilePiece> &pieces, int64_t at) {
  const auto found = std::upper_bound(pieces.begin(), pieces.end(), at,
                                      [](int64_t at, const FilePiece &piece) { return at < piece.at + piece.bytes; });
  return found == pieces.end() ? nullptr : &*found;
}

Status PieceFiles::read(const std::vector<FilePiece> &pieces, int64_t begin, void *out, int64_t bytes) const {
  auto *to = static_cast<char *>(out);
  const int64_t end = begin + bytes;
  int64_t filled = begin;
  const FilePiece *const last = pieces.data() + pieces.size();
  for (const FilePiece *piece = pieceAt(pieces, begin); piece && piece != last && piece->at < end; ++piece) {
    const int64_t from = std::max(begin, piece->at), until = std::min(end, piece->at + piece->bytes);
    std::memset(to + (filled - begin), 0, static_cast<size_t>(from - filled));
    const auto file = static_cast<size_t>(piece->file);
    if (Status got = readAll(descriptors[file], paths[file], piece->offset + (from - piece->at), to + (from - begin),
                             until - from);
        !got)
      return got;
    filled = until;
  }
  std::memset(to + (filled - begin), 0, static_cast<size_t>(end - filled));
  return {};
}

} // namespace k2c

// Ranges of memory that are made of pieces of files: how a bundle's weights are those of a checkpoint, which stays
// where it is.
//
//   file 0   | header | a | b | c |      range   | b | a | zeros |      pieces   [[0, b, .., 0], [0, a, .., b's bytes]]
//
// weights/index.json lists the files and the pieces; both are hostile input. The files lie in a folder of the user's,
// so links are followed, as those of the Hugging Face cache are. They are read and not mapped: one that shrinks
// meanwhile is an error, where touching a mapping would be a fault.
#ifndef K2C_BASE_FILEPIECES_H
#define K2C_BASE_FILEPIECES_H

#include "base/File.h"
#include <tuple>
#include <vector>

namespace k2c {

class JsonFields;

/// Where the files of pieces are, in the folder of a bundle's index: a link to the folder of the checkpoint.
constexpr char checkpointLink[] = "checkpoint";

/// What to do about files that are not those that an index names.
constexpr char checkpointRemedy[] =
    "bring the checkpoint back, or name the folder where it is: k2c pack DIR --checkpoint FOLDER";

/// A file as it was when pieces of it were named.
struct PieceFile {
  std::string name; ///< in its folder
  int64_t bytes = 0;
};

/// Bytes [offset, offset + bytes) of file number `file`, which lie at byte `at` of the range.
struct FilePiece {
  int64_t file = 0, offset = 0, bytes = 0, at = 0;

  bool operator<(const FilePiece &other) const {
    return std::tie(at, file, offset, bytes) < std::tie(other.at, other.file, other.offset, other.bytes);
  }
  bool operator==(const FilePiece &other) const { return !(*this < other) && !(other < *this); }
};

/// Reads the list `key` of {"file":"model.safetensors","bytes":8192}. Refuses a name that is a path.
std::vector<PieceFile> readPieceFiles(const JsonFields &in, const char *key);

/// Reads the list `key` of [file, offset, bytes, at], ascending, of a range of `rangeBytes`. Refuses pieces of a file
/// that is not listed, outside of their file or of the range, those that overlap, and none.
std::vector<FilePiece> readFilePieces(const JsonFields &in, const char *key, int64_t rangeBytes,
                                      const std::vector<PieceFile> &files);

/// The files of pieces, open. Members may be called from several threads.
class PieceFiles {
public:
  /// Error: a file that is missing, no regular file, or of another size than the list says.
  static Expected<PieceFiles> open(const std::string &folder, const std::vector<PieceFile> &files);

  /// Writes bytes [begin, begin + bytes) of the range of these pieces to `out`; what lies between pieces is zero.
  Status read(const std::vector<FilePiece> &pieces, int64_t begin, void *out, int64_t bytes) const;
  /// Where a file was opened, for messages.
  const std::string &path(int64_t file) const { return paths[static_cast<size_t>(file)]; }

private:
  std::vector<Descriptor> descriptors;
  std::vector<std::string> paths;
};

/// The piece that byte `at` of a range is of, or else the first behind it; null: there is none.
const FilePiece *pieceAt(const std::vector<FilePiece> &pieces, int64_t at);

} // namespace k2c

#endif

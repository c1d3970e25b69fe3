// Files of a bundle: opened inside one folder, never through a symbolic link, mapped read-only.
#ifndef K2C_BASE_FILE_H
#define K2C_BASE_FILE_H

#include "base/Error.h"
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace k2c {

/// What one huge page of anonymous memory or of the page cache holds.
constexpr int64_t hugePageBytes = int64_t(2) << 20;

/// A file descriptor that closes itself. Move-only.
struct Descriptor {
  int number = -1; ///< negative: none
  explicit Descriptor(int number = -1) : number(number) {}
  Descriptor(Descriptor &&other) noexcept : number(std::exchange(other.number, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(number, other.number);
    return *this;
  }
  ~Descriptor();
};

/// What a read came to: how many bytes, fewer than asked for only where the file ends or the system refuses.
struct BytesRead {
  int64_t count = 0;
  int error = 0; ///< errno; 0: none
};
/// Reads `bytes` bytes of an open file from `offset` on into `out`.
BytesRead readAt(int descriptor, int64_t offset, void *out, int64_t bytes);

/// A regular file, or a part of one, mapped MAP_SHARED for reading; processes that map the same file share its pages.
/// Move-only.
class MappedFile {
public:
  MappedFile() = default;
  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  /// Maps all of `folder`/`relative`. Refuses: an empty, absolute or ".." path, a symbolic link below `folder`, what is
  /// not a regular file, and a size other than `expectedBytes` (negative: any).
  static Expected<MappedFile> open(const std::string &folder, const std::string &relative, int64_t expectedBytes);
  /// Maps bytes [offset, offset + bytes) under the same rules, refusing a file that ends before them. `offset`: whole
  /// pages.
  static Expected<MappedFile> openPart(const std::string &folder, const std::string &relative, int64_t offset,
                                       int64_t bytes);

  /// Page aligned; null where there are no bytes.
  const void *data() const { return base; }
  int64_t size() const { return bytes; }
  /// Where in the file data() is.
  int64_t offset() const { return begin; }
  /// Where it was opened, for messages.
  const std::string &path() const { return where; }

private:
  Status map(int descriptor, int64_t offset, int64_t length);

  std::string where;
  void *base = nullptr;
  int64_t begin = 0, bytes = 0;
};

/// Reads all of `folder`/`relative` under the same rules, refusing more than `limitBytes`.
Expected<std::string> readBundleFile(const std::string &folder, const std::string &relative, int64_t limitBytes);

/// Calls visit(data, bytes) for all bytes of `folder`/`relative`, piece by piece, under the same rules; returns the
/// file's size.
Expected<int64_t> visitBundleFile(const std::string &folder, const std::string &relative,
                                  const std::function<void(const char *data, size_t bytes)> &visit);

/// The size of `folder`/`relative`, under the same rules. It is not read.
Expected<int64_t> bundleFileBytes(const std::string &folder, const std::string &relative);

/// Reads a file the user named (or standard input for "-"), refusing more than `limitBytes`.
Expected<std::string> readUserFile(const std::string &path, int64_t limitBytes);

/// Whether `relative` stays inside its folder by its spelling: not empty, not absolute, no "." or ".." component.
bool isInsidePath(const std::string &relative);

/// Whether `folder`/`relative` is there at all, of whatever kind.
bool bundleFileExists(const std::string &folder, const std::string &relative);

} // namespace k2c

#endif

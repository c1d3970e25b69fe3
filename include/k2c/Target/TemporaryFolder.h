//===- TemporaryFolder.h - A folder that is gone with its object ----------===//
#ifndef K2C_TARGET_TEMPORARYFOLDER_H
#define K2C_TARGET_TEMPORARYFOLDER_H

#include "base/Error.h"
#include <string>

namespace k2c {

/// A folder that is gone, with all in it, with this object. Move-only.
class TemporaryFolder {
public:
  /// In the system's folder of temporary files, with a name that begins with `prefix`. Error: at `where`, with
  /// `remedy`.
  static Expected<TemporaryFolder> make(const std::string &prefix, const std::string &where, const std::string &remedy);
  TemporaryFolder(TemporaryFolder &&other) noexcept : folder(std::move(other.folder)) { other.folder.clear(); }
  TemporaryFolder &operator=(TemporaryFolder &&) = delete;
  ~TemporaryFolder();

  const std::string &path() const { return folder; }
  /// Of a file in it.
  std::string path(const char *name) const { return folder + "/" + name; }

private:
  explicit TemporaryFolder(std::string folder) : folder(std::move(folder)) {}
  std::string folder;
};

} // namespace k2c

#endif // K2C_TARGET_TEMPORARYFOLDER_H

// A folder of this process for readers that want paths; removed at the end.
#ifndef K2C_FUZZ_TEMPFILE_H
#define K2C_FUZZ_TEMPFILE_H

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

struct TempFolder {
  /// With copies of these files of the repository.
  explicit TempFolder(const std::vector<std::string> &copied = {})
      : path((std::filesystem::temp_directory_path() / ("k2c-fuzz-" + std::to_string(getpid()))).string()) {
    std::filesystem::create_directories(path);
    for (const std::string &name : copied)
      std::filesystem::copy(K2C_SOURCE_DIR "/" + name, path);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  /// The path of a file with these bytes.
  std::string write(const std::string &name, const uint8_t *data, size_t size) const {
    const std::string file = path + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char *>(data), std::streamsize(size));
    return file;
  }

  std::string path;
};

/// A file of the repository.
inline std::string readFile(const std::string &name) {
  std::ifstream file(K2C_SOURCE_DIR "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

#endif

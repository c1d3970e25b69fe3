//===- TempFolder.h - a folder of a test ------------------------------------===//
#ifndef K2C_UNIT_TEMPFOLDER_H
#define K2C_UNIT_TEMPFOLDER_H

#include <atomic>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

namespace k2c::test {

/// A folder that is removed with the object.
struct TempFolder {
  TempFolder() {
    static std::atomic<int> count{0};
    path = testing::TempDir() + "k2c-test-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
    std::filesystem::create_directories(path);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TempFolder(const TempFolder &) = delete;
  TempFolder &operator=(const TempFolder &) = delete;

  std::string operator/(const std::string &name) const { return path + "/" + name; }
  std::string write(const std::string &name, const std::string &bytes) const {
    std::filesystem::remove(*this / name); // a file that is cut and written again waits for the disk
    std::ofstream(*this / name, std::ios::binary) << bytes;
    return *this / name;
  }
  /// `text` without the folder's own path: for messages.
  std::string relative(std::string text) const {
    for (size_t at; (at = text.find(path + "/")) != std::string::npos;)
      text.erase(at, path.size() + 1);
    for (size_t at; (at = text.find(path)) != std::string::npos;)
      text.replace(at, path.size(), ".");
    return text;
  }

  std::string path;
};

} // namespace k2c::test

#endif // K2C_UNIT_TEMPFOLDER_H

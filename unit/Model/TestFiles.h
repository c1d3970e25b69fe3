//===- TestFiles.h - temporary files and altered checkpoints --------------===//
#ifndef K2C_UNIT_MODEL_TESTFILES_H
#define K2C_UNIT_MODEL_TESTFILES_H

#include "k2c/Model/ModelSpec.h"
#include <atomic>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <unistd.h>

namespace k2c::test {

/// A folder that is removed with the object.
struct TempFolder {
  TempFolder() {
    static std::atomic<int> count{0};
    path = testing::TempDir() + "k2c-model-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
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

inline std::string readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A safetensors file of a header text and data bytes.
inline std::string safetensors(const std::string &header, const std::string &data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header + data;
}

inline std::string oracle(const std::string &family) { return K2C_SOURCE_DIR "/test/EndToEnd/oracle/" + family; }

/// config.json of an oracle checkpoint or a published model.
inline nlohmann::json configOf(const std::string &folder) {
  return nlohmann::json::parse(readFile(folder + "/config.json"));
}

/// An altered config.json; "-" removes a key.
inline Expected<ModelSpec> load(const TempFolder &folder, const std::string &source, const nlohmann::json &changes,
                                LoadOptions options = {}) {
  nlohmann::json config = configOf(source);
  for (const auto &[key, value] : changes.items())
    value == "-" ? void(config.erase(key)) : void(config[key] = value);
  folder.write("config.json", config.dump());
  return loadModelSpec(folder.path, options);
}

/// The message of a config that must not load; "" when it does.
inline std::string failure(const std::string &family, const nlohmann::json &changes, LoadOptions options = {}) {
  TempFolder folder;
  Expected<ModelSpec> spec = load(folder, oracle(family), changes, options);
  return spec ? "" : spec.error().message;
}

} // namespace k2c::test

#endif // K2C_UNIT_MODEL_TESTFILES_H

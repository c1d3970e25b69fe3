//===- TestFiles.h - temporary files and altered checkpoints --------------===//
#ifndef K2C_UNIT_MODEL_TESTFILES_H
#define K2C_UNIT_MODEL_TESTFILES_H

#include "../TempFolder.h"
#include "k2c/Model/ModelSpec.h"
#include <nlohmann/json.hpp>
#include <string>

namespace k2c::test {

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

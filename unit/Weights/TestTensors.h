//===- TestTensors.h - A checkpoint in memory, and temporary folders ------===//
#ifndef K2C_UNIT_WEIGHTS_TESTTENSORS_H
#define K2C_UNIT_WEIGHTS_TESTTENSORS_H

#include "k2c/Weights/TensorSource.h"
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

namespace k2c::test {

/// Tensors held in memory; a read of a tensor named in `broken` fails.
class MemoryTensors : public TensorSource {
public:
  template <class Element>
  void add(const std::string &name, DType type, std::vector<int64_t> shape, const std::vector<Element> &elements) {
    std::string bytes(reinterpret_cast<const char *>(elements.data()), elements.size() * sizeof(Element));
    tensors[name] = {{type, std::move(shape)}, std::move(bytes)};
  }
  /// Random bits of the type's width that are finite numbers: an exponent's high bit is clear.
  void addRandom(const std::string &name, DType type, std::vector<int64_t> shape) {
    int64_t count = byteWidth(type);
    for (int64_t dimension : shape)
      count *= dimension;
    std::string bytes(count, 0);
    for (char &byte : bytes)
      byte = char(random());
    for (int64_t high = byteWidth(type) - 1; high < count; high += byteWidth(type))
      bytes[size_t(high)] &= char(0xBF);
    tensors[name] = {{type, std::move(shape)}, std::move(bytes)};
  }
  template <class Element> std::vector<Element> elements(const std::string &name) const {
    const std::string &bytes = tensors.at(name).second;
    std::vector<Element> result(bytes.size() / sizeof(Element));
    std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }

  Expected<StoredTensor> find(const std::string &name) const override {
    auto found = tensors.find(name);
    if (found == tensors.end())
      return Error{"tensor '" + name + "'", "is not in the checkpoint", ""};
    return found->second.first;
  }
  Status read(const std::string &name, int64_t offset, char *out, int64_t count) const override {
    if (name == broken)
      return Error{"model.safetensors", "cannot read at byte " + std::to_string(offset), ""};
    const std::string &bytes = tensors.at(name).second;
    if (offset < 0 || count < 0 || offset + count > int64_t(bytes.size()))
      return Error{"tensor '" + name + "'", "read outside the tensor", ""};
    std::memcpy(out, bytes.data() + offset, count);
    return Status::success();
  }
  std::string broken;

private:
  std::map<std::string, std::pair<StoredTensor, std::string>> tensors;
  std::mt19937 random{1};
};

/// A folder that goes away with the test.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "k2c-test-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  std::string path;
};

inline std::string readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

} // namespace k2c::test

#endif // K2C_UNIT_WEIGHTS_TESTTENSORS_H

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

  /// In two files, every other tensor in each, behind 24 bytes that are of none.
  TensorPlace place(const std::string &name) const override {
    TensorPlace place{0, gap};
    int64_t ends[] = {gap, gap}, number = 0;
    for (const auto &[each, stored] : tensors) {
      place = {number, ends[number]};
      if (each == name)
        break;
      ends[number] += int64_t(stored.second.size());
      number = 1 - number;
    }
    return place;
  }
  std::vector<PieceFile> files() const override {
    int64_t ends[] = {gap, gap}, number = 0;
    for (const auto &[name, stored] : tensors) {
      ends[number] += int64_t(stored.second.size());
      number = 1 - number;
    }
    return {{"a.safetensors", ends[0]}, {"b.safetensors", ends[1]}};
  }
  void save(const std::string &folder) const {
    std::string contents[2] = {std::string(gap, 'h'), std::string(gap, 'h')};
    int number = 0;
    for (const auto &[name, stored] : tensors) {
      contents[number] += stored.second;
      number = 1 - number;
    }
    const std::vector<PieceFile> written = files();
    for (int i = 0; i < 2; ++i)
      std::ofstream(folder + "/" + written[size_t(i)].name, std::ios::binary) << contents[i];
  }

private:
  static constexpr int64_t gap = 24;
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

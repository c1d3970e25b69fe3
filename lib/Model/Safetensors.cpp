//===- Safetensors.cpp - the header of one file ---------------------------===//
//
// A file is: 8 bytes little-endian header length, a JSON object, tensor bytes.
// The object maps a name to {dtype, shape, data_offsets}; offsets count from
// the end of the header. As in the reference reader the ranges must tile the
// data without overlap or hole, so that a byte belongs to one tensor.
//
//===----------------------------------------------------------------------===//

#include "k2c/Model/Safetensors.h"
#include "base/File.h"
#include "base/Json.h"
#include "base/JsonText.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <unistd.h>

using namespace k2c;
using nlohmann::json;

namespace {

/// The reference reader's limit.
constexpr uint64_t maxHeaderBytes = 100'000'000;
constexpr size_t maxRank = 8;

std::string num(uint64_t value) { return std::to_string(value); }

struct NamedType {
  const char *name;
  DType type;
};
constexpr NamedType storedTypes[] = {{"F64", DType::F64},   {"F32", DType::F32},        {"F16", DType::F16},
                                     {"BF16", DType::BF16}, {"F8_E4M3", DType::F8E4M3}, {"F8_E5M2", DType::F8E5M2},
                                     {"I64", DType::I64},   {"I32", DType::I32},        {"I16", DType::I16},
                                     {"I8", DType::I8},     {"U8", DType::U8},          {"BOOL", DType::Bool}};

/// Reads one header. Errors name the file and the tensor.
class HeaderReader {
public:
  HeaderReader(std::string path, uint64_t dataBegin, uint64_t dataBytes)
      : path(std::move(path)), dataBegin(dataBegin), dataBytes(dataBytes) {}

  Expected<std::vector<TensorInfo>> read(const json &header) {
    std::vector<TensorInfo> tensors;
    for (const auto &[name, entry] : header.items()) {
      if (name == "__metadata__") {
        if (!entry.is_object() || !std::all_of(entry.begin(), entry.end(), [](const json &v) { return v.is_string(); }))
          return fail(name, "must be an object of strings");
        continue;
      }
      Expected<TensorInfo> tensor = readTensor(name, entry);
      if (!tensor)
        return tensor.takeError();
      tensors.push_back(std::move(*tensor));
    }
    if (Status tiled = checkTiling(tensors); !tiled)
      return tiled.takeError();
    return tensors;
  }

private:
  Error fail(const std::string &tensor, std::string message) {
    return Error{path, "tensor '" + shortened(tensor) + "': " + message,
                 "the file is damaged or not safetensors: download it again"};
  }

  /// Reads a whole number from 0 to 2^63 - 1.
  bool readCount(const json &value, uint64_t &out) {
    if (!value.is_number_unsigned())
      return false;
    out = value.get<uint64_t>();
    return out <= static_cast<uint64_t>(INT64_MAX);
  }

  Expected<TensorInfo> readTensor(const std::string &name, const json &entry) {
    if (!entry.is_object())
      return fail(name, "must be an object");
    for (const char *key : {"dtype", "shape", "data_offsets"})
      if (!entry.contains(key))
        return fail(name, std::string("has no '") + key + "'");
    TensorInfo tensor;
    tensor.name = name;
    const json &type = entry["dtype"];
    const auto *stored = std::find_if(std::begin(storedTypes), std::end(storedTypes),
                                      [&](const NamedType &t) { return type.is_string() && type == t.name; });
    if (stored == std::end(storedTypes))
      return fail(name, "element type " + shortenedJson(type) + " is not in this build");
    tensor.dtype = stored->type;

    uint64_t bytes = static_cast<uint64_t>(byteWidth(tensor.dtype));
    const json &shape = entry["shape"];
    if (!shape.is_array() || shape.size() > maxRank)
      return fail(name, "shape must be a list of at most " + num(maxRank) + " numbers, got " + shortenedJson(shape));
    for (const json &dim : shape) {
      uint64_t size;
      if (!readCount(dim, size))
        return fail(name, "size " + shortenedJson(dim) + " is not a whole number");
      if (__builtin_mul_overflow(bytes, size, &bytes))
        return fail(name, "shape " + shortenedJson(shape) + " overflows 64 bits");
      tensor.shape.push_back(static_cast<int64_t>(size));
    }
    return readRange(std::move(tensor), entry["data_offsets"], bytes);
  }

  Expected<TensorInfo> readRange(TensorInfo tensor, const json &offsets, uint64_t bytes) {
    uint64_t begin, end;
    if (!offsets.is_array() || offsets.size() != 2 || !readCount(offsets[0], begin) || !readCount(offsets[1], end))
      return fail(tensor.name, "data_offsets must be two whole numbers, got " + shortenedJson(offsets));
    if (begin > end || end > dataBytes)
      return fail(tensor.name, "bytes " + num(begin) + " to " + num(end) + " do not lie in the file's " +
                                   num(dataBytes) + " data bytes");
    if (end - begin != bytes)
      return fail(tensor.name, "has " + num(end - begin) + " bytes, its shape and type ask for " + num(bytes));
    tensor.begin = dataBegin + begin;
    tensor.end = dataBegin + end;
    return tensor;
  }

  /// Sorted by offset, each tensor must begin where the one before it ends.
  Status checkTiling(std::vector<TensorInfo> &tensors) {
    std::sort(tensors.begin(), tensors.end(), [](const TensorInfo &a, const TensorInfo &b) {
      return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
    });
    uint64_t at = dataBegin;
    const std::string *before = nullptr;
    for (const TensorInfo &tensor : tensors) {
      if (tensor.begin < at)
        return fail(tensor.name, "begins at byte " + num(tensor.begin - dataBegin) + ", inside tensor '" +
                                     shortened(*before) + "', which ends at " + num(at - dataBegin));
      if (tensor.begin > at)
        return fail(tensor.name, "begins at byte " + num(tensor.begin - dataBegin) + "; bytes from " +
                                     num(at - dataBegin) + " belong to no tensor");
      at = tensor.end;
      before = &tensor.name;
    }
    if (at != dataBegin + dataBytes)
      return Error{path, "tensors end at data byte " + num(at - dataBegin) + ", the file has " + num(dataBytes),
                   "the file is damaged: download it again"};
    return Status::success();
  }

  std::string path;
  uint64_t dataBegin;
  uint64_t dataBytes;
};

} // namespace

std::string k2c::safetensorsName(DType type) {
  const auto *const named = std::find_if(std::begin(storedTypes), std::end(storedTypes),
                                         [&](const NamedType &stored) { return stored.type == type; });
  assert(named != std::end(storedTypes) && "a type of the list");
  return named->name;
}

Expected<std::vector<TensorInfo>> k2c::readSafetensorsHeader(int fd, uint64_t fileBytes, const std::string &path) {
  const char *remedy = "the file is damaged or not safetensors: download it "
                       "again";
  unsigned char lengthBytes[8];
  if (fileBytes < 8 || ::pread(fd, lengthBytes, 8, 0) != 8)
    return Error{path, "file has " + num(fileBytes) + " bytes, a header needs 8", remedy};
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | lengthBytes[i];
  if (length > maxHeaderBytes || length > fileBytes - 8)
    return Error{path,
                 "header length " + num(length) + " exceeds the " + num(std::min(maxHeaderBytes, fileBytes - 8)) +
                     " bytes possible in a file of " + num(fileBytes),
                 remedy};
  std::string text(length, '\0');
  const uint64_t got = uint64_t(readAt(fd, 8, text.data(), int64_t(length)).count);
  if (got != length)
    return Error{path, "read " + num(got) + " of " + num(length) + " header bytes", remedy};
  // {name: {shape: [..]}} is three levels deep.
  Expected<JsonDocument> header = parseJson(std::move(text), path, {maxHeaderBytes, 3});
  if (!header)
    return header.takeError();
  if (!header->root().is_object())
    return Error{path, "the header is not a JSON object", remedy};
  return HeaderReader(path, 8 + length, fileBytes - 8 - length).read(header->root());
}

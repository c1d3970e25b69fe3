//===- ObjectReader.h - Members of a JSON object, checked -----------------===//
//
// Reads typed members and remembers the first mistake with its place, so that a reader is a list of assignments and
// one check at the end.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_WEIGHTS_OBJECTREADER_H
#define K2C_LIB_WEIGHTS_OBJECTREADER_H

#include "base/Json.h"
#include <optional>
#include <vector>

namespace k2c::weights {

/// An index or map of a 1T-parameter model is some 15 MB; its nesting is fixed.
inline constexpr JsonLimits mapLimits{size_t(512) << 20, 8};

class ObjectReader {
public:
  /// `pointer` names `object` in the document.
  ObjectReader(const JsonDocument &document, const nlohmann::json &object, std::string pointer)
      : document(document), object(object), pointer(std::move(pointer)) {
    if (!object.is_object())
      fail("", "must be an object");
  }

  int64_t integer(const char *key) {
    const nlohmann::json *value = find(key);
    if (!value || !value->is_number_integer() ||
        (value->is_number_unsigned() && value->get<uint64_t>() > uint64_t(INT64_MAX))) {
      fail(key, "must be an integer");
      return 0;
    }
    return value->get<int64_t>();
  }
  std::optional<int64_t> integerOrNull(const char *key) {
    const nlohmann::json *value = find(key);
    if (!value || value->is_null())
      return std::nullopt;
    return integer(key);
  }
  bool boolean(const char *key) {
    const nlohmann::json *value = find(key);
    if (!value || !value->is_boolean()) {
      fail(key, "must be true or false");
      return false;
    }
    return value->get<bool>();
  }
  std::string string(const char *key) {
    const nlohmann::json *value = find(key);
    if (!value || !value->is_string()) {
      fail(key, "must be a string");
      return "";
    }
    return value->get<std::string>();
  }
  /// The elements of an array; empty after a mistake.
  const nlohmann::json &array(const char *key) {
    static const nlohmann::json empty = nlohmann::json::array();
    const nlohmann::json *value = find(key);
    if (value && value->is_array())
      return *value;
    fail(key, "must be a list");
    return empty;
  }
  std::vector<std::string> strings(const char *key) {
    std::vector<std::string> texts;
    for (const nlohmann::json &value : array(key))
      if (value.is_string())
        texts.push_back(value.get<std::string>());
      else
        fail(key, "must be a list of strings");
    return texts;
  }
  bool has(const char *key) const { return find(key) != nullptr; }
  ObjectReader child(const char *key) {
    static const nlohmann::json nothing;
    const nlohmann::json *value = find(key);
    return ObjectReader(document, value ? *value : nothing, pointer + "/" + key);
  }
  ObjectReader child(const char *key, size_t index) {
    return ObjectReader(document, array(key)[index], pointer + "/" + key + "/" + std::to_string(index));
  }

  void fail(const std::string &key, const std::string &message) {
    if (mistake)
      return;
    std::string place = document.place(key.empty() ? pointer : pointer + "/" + key);
    mistake = Error{place, (key.empty() ? "" : "'" + key + "' ") + message, "the bundle is damaged: compile again"};
  }
  explicit operator bool() const { return !mistake; }
  Error takeError() { return std::move(*mistake); }

private:
  const nlohmann::json *find(const char *key) const {
    auto member = object.is_object() ? object.find(key) : object.end();
    return object.is_object() && member != object.end() ? &*member : nullptr;
  }

  const JsonDocument &document;
  const nlohmann::json &object;
  std::string pointer;
  std::optional<Error> mistake;
};

/// The list `key` of a bundle's file {"format":1, KEY:[{..}, ..]}: what `readEntry` makes of each object and its index.
template <class Entry>
Expected<std::vector<Entry>> readEntries(const std::string &path, const char *key,
                                         Expected<Entry> (*readEntry)(ObjectReader in, int64_t index)) {
  Expected<JsonDocument> document = readJsonFile(path, mapLimits);
  if (!document)
    return document.takeError();
  ObjectReader root(*document, document->root(), "");
  if (int64_t format = root.integer("format"); format != 1)
    root.fail("format", "is " + std::to_string(format) + "; this k2c reads format 1");
  const size_t count = root.array(key).size();
  if (!root)
    return root.takeError();
  std::vector<Entry> entries;
  for (size_t i = 0; i < count; ++i) {
    Expected<Entry> entry = readEntry(root.child(key, i), int64_t(i));
    if (!entry)
      return entry.takeError();
    entries.push_back(std::move(*entry));
  }
  return entries;
}

} // namespace k2c::weights

#endif // K2C_LIB_WEIGHTS_OBJECTREADER_H

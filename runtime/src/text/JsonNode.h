//===- JsonNode.h - a JSON value that knows its place ---------------------===//
//
// Reads hostile JSON without a check at every line: an accessor that does not
// find what it is asked for throws a ParseError that names the file, the path and
// what was wrong. The reader that began catches it; it never leaves the reader.
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_TEXT_JSONNODE_H
#define K2RT_TEXT_JSONNODE_H

#include "base/Error.h"
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace k2c::runtime {

/// Thrown by JsonNode, caught by the reader that uses it.
struct ParseError {
  Error error;
};

class JsonNode {
public:
  using Json = nlohmann::json;

  /// The root of `file`. Both must outlive the node.
  JsonNode(const Json &value, const std::string &file) : value(&value), file(&file) {}

  /// The value at `path` of `file`.
  JsonNode(const Json &value, const std::string &file, std::string path)
      : value(&value), file(&file), path(std::move(path)) {}

  /// Member `key`; refuses when it is missing.
  JsonNode operator[](const std::string &key) const;
  /// Member `key`, nothing when it is missing or null.
  std::optional<JsonNode> find(const std::string &key) const;
  /// Element `index` of an array, below size().
  JsonNode at(size_t index) const;
  /// Number of elements; refuses what is not an array.
  size_t size() const;
  const Json::object_t &object() const;
  /// A member of object() as a node.
  JsonNode member(const Json::object_t::value_type &entry) const;

  const std::string &text() const;
  int64_t integer(int64_t low, int64_t high) const;
  /// Member `key` as a truth value, `absent` when it is missing or null.
  bool flag(const std::string &key, bool absent) const;
  bool isArray() const { return value->is_array(); }
  bool isString() const { return value->is_string(); }

  /// Refuses an object with a key that is not listed: it would be ignored.
  void onlyKeys(std::initializer_list<const char *> keys) const;

  std::string place() const;
  /// The file says something wrong here.
  [[noreturn]] void refuse(const std::string &message) const;
  /// The file is right, but k2c cannot do it yet.
  [[noreturn]] void unsupported(const std::string &what) const;

private:
  [[noreturn]] void wrongType(const char *wanted) const;

  const Json *value;
  const std::string *file;
  std::string path;
};

/// What the parser reports, as an error of `file`.
Error parseError(const nlohmann::json::exception &exception, const std::string &file);

} // namespace k2c::runtime

#endif // K2RT_TEXT_JSONNODE_H

//===- Json.h - JSON text with bounds and places --------------------------===//
//
// JSON that comes from a checkpoint is hostile: size and depth are bounded and
// a key that occurs twice in one object is an error, because readers disagree
// about which one counts. A document keeps its text, so that any value, named
// by its JSON pointer, can be reported as file:line:column.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_BASE_JSON_H
#define K2C_BASE_JSON_H

#include "base/Error.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace k2c {

struct JsonLimits {
  size_t maxBytes = size_t(16) << 20;
  /// Nesting of objects and arrays; 1 is a flat object.
  int maxDepth = 32;
};

/// Lines and columns count from 1; a column counts bytes.
struct LineColumn {
  int line = 1;
  int column = 1;
};

/// Thrown by a reader of JSON at its first mistake, caught by the function that began it (JsonFields.h).
struct ParseError {
  Error error;
};

/// Parses `text`, which `file` names in errors: malformed (the place is file:line:column), a NUL byte, nested deeper
/// than `maxDepth`, a key twice in one object. `take` sees what the parser reads, as nlohmann-json's callback: what it
/// returns false for is not kept, a key not compared with others. What it throws as ParseError is the error.
Expected<nlohmann::json> parseJsonValue(std::string_view text, const std::string &file,
                                        int maxDepth = JsonLimits().maxDepth,
                                        const nlohmann::json::parser_callback_t &take = nullptr);

/// A parsed JSON text and where it came from.
class JsonDocument {
public:
  JsonDocument(std::string file, std::string text, nlohmann::json root)
      : file_(std::move(file)), text_(std::move(text)), root_(std::move(root)) {}

  const std::string &file() const { return file_; }
  const nlohmann::json &root() const { return root_; }

  /// Place of the value named by a JSON pointer ("" is the root, "/a/0/b"); for
  /// an object member, the place of its key. A pointer into nothing yields the
  /// place of its nearest existing parent.
  LineColumn locate(std::string_view pointer) const;

  /// "file:line:column" of the value named by a JSON pointer.
  std::string place(std::string_view pointer) const;

private:
  std::string file_;
  std::string text_;
  nlohmann::json root_;
};

/// The same with the text, for readers whose errors name the line. Error: larger than the limit, too.
Expected<JsonDocument> parseJson(std::string text, std::string file, const JsonLimits &limits = {});

/// Reads and parses a regular file (symbolic links are followed).
Expected<JsonDocument> readJsonFile(const std::string &path, const JsonLimits &limits = {});

/// Reads a regular file of at most `maxBytes` (symbolic links are followed; a
/// fifo or a device is refused).
Expected<std::string> readTextFile(const std::string &path, size_t maxBytes);

/// One member of a JSON pointer: '~' and '/' escaped as ~0 and ~1.
std::string escapeJsonPointer(std::string_view key);

} // namespace k2c

#endif // K2C_BASE_JSON_H

// Hostile-safe reading of a JSON object: every field is asked for by name, type and range; the first error sticks.
//
//   JsonFields limits = manifest.object("limits");
//   int64_t tokens = limits.integer("step_tokens", 1, 1 << 20);   // 0 after an error
//   if (!manifest.status()) ...                                    // "manifest.json: limits.step_tokens: is missing"
#ifndef K2C_BASE_JSONFIELDS_H
#define K2C_BASE_JSONFIELDS_H

#include "base/Error.h"
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace k2c {

/// Parses `text`, refusing bad syntax and nesting deeper than 32. `place` names the file in errors of `code`.
Expected<nlohmann::json> parseJsonFields(std::string_view text, const std::string &place,
                                         k2rt_code code = K2RT_INVALID_BUNDLE);

/// A view of one object of a document that outlives it.
class JsonFields {
public:
  /// The root. `error` receives the first error of this view and of all views made from it.
  JsonFields(const nlohmann::json &document, std::string place, Error &error);

  /// No error so far.
  bool ok() const { return error->message.empty(); }

  bool has(const char *key) const;
  /// A required integer in [least, most].
  int64_t integer(const char *key, int64_t least, int64_t most);
  /// The same, `absent` when there is no such key.
  int64_t integer(const char *key, int64_t least, int64_t most, int64_t absent);
  /// A required string of at most 4096 bytes.
  std::string string(const char *key);
  std::string string(const char *key, const char *absent);
  /// A required list of at most `maxElements` integers in [least, most].
  std::vector<int64_t> integers(const char *key, int64_t least, int64_t most, size_t maxElements);
  std::vector<std::string> strings(const char *key, size_t maxElements);
  /// A required object; an empty one after an error.
  JsonFields object(const char *key);
  /// A required list of at most `maxElements` objects.
  std::vector<JsonFields> objects(const char *key, size_t maxElements);
  /// The same of objects and nulls, which are none.
  std::vector<std::optional<JsonFields>> objectsOrNulls(const char *key, size_t maxElements);
  /// The value of `key` as JSON text, "{}" when absent.
  std::string raw(const char *key) const;

  /// Records an error at `key` unless there is one already.
  void fail(const std::string &key, const std::string &message, const std::string &remedy = "");

private:
  const nlohmann::json *find(const char *key);
  int64_t checked(const nlohmann::json &value, const std::string &key, int64_t least, int64_t most);
  const nlohmann::json *list(const char *key, size_t maxElements);

  const nlohmann::json *node;
  std::string place; ///< "manifest.json: limits."
  Error *error;
};

} // namespace k2c

#endif

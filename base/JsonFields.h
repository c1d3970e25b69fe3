// Hostile-safe reading of a bundle's file: every field is asked for by name, type and range; the first mistake is the
// error.
//
//   return readJsonFields(text, "manifest.json", [](const JsonFields &root) {
//     return root.object("limits").integer("step_tokens", 1, 1 << 20);
//   });                                         // "manifest.json: limits.step_tokens: is missing; compile ..."
#ifndef K2C_BASE_JSONFIELDS_H
#define K2C_BASE_JSONFIELDS_H

#include "base/Json.h"
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace k2c {

/// What to do about a bundle that says something wrong.
inline constexpr char compileAgain[] = "compile the bundle again with this version of k2c";

/// A view of one object of a value that outlives it. What it is asked and cannot answer, it throws as ParseError.
class JsonFields {
public:
  /// Of a string, unless its reader allows more.
  static constexpr size_t maxStringBytes = 4096;

  /// The object at `path` of `file`. `remedy` ends its errors.
  JsonFields(const nlohmann::json &value, std::string_view file, const char *remedy = compileAgain,
             std::string path = "");

  /// There is such a key, and its value is not null.
  bool has(const char *key) const;
  /// A required integer in [least, most].
  int64_t integer(const char *key, int64_t least = INT64_MIN, int64_t most = INT64_MAX) const;
  /// The same, `absent` when there is no such key.
  int64_t integer(const char *key, int64_t least, int64_t most, int64_t absent) const;
  /// A value that is true or false; `absent` when there is no such key.
  bool flag(const char *key, bool absent) const;
  /// A required string of at most `maxBytes`.
  const std::string &string(const char *key, size_t maxBytes = maxStringBytes) const;
  std::string string(const char *key, const char *absent) const;
  /// A required list of at most `maxElements` integers in [least, most].
  std::vector<int64_t> integers(const char *key, int64_t least, int64_t most, size_t maxElements) const;
  std::vector<std::string> strings(const char *key, size_t maxElements) const;
  /// A required list of at most `maxLists` lists of at most `maxElements` integers in [least, most], or nulls, which
  /// are `none`.
  std::vector<std::vector<int64_t>> integerLists(const char *key, int64_t least, int64_t most, int64_t none,
                                                 size_t maxLists, size_t maxElements) const;
  /// A required object.
  JsonFields object(const std::string &key) const;
  /// A required list of at most `maxElements` objects.
  std::vector<JsonFields> objects(const char *key, size_t maxElements) const;
  /// The same of objects and nulls, which are none.
  std::vector<std::optional<JsonFields>> objectsOrNulls(const char *key, size_t maxElements) const;
  /// All members, which are objects.
  std::vector<std::pair<std::string, JsonFields>> members() const;
  /// The value of `key` as JSON text, "{}" when absent.
  std::string raw(const char *key) const;

  /// `value`, which stands at `key`, as what it must be: for values that are not in the object.
  int64_t integerOf(const nlohmann::json &value, const std::string &key, int64_t least, int64_t most) const;
  const std::string &stringOf(const nlohmann::json &value, const std::string &key, size_t maxBytes) const;

  /// Refuses a key that is not listed: it would be ignored.
  void onlyKeys(std::initializer_list<const char *> keys) const;
  /// "manifest.json: limits.step_tokens"; without a key the object itself.
  std::string place(const std::string &key = "") const;
  /// Refuses the value of `key`, or the object itself. The second adds what to do instead of the view's remedy.
  [[noreturn]] void fail(const std::string &key, const std::string &message) const { fail(key, message, remedy); }
  [[noreturn]] void fail(const std::string &key, const std::string &message, const std::string &remedy) const;

private:
  const nlohmann::json &at(const std::string &key) const;
  const nlohmann::json &list(const char *key, size_t maxElements) const;
  std::string pathOf(const std::string &key) const;
  [[noreturn]] void wrongType(const nlohmann::json &value, const std::string &key, const std::string &wanted) const;

  const nlohmann::json *value;
  std::string_view file;
  const char *remedy;
  std::string path; ///< "limits"
};

/// The value of a function that can fail, in a reader: its error as a ParseError.
template <class T> T orThrow(Expected<T> result) {
  if (!result)
    throw ParseError{result.takeError()};
  return std::move(*result);
}
inline void orThrow(Status status) {
  if (!status)
    throw ParseError{status.takeError()};
}

/// What `read` makes of the root of `text`, an object, or the first error. The rest as for parseJsonValue and
/// JsonFields.
template <class Read>
Expected<std::invoke_result_t<Read, const JsonFields &>>
readJsonFields(std::string_view text, const std::string &file, const Read &read, const char *remedy = compileAgain,
               const nlohmann::json::parser_callback_t &take = nullptr) {
  Expected<nlohmann::json> value = parseJsonValue(text, file, JsonLimits().maxDepth, take);
  try {
    return read(JsonFields(orThrow(std::move(value)), file, remedy));
  } catch (ParseError &failure) {
    if (failure.error.code == K2RT_INVALID_ARGUMENT)
      failure.error.code = K2RT_INVALID_BUNDLE;
    return std::move(failure.error);
  }
}

} // namespace k2c

#endif

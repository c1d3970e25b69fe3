//===- JsonText.h - JSON as text: files that are written, messages ------------===//
#ifndef K2C_BASE_JSONTEXT_H
#define K2C_BASE_JSONTEXT_H

#include "base/Utf8.h"
#include <nlohmann/json.hpp>

namespace k2c {

/// The text of a json or ordered_json that k2c writes, valid whatever its strings hold: what is not UTF-8 in them
/// becomes U+FFFD. `indent`: blanks for each level, or -1: one line.
template <class Json> std::string jsonText(const Json &value, int indent = -1) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

/// What a message quotes of a value: its text, shortened (Utf8.h).
std::string shortenedJson(const nlohmann::json &value, size_t most = maxQuoted / 2);

/// What nlohmann-json says was wrong, without the name of its exception, shortened.
std::string parserText(const nlohmann::json::exception &exception);

} // namespace k2c

#endif // K2C_BASE_JSONTEXT_H

// JSON as text: what a message quotes of it.
#include "base/JsonText.h"

using nlohmann::json;

namespace k2c {

std::string shortenedJson(const json &value, size_t most) { return shortened(jsonText(value), most); }

std::string parserText(const json::exception &exception) {
  // "[json.exception.out_of_range.406] number overflow parsing '1e999'"
  const std::string_view text = exception.what();
  const size_t at = text.find("] ");
  return shortened(at == text.npos ? text : text.substr(at + 2), maxQuoted);
}

} // namespace k2c

// to_chars, unlike printf, knows no locale and is several times faster: a row of logits has 160,000 numbers.
#include "run/JsonWriter.h"
#include "base/Utf8.h"
#include <charconv>
#include <cmath>

namespace k2c::runtime {

void JsonWriter::separate() {
  if (comma && !afterKey)
    std::fputc(',', file);
  comma = true;
  afterKey = false;
}

JsonWriter &JsonWriter::open(char bracket) {
  separate();
  std::fputc(bracket, file);
  comma = false;
  return *this;
}

JsonWriter &JsonWriter::close(char bracket) {
  std::fputc(bracket, file);
  comma = true;
  return *this;
}

JsonWriter &JsonWriter::key(std::string_view name) {
  value(name);
  std::fputc(':', file);
  afterKey = true;
  return *this;
}

/// What is not UTF-8 becomes U+FFFD, so that the document is valid whatever the text holds.
JsonWriter &JsonWriter::value(std::string_view text) {
  std::string clean;
  appendWellFormed(text, false, clean);
  separate();
  std::fputc('"', file);
  for (const char c : clean) {
    if (c == '"' || c == '\\')
      std::fprintf(file, "\\%c", c);
    else if (c == '\n')
      std::fputs("\\n", file);
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      std::fprintf(file, "\\u%04x", static_cast<unsigned>(c));
    else
      std::fputc(c, file);
  }
  std::fputc('"', file);
  return *this;
}

JsonWriter &JsonWriter::value(int64_t number) {
  separate();
  std::fprintf(file, "%lld", static_cast<long long>(number));
  return *this;
}

void JsonWriter::digits(double number, int precision) {
  separate();
  if (!std::isfinite(number)) {
    std::fputs("null", file);
    return;
  }
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, number, std::chars_format::general, precision).ptr;
  std::fwrite(text, 1, static_cast<size_t>(end - text), file);
}

JsonWriter &JsonWriter::value(float number) {
  digits(static_cast<double>(number), 9);
  return *this;
}

JsonWriter &JsonWriter::value(double number) {
  digits(number, 17);
  return *this;
}

JsonWriter &JsonWriter::raw(std::string_view json) {
  separate();
  std::fwrite(json.data(), 1, json.size(), file);
  return *this;
}

} // namespace k2c::runtime

//===- Error.cpp - errors as values ---------------------------------------===//

#include "k2c/Support/Error.h"
#include "k2c/Support/Printable.h"

#include <cstddef>
#include <cstdint>

using namespace k2c;

namespace {

/// A path of the longest kind, and the longest list of known names: no message of ours is cut.
constexpr size_t mostInLine = 8192;

/// Bytes of the well-formed UTF-8 character that begins at text[at] (Unicode 15, table 3-7); 0: none does.
size_t characterLength(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return at + i < text.size() ? uint8_t(text[at + i]) : uint8_t(0); };
  const uint8_t lead = byte(0), second = byte(1);
  if (lead < 0x80)
    return 1;
  if (lead < 0xC2 || lead > 0xF4)
    return 0;
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (second < low || second > high)
    return 0;
  for (size_t i = 2; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80)
      return 0;
  return length;
}

/// C0, DEL and C1, which a terminal obeys.
bool isControl(std::string_view character) {
  const uint8_t lead = uint8_t(character[0]);
  return lead < 0x20 || lead == 0x7F || (lead == 0xC2 && uint8_t(character[1]) < 0xA0);
}

/// What shows the character, or the byte that is none, at the beginning of `text`, which loses it.
std::string takePrintable(std::string_view &text) {
  static constexpr char digits[] = "0123456789abcdef";
  const size_t length = characterLength(text, 0);
  const std::string_view part = text.substr(0, length ? length : 1);
  text.remove_prefix(part.size());
  if (length && !isControl(part))
    return std::string(part);
  std::string shown;
  for (const char byte : part)
    shown += {'\\', 'x', digits[uint8_t(byte) >> 4], digits[uint8_t(byte) & 15]};
  return shown;
}

} // namespace

// The runtime has the same two rules (base/Utf8.h).
std::string k2c::printable(std::string_view text) {
  std::string shown;
  while (!text.empty())
    shown += takePrintable(text);
  return shown;
}

std::string k2c::shortened(std::string_view text, size_t most) {
  static constexpr std::string_view dots = "...";
  std::string shown;
  size_t cut = 0; // where the dots would begin
  while (!text.empty()) {
    shown += takePrintable(text);
    if (shown.size() > most)
      return shown.substr(0, cut).append(dots);
    if (shown.size() + dots.size() <= most)
      cut = shown.size();
  }
  return shown;
}

std::string Error::text() const {
  std::string line = where.empty() ? message : where + ": " + message;
  return shortened(remedy.empty() ? line : line + "; " + remedy, mostInLine);
}

// The table of well-formed byte sequences (Unicode 15, table 3-7) as ranges of
// the second byte.
#include "base/Utf8.h"

namespace k2c {

namespace {

struct Lead {
  size_t length; ///< of the whole character; 0: no character begins so
  uint8_t low, high;
};

Lead leadOf(uint8_t byte) {
  if (byte < 0x80)
    return {1, 0, 0};
  if (byte < 0xC2 || byte > 0xF4)
    return {0, 0, 0};
  if (byte < 0xE0)
    return {2, 0x80, 0xBF};
  if (byte < 0xF0)
    return {3, uint8_t(byte == 0xE0 ? 0xA0 : 0x80), uint8_t(byte == 0xED ? 0x9F : 0xBF)};
  return {4, uint8_t(byte == 0xF0 ? 0x90 : 0x80), uint8_t(byte == 0xF4 ? 0x8F : 0xBF)};
}

} // namespace

Utf8Step utf8Step(std::string_view text, size_t at) {
  const Lead lead = leadOf(uint8_t(text[at]));
  if (lead.length <= 1)
    return {lead.length ? Utf8Step::character : Utf8Step::illFormed, 1};
  for (size_t i = 1; i < lead.length; ++i) {
    if (at + i == text.size())
      return {Utf8Step::incomplete, i};
    const uint8_t byte = uint8_t(text[at + i]);
    const uint8_t low = i == 1 ? lead.low : 0x80;
    const uint8_t high = i == 1 ? lead.high : 0xBF;
    if (byte < low || byte > high)
      return {Utf8Step::illFormed, i};
  }
  return {Utf8Step::character, lead.length};
}

uint32_t utf8CodePoint(std::string_view character) {
  const uint8_t first = uint8_t(character[0]);
  if (character.size() == 1)
    return first;
  uint32_t codePoint = first & (0x7Fu >> character.size());
  for (size_t i = 1; i < character.size(); ++i)
    codePoint = codePoint << 6 | (uint8_t(character[i]) & 0x3Fu);
  return codePoint;
}

std::string utf8Encode(uint32_t codePoint) {
  if (codePoint < 0x80)
    return std::string(1, char(codePoint));
  return {char(0xC0 | codePoint >> 6), char(0x80 | (codePoint & 0x3F))};
}

size_t appendWellFormed(std::string_view bytes, bool keep, std::string &text) {
  size_t at = 0, copied = 0;
  while (at < bytes.size()) {
    const Utf8Step step = utf8Step(bytes, at);
    if (step.kind != Utf8Step::character) {
      text.append(bytes, copied, at - copied);
      if (keep && step.kind == Utf8Step::incomplete)
        return at;
      text += "\xEF\xBF\xBD";
      copied = at + step.length;
    }
    at += step.length;
  }
  text.append(bytes, copied, at - copied);
  return at;
}

/// What shows the character, or the bytes that are none, at the beginning of `text`, which loses them.
static std::string takePrintable(std::string_view &text) {
  static constexpr char digits[] = "0123456789abcdef";
  const Utf8Step step = utf8Step(text, 0);
  const std::string_view part = text.substr(0, step.length);
  text.remove_prefix(part.size());
  const uint8_t lead = uint8_t(part[0]);
  const bool control = lead < 0x20 || lead == 0x7F || (lead == 0xC2 && part.size() == 2 && uint8_t(part[1]) < 0xA0);
  if (step.kind == Utf8Step::character && !control)
    return std::string(part);
  std::string shown;
  for (const char byte : part)
    shown += {'\\', 'x', digits[uint8_t(byte) >> 4], digits[uint8_t(byte) & 15]};
  return shown;
}

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty())
    shown += takePrintable(text);
  return shown;
}

std::string shortened(std::string_view text, size_t most) {
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

} // namespace k2c

// The alphabet as two tables, built once.
#include "text/ByteLevel.h"
#include "base/Utf8.h"
#include <array>

namespace k2c::runtime {

namespace {

struct Alphabet {
  std::array<uint16_t, 256> codePoint;
  std::array<int16_t, 0x180> byte; ///< -1: spells none

  Alphabet() {
    byte.fill(-1);
    uint16_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b != 0xAD);
      codePoint[b] = printable ? uint16_t(b) : next++;
      byte[codePoint[b]] = int16_t(b);
    }
  }
};

const Alphabet &alphabet() {
  static const Alphabet table;
  return table;
}

} // namespace

std::string byteSpelling(uint8_t byte) { return utf8Encode(alphabet().codePoint[byte]); }

std::optional<std::string> spelledBytes(std::string_view spelling) {
  std::string bytes;
  for (size_t at = 0; at < spelling.size();) {
    const Utf8Step step = utf8Step(spelling, at);
    if (step.kind != Utf8Step::character)
      return std::nullopt;
    const uint32_t codePoint = utf8CodePoint(spelling.substr(at, step.length));
    if (codePoint >= alphabet().byte.size() || alphabet().byte[codePoint] < 0)
      return std::nullopt;
    bytes += char(alphabet().byte[codePoint]);
    at += step.length;
  }
  return bytes;
}

} // namespace k2c::runtime

//===- ByteLevel.h - the alphabet of byte-level vocabularies --------------===//
//
// A byte-level vocabulary spells each byte as one printable character: bytes
// that are printable in Latin-1 as themselves, the other 68 as U+0100 upwards
// in order (GPT-2's bytes_to_unicode). A space is U+0120.
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_TEXT_BYTELEVEL_H
#define K2RT_TEXT_BYTELEVEL_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace k2c::runtime {

/// The character that spells `byte`, in UTF-8.
std::string byteSpelling(uint8_t byte);

/// The bytes that a token's spelling stands for; nothing when a character of it
/// spells no byte.
std::optional<std::string> spelledBytes(std::string_view spelling);

} // namespace k2c::runtime

#endif // K2RT_TEXT_BYTELEVEL_H

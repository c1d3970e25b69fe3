//===- Utf8.h - well-formed text out of any bytes -------------------------===//
//
// One rule for ill-formed input everywhere: each maximal part that cannot
// continue a well-formed character becomes one U+FFFD (Unicode 15, section
// 3.9, "U+FFFD Substitution of Maximal Subparts"). Python's
// bytes.decode("utf-8", "replace") and Rust's from_utf8_lossy do the same.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_BASE_UTF8_H
#define K2C_BASE_UTF8_H

#include <cstdint>
#include <string>
#include <string_view>

namespace k2c {

/// What stands at a place of a byte string.
struct Utf8Step {
  enum Kind {
    character, ///< `length` bytes are one well-formed character
    illFormed, ///< `length` bytes are a maximal ill-formed part
    incomplete ///< the text ends inside what may become a character
  };
  Kind kind;
  size_t length; ///< at least 1
};

/// Looks at text[at, ...); `at` must be inside.
Utf8Step utf8Step(std::string_view text, size_t at);

/// The code point of a well-formed character.
uint32_t utf8CodePoint(std::string_view character);

/// The character of a code point below 0x800.
std::string utf8Encode(uint32_t codePoint);

/// Appends `bytes` to `text` with every ill-formed part replaced. With `keep`,
/// an incomplete end is not replaced but left out; returns how many bytes of
/// `bytes` were consumed.
size_t appendWellFormed(std::string_view bytes, bool keep, std::string &text);

/// `text` on one line of well-formed UTF-8, for messages that quote files from outside: the bytes of ill-formed parts
/// and of control characters (C0, DEL, C1) become \xNN.
std::string printable(std::string_view text);

/// The most bytes of a file's or an argument's content that stand in a message.
inline constexpr size_t maxQuoted = 200;

/// The most of a key in a path, which may have several.
inline constexpr size_t maxOfKey = 43;

/// What a message quotes of content: printable, and cut between two characters, with "..." behind it, where it has more
/// than `most` bytes. A message quotes two things as a rule; one that quotes more gives each its part of maxQuoted.
std::string shortened(std::string_view text, size_t most = maxQuoted / 2);

} // namespace k2c

#endif // K2C_BASE_UTF8_H

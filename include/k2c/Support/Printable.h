//===- Printable.h - Text from outside, ready for JSON and a screen -----------===//
#ifndef K2C_SUPPORT_PRINTABLE_H
#define K2C_SUPPORT_PRINTABLE_H

#include <cstddef>
#include <string>
#include <string_view>

namespace k2c {

/// `text` with bytes that are not UTF-8 or control a terminal as \xNN. For what is named by a user's folder or quoted
/// from a file.
std::string printable(std::string_view text);

/// The most bytes of a file's or an argument's content that stand in a message.
inline constexpr size_t mostQuoted = 200;

/// What a message quotes of content: printable, and cut between two characters, with "..." behind it, where it has more
/// than `most` bytes. A message quotes two things as a rule; one that quotes more gives each its part of mostQuoted.
std::string shortened(std::string_view text, size_t most = mostQuoted / 2);

} // namespace k2c

#endif // K2C_SUPPORT_PRINTABLE_H

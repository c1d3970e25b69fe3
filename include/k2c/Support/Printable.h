//===- Printable.h - Text from outside, ready for JSON and a screen -----------===//
#ifndef K2C_SUPPORT_PRINTABLE_H
#define K2C_SUPPORT_PRINTABLE_H

#include <string>
#include <string_view>

namespace k2c {

/// `text` with bytes that are not UTF-8 or control a terminal as \xNN. For what is named by a user's folder or quoted
/// from a file.
std::string printable(std::string_view text);

} // namespace k2c

#endif // K2C_SUPPORT_PRINTABLE_H

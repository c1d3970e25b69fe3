//===- PrintableTest.cpp - What a message shows of hostile text -----------===//
#include "base/Utf8.h"
#include <gtest/gtest.h>

using namespace k2c;

namespace {

// Unicode 15, table 3-7: both ends of each row, and what lies beside it.
TEST(Printable, WellFormedCharactersStay) {
  for (const char *character : {"a", "\xC2\xA0", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                                "\xEF\xBF\xBD", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"})
    EXPECT_EQ(printable(character), character);
}

TEST(Printable, OtherBytesAreShownAsHex) {
  for (const auto &[bytes, shown] : std::vector<std::pair<std::string, std::string>>{
           {"\x80", "\\x80"},                            // no character begins so
           {"\xC1\xBF", "\\xc1\\xbf"},                   // too long a form
           {"\xE0\x9F\xBF", "\\xe0\\x9f\\xbf"},          // the same of three bytes
           {"\xED\xA0\x80", "\\xed\\xa0\\x80"},          // a surrogate
           {"\xF0\x8F\xBF\xBF", "\\xf0\\x8f\\xbf\\xbf"}, // too long of four
           {"\xF4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, // beyond U+10FFFF
           {"\xF5\x80\x80\x80", "\\xf5\\x80\\x80\\x80"},
           {"\xE2\x82", "\\xe2\\x82"},      // cut
           {"\xE2\x28\xA1", "\\xe2(\\xa1"}, // its second byte begins another
           {"\x1B[K", "\\x1b[K"},           // what a terminal obeys
           {"\xC2\x9B", "\\xc2\\x9b"}})
    EXPECT_EQ(printable(bytes), shown);
}

} // namespace

//===- Lexer.cpp - The tokens of a PTX text -------------------------------===//
//
// A dot belongs to the word behind it (.b32, .shared::cta), so that an opcode and its modifiers are a name and dotted
// words that touch it. Numbers are bits: integers in four bases, 0f and 0d with the digits of a float, and decimals.
//
//===----------------------------------------------------------------------===//
#include "Lexer.h"
#include "base/Utf8.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace k2c::ptx {

namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isWord(char c) { return isDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$'; }
bool isNameStart(char c) { return c == '%' || (isWord(c) && !isDigit(c)); }

class Lexer {
public:
  Lexer(std::string_view text, const std::string &name) : text(text), name(name) {}

  Expected<std::vector<Token>> run() {
    while (skip(), !failure && pos < text.size())
      next();
    if (failure)
      return *failure;
    add(Token::Kind::End, 0);
    return std::move(tokens);
  }

private:
  char at(size_t ahead) const { return pos + ahead < text.size() ? text[pos + ahead] : '\0'; }

  void fail(std::string what) {
    failure = Error{name + ":" + std::to_string(line), std::move(what), "give the text of a PTX module"};
  }

  /// White space and comments.
  void skip() {
    isAdjacent = true;
    while (pos < text.size()) {
      if (std::strchr(" \t\r\n\v\f", text[pos]) && text[pos] != '\0') {
        line += text[pos++] == '\n';
      } else if (at(0) == '/' && at(1) == '/') {
        pos = std::min(text.find('\n', pos), text.size());
      } else if (at(0) == '/' && at(1) == '*') {
        const size_t end = text.find("*/", pos + 2);
        if (end == std::string_view::npos)
          return fail("a comment does not end");
        for (; pos < end + 2; ++pos)
          line += text[pos] == '\n';
      } else {
        return;
      }
      isAdjacent = false;
    }
  }

  /// A token of the next `length` bytes, of which the first `hidden` are no part of its text.
  void add(Token::Kind kind, size_t length, uint64_t bits = 0, size_t hidden = 0) {
    tokens.push_back({kind, isAdjacent, line, bits, text.substr(pos + hidden, length - hidden)});
    pos += length;
  }

  size_t wordEnd(size_t from) const {
    while (from < text.size() && isWord(text[from]))
      ++from;
    return from;
  }

  void next() {
    const char c = at(0);
    if (isNameStart(c)) {
      add(Token::Kind::Name, wordEnd(pos + 1) - pos);
    } else if (c == '.' && isWord(at(1))) {
      size_t end = wordEnd(pos + 1);
      while (text.substr(end, 2) == "::")
        end = wordEnd(end + 2);
      add(Token::Kind::Dotted, end - pos, 0, 1);
    } else if (isDigit(c)) {
      number();
    } else if (c == '"') {
      const size_t end = text.find_first_of("\"\n", pos + 1);
      if (end == std::string_view::npos || text[end] == '\n')
        return fail("a string does not end");
      add(Token::Kind::String, end + 1 - pos, 0, 1);
      tokens.back().text.remove_suffix(1);
    } else if (c != '\0' && std::strchr("{}[]()<>,;:+-=|!@~*", c)) {
      add(Token::Kind::Mark, 1);
    } else {
      fail("'" + shortened(text.substr(pos, 1)) + "' is no part of PTX");
    }
  }

  void number() {
    const char second = at(1);
    if (at(0) == '0' && (second == 'f' || second == 'F'))
      return hexadecimal(Token::Kind::Float32, 2, 8);
    if (at(0) == '0' && (second == 'd' || second == 'D'))
      return hexadecimal(Token::Kind::Float64, 2, 16);
    size_t end = wordEnd(pos);
    if (end < text.size() && text[end] == '.' && isDigit(at(end + 1 - pos)))
      return decimal();
    const bool isHexadecimal = second == 'x' || second == 'X', isBinary = second == 'b' || second == 'B';
    const int base = at(0) != '0' ? 10 : isHexadecimal ? 16 : isBinary ? 2 : 8;
    const size_t first = pos + (base == 16 || base == 2 ? 2 : 0);
    size_t last = end;
    if (last > first && text[last - 1] == 'U')
      --last;
    uint64_t bits = 0;
    const auto read = std::from_chars(text.data() + first, text.data() + last, bits, base);
    if (read.ec != std::errc() || read.ptr != text.data() + last)
      return fail("'" + shortened(text.substr(pos, end - pos)) + "' is no number of 64 bits");
    add(Token::Kind::Integer, end - pos, bits);
  }

  void hexadecimal(Token::Kind kind, size_t prefix, size_t digits) {
    uint64_t bits = 0;
    const size_t end = wordEnd(pos), first = pos + prefix;
    const auto read = std::from_chars(text.data() + first, text.data() + end, bits, 16);
    if (end - first != digits || read.ec != std::errc() || read.ptr != text.data() + end)
      return fail("'" + shortened(text.substr(pos, end - pos)) + "' has not the " + std::to_string(digits) +
                  " digits of its type");
    add(kind, end - pos, bits);
  }

  /// 1.5, 1.5e-3: an f32, as where PTX is written by hand.
  void decimal() {
    size_t end = wordEnd(wordEnd(pos) + 1);
    if ((text[end - 1] == 'e' || text[end - 1] == 'E') && end < text.size() && (text[end] == '-' || text[end] == '+'))
      end = wordEnd(end + 1);
    float value = 0;
    const auto read = std::from_chars(text.data() + pos, text.data() + end, value);
    if (read.ec != std::errc() || read.ptr != text.data() + end)
      return fail("'" + shortened(text.substr(pos, end - pos)) + "' is no number");
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    add(Token::Kind::Float32, end - pos, bits);
  }

  std::string_view text;
  const std::string &name;
  size_t pos = 0;
  int line = 1;
  bool isAdjacent = true;
  std::vector<Token> tokens;
  std::optional<Error> failure;
};

} // namespace

Expected<std::vector<Token>> lex(std::string_view text, const std::string &name) { return Lexer(text, name).run(); }

} // namespace k2c::ptx

//===- Cursor.cpp - A place in the tokens of a PTX text -------------------===//
#include "Cursor.h"
#include "base/Utf8.h"

namespace k2c::ptx {

std::string quoted(const Token &token) {
  if (token.kind == Token::Kind::End)
    return "the end of the text";
  return "'" + std::string(token.kind == Token::Kind::Dotted ? "." : "") + shortened(token.text) + "'";
}

const Token &Cursor::take() {
  const Token &token = peek();
  pos = std::min(pos + 1, tokens.size() - 1);
  return token;
}

bool Cursor::accept(char mark) {
  if (!peek().is(mark))
    return false;
  take();
  return true;
}

bool Cursor::acceptDotted(std::string_view word) {
  if (!peek().isDotted(word))
    return false;
  take();
  return true;
}

void Cursor::expect(char mark, const std::string &of) {
  if (!accept(mark))
    fail(of + " needs '" + std::string(1, mark) + "' where " + quoted(peek()) + " is");
}

std::string Cursor::takeName(const std::string &of) {
  if (peek().kind == Token::Kind::Name)
    return std::string(take().text);
  fail(of + " needs a name where " + quoted(peek()) + " is");
  return "";
}

uint64_t Cursor::takeInteger(const std::string &of, uint64_t least, uint64_t most) {
  if (peek().kind == Token::Kind::Integer && peek().bits >= least && peek().bits <= most)
    return take().bits;
  fail(of + " needs a number from " + std::to_string(least) + " to " + std::to_string(most) + " where " +
       quoted(peek()) + " is");
  return least;
}

std::optional<Type> Cursor::acceptType() {
  const std::optional<Type> type = peek().kind == Token::Kind::Dotted ? typeSpelled(peek().text) : std::nullopt;
  if (type)
    take();
  return type;
}

void Cursor::fail(std::string message, std::string remedy, int line) {
  if (!failure)
    failure = Error{name + ":" + std::to_string(line ? line : peek().line), std::move(message), std::move(remedy)};
  pos = tokens.size() - 1;
}

} // namespace k2c::ptx

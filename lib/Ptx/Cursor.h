//===- Cursor.h - A place in the tokens of a PTX text ---------------------===//
#ifndef K2C_LIB_PTX_CURSOR_H
#define K2C_LIB_PTX_CURSOR_H

#include "Lexer.h"
#include "k2c/Ptx/Module.h"

#include <optional>
#include <string>

namespace k2c::ptx {

/// Goes through tokens. The first failure is kept and moves it to the end, where nothing is accepted, so that who
/// parses asks for it once.
class Cursor {
public:
  Cursor(std::vector<Token> tokens, std::string name) : tokens(std::move(tokens)), name(std::move(name)) {}

  const Token &peek(size_t ahead = 0) const { return tokens[std::min(pos + ahead, tokens.size() - 1)]; }
  bool atEnd() const { return peek().kind == Token::Kind::End; }
  /// The token, behind which the cursor stands then.
  const Token &take();

  bool accept(char mark);
  bool acceptDotted(std::string_view word);
  /// Fails where there is none; `of`: what the mark belongs to.
  void expect(char mark, const std::string &of);

  std::string takeName(const std::string &of);
  uint64_t takeInteger(const std::string &of, uint64_t least, uint64_t most);
  std::optional<Type> acceptType();

  void fail(std::string message, std::string remedy = "", int line = 0);
  const std::optional<Error> &error() const { return failure; }
  const std::string &fileName() const { return name; }

private:
  std::vector<Token> tokens;
  std::string name;
  size_t pos = 0;
  std::optional<Error> failure;
};

/// The text of a token for a message.
std::string quoted(const Token &token);

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_CURSOR_H

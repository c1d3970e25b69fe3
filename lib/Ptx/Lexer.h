//===- Lexer.h - The tokens of a PTX text ---------------------------------===//
#ifndef K2C_LIB_PTX_LEXER_H
#define K2C_LIB_PTX_LEXER_H

#include "base/Error.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace k2c::ptx {

struct Token {
  enum class Kind : uint8_t {
    Name,    ///< letters, digits, _ $ %, not beginning with a digit
    Dotted,  ///< .word, with what :: joins: `text` is without the dot
    Integer, ///< `bits`
    Float32, ///< 0f.., or a decimal: `bits` of the f32
    Float64, ///< 0d..: `bits`
    String,  ///< `text` is what the quotes hold
    Mark,    ///< one character
    End,
  };

  Kind kind = Kind::End;
  bool isAdjacent = false; ///< nothing lies between it and the token before
  int line = 0;
  uint64_t bits = 0;
  std::string_view text;

  bool is(char mark) const { return kind == Kind::Mark && text[0] == mark; }
  bool isDotted(std::string_view word) const { return kind == Kind::Dotted && text == word; }
};

/// All tokens of `text`, the last of kind End; they refer to `text`. Comments and preprocessed line numbers are left
/// out.
Expected<std::vector<Token>> lex(std::string_view text, const std::string &name);

} // namespace k2c::ptx

#endif // K2C_LIB_PTX_LEXER_H

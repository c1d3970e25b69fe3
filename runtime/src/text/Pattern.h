//===- Pattern.h - what a tokenizer searches for --------------------------===//
//
// A tokenizer.json gives patterns as {"String": ...}, found as it stands, or as
// {"Regex": ...}.
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_TEXT_PATTERN_H
#define K2RT_TEXT_PATTERN_H

#include "text/Regex.h"
#include <variant>

namespace k2c::runtime {

class Pattern {
public:
  /// `literal` is not empty.
  explicit Pattern(std::string literal) : pattern(std::move(literal)) {}
  explicit Pattern(Regex regex) : pattern(std::move(regex)) {}

  /// All matches in well-formed `text`, from left to right, without overlap.
  /// Fails when a regex gives up on this text.
  Status findAll(std::string_view text, std::vector<TextRange> &matches) const;

  /// `text` with every match replaced by `content`.
  Expected<std::string> replaceAll(std::string_view text, std::string_view content) const;

private:
  std::variant<Regex, std::string> pattern;
};

} // namespace k2c::runtime

#endif // K2RT_TEXT_PATTERN_H

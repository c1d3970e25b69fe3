//===- Regex.h - regular expressions, by Oniguruma ------------------------===//
//
// Published tokenizers cut text with patterns of Oniguruma's syntax (lookahead,
// \p{L}, possessive quantifiers), so Oniguruma runs them. A program depends on
// libc, libm and the loader only; the library is opened when the first pattern
// is compiled: from <folder of the executable>/lib/libonig.so.5, where a bundle
// carries it, else from the system.
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_TEXT_REGEX_H
#define K2RT_TEXT_REGEX_H

#include "base/Error.h"
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct re_pattern_buffer;

namespace k2c::runtime {

/// Where a bundle carries the library. It is opened in executableFolder().
constexpr const char *bundledRegexLibrary = "lib/libonig.so.5";

/// The folder that the running executable lies in; empty when the system does not tell.
std::string executableFolder();

/// A half-open range of bytes.
struct TextRange {
  size_t begin, end;
};

/// A compiled pattern. Immutable: any number of threads may search with it.
class Regex {
public:
  /// Fails with K2RT_UNSUPPORTED when Oniguruma is not found, with
  /// K2RT_INVALID_BUNDLE when the pattern is not valid. `place` goes into the
  /// error.
  static Expected<Regex> compile(std::string_view pattern, const std::string &place);

  /// All matches from left to right, without overlap; `text` must be
  /// well-formed UTF-8. An empty match right after a match is not one. Fails
  /// when the pattern backtracks beyond ten million steps in one search.
  Status findAll(std::string_view text, std::vector<TextRange> &matches) const;

  /// True when the pattern matches somewhere in `text`.
  bool matches(std::string_view text) const {
    std::vector<TextRange> found;
    return bool(findAll(text, found)) && !found.empty();
  }

private:
  struct Release {
    void operator()(re_pattern_buffer *regex) const;
  };
  Regex(re_pattern_buffer *regex, std::string place) : regex(regex), place(std::move(place)) {}

  std::unique_ptr<re_pattern_buffer, Release> regex;
  std::string place;
};

} // namespace k2c::runtime

#endif // K2RT_TEXT_REGEX_H

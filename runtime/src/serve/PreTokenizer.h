//===- PreTokenizer.h - text into words -----------------------------------===//
//
// Byte pairs are merged inside words only. A pre-tokenizer is a list of cuts,
// each applied to the pieces of the one before; the last part is always
// ByteLevel: an optional leading space and, if it says so, GPT-2's own cut.
// "Digits" is a cut at \p{N}.
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_SERVE_PRETOKENIZER_H
#define K2RT_SERVE_PRETOKENIZER_H

#include "serve/Regex.h"
#include <deque>
#include <optional>
#include <variant>

namespace k2rt {

/// What a cut does with its matches.
enum class CutBehavior {
  removed,            ///< leave them out
  isolated,           ///< each is a piece
  mergedWithPrevious, ///< each ends the piece before it
  mergedWithNext,     ///< each begins the piece after it
  contiguous          ///< neighbouring matches are one piece
};

/// One cut of text into pieces.
class Cut {
public:
  Cut(std::variant<Regex, std::string> pattern, CutBehavior behavior, bool invert)
      : pattern(std::move(pattern)), behavior(behavior), invert(invert) {}

  /// Appends the pieces of `text`, empty ones left out.
  Status apply(std::string_view text, std::vector<std::string_view> &pieces) const;

private:
  struct Part {
    TextRange range;
    bool matched;
  };
  Status parts(std::string_view text, std::vector<Part> &out) const;

  std::variant<Regex, std::string> pattern; ///< a regex or a literal
  CutBehavior behavior;
  bool invert; ///< matches and what lies between them change roles
};

/// The words of a text.
struct Words {
  std::vector<std::string_view> list;
  std::deque<std::string> owned; ///< words that got a space in front
};

class PreTokenizer {
public:
  /// GPT-2's pattern, which ByteLevel uses unless told not to.
  static const char *const gpt2Pattern;

  /// Appends the words of one stretch of well-formed text without added
  /// tokens. They point into `text` or into words.owned.
  Status apply(std::string_view text, Words &words) const;

  std::vector<Cut> cuts;
  bool addPrefixSpace = false;
  std::optional<Cut> byteLevelCut;
};

} // namespace k2rt

#endif // K2RT_SERVE_PRETOKENIZER_H

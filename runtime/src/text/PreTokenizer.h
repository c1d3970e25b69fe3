//===- PreTokenizer.h - text into words -----------------------------------===//
//
// Byte pairs are merged inside words only. A pre-tokenizer is a list of cuts,
// each applied to the pieces of the one before; the last part may be ByteLevel,
// an optional leading space and, if it says so, GPT-2's own cut; or Metaspace,
// which makes spaces visible, perhaps with one more in front, and may cut
// before each. "Digits" is a cut at \p{N}.
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_TEXT_PRETOKENIZER_H
#define K2RT_TEXT_PRETOKENIZER_H

#include "text/Pattern.h"
#include <deque>
#include <optional>

namespace k2c::runtime {

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
  Cut(Pattern pattern, CutBehavior behavior, bool invert)
      : pattern(std::move(pattern)), behavior(behavior), invert(invert) {}

  /// Appends the pieces of `text`, empty ones left out.
  Status apply(std::string_view text, std::vector<std::string_view> &pieces) const;

private:
  struct Part {
    TextRange range;
    bool matched;
  };
  Status parts(std::string_view text, std::vector<Part> &out) const;

  Pattern pattern;
  CutBehavior behavior;
  bool invert; ///< matches and what lies between them change roles
};

/// Spaces made visible.
struct Metaspace {
  enum Scheme { never, first, always };
  std::string space;      ///< stands for a space
  Scheme prepend;         ///< which pieces get one in front, if they have none: the one that begins the text, or all
  std::optional<Cut> cut; ///< before each
};

/// The words of a text.
struct Words {
  std::vector<std::string_view> list;
  std::deque<std::string> owned; ///< words that were changed
};

class PreTokenizer {
public:
  /// GPT-2's pattern, which ByteLevel uses unless told not to.
  static const char *const gpt2Pattern;

  /// Appends the words of one stretch of well-formed text without added
  /// tokens; `begins`: it stands at the beginning. They point into `text` or
  /// into words.owned.
  Status apply(std::string_view text, bool begins, Words &words) const;

  std::vector<Cut> cuts;
  bool byteLevel = false; ///< words are bytes; else characters
  bool addPrefixSpace = false;
  std::optional<Cut> byteLevelCut;
  std::optional<Metaspace> metaspace;

private:
  Status applyMetaspace(std::string_view piece, bool begins, Words &words) const;
};

} // namespace k2c::runtime

#endif // K2RT_TEXT_PRETOKENIZER_H

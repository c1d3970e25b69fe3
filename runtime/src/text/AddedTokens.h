//===- AddedTokens.h - tokens that are cut out of text first --------------===//
//
// Added tokens are found in the text before anything else, leftmost first and
// of those the longest, in two passes: first the tokens matched in the raw
// text (normalized false), then the others in what is left, once it is
// normalized, as are they. A token may demand to stand as a word of its own (single_word) and may swallow the white
// space before (lstrip) and after it (rstrip).
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_TEXT_ADDEDTOKENS_H
#define K2RT_TEXT_ADDEDTOKENS_H

#include "text/Regex.h"
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace k2c::runtime {

/// One entry of "added_tokens".
struct AddedToken {
  int32_t id;
  std::string content; ///< what is searched for: with `normalized`, the normalized spelling; empty: never found
  bool singleWord, leftStrip, rightStrip, normalized, special;
};

/// A stretch of text (id -1) or an added token.
struct Segment {
  std::string_view text;
  int32_t id;
};

class AddedTokens {
public:
  /// Fails only where a token needs a regex and Oniguruma is missing.
  static Expected<AddedTokens> create(std::vector<AddedToken> tokens, const std::string &place);

  /// The segments of well-formed `text` in order, by the tokens that are found
  /// in raw text; no stretch is empty.
  std::vector<Segment> cutRaw(std::string_view text) const { return cut(raw, text); }
  /// The same for a stretch of cutRaw that has been normalized, by the others.
  std::vector<Segment> cutNormalized(std::string_view text) const { return cut(normalized, text); }

private:
  /// Contents as paths from node 0; (node, byte) -> node.
  struct Trie {
    std::unordered_map<uint64_t, int32_t> edges;
    std::vector<int32_t> tokenAt = {-1}; ///< per node: index in tokens, or -1

    void insert(std::string_view content, int32_t token);
    /// The token that begins at text[at] and its length there; -1: none.
    std::pair<int32_t, size_t> longest(std::string_view text, size_t at) const;
  };
  std::vector<Segment> cut(const Trie &trie, std::string_view text) const;
  bool isWord(std::string_view character) const;
  bool standsAlone(std::string_view text, TextRange match) const;

  std::vector<AddedToken> tokens;
  Trie raw, normalized;
  std::optional<Regex> word; ///< only where a token is singleWord
};

} // namespace k2c::runtime

#endif // K2RT_TEXT_ADDEDTOKENS_H

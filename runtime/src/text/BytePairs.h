//===- BytePairs.h - byte-pair encoding of one word -----------------------===//
//
// A word begins as one token per symbol. The neighbouring pair whose merge
// ranks first (ties: leftmost) becomes one token, until no pair has a merge. A
// heap of candidate merges over a linked list of tokens does it in O(n log n).
// Sennrich, Haddow, Birch: "Neural Machine Translation of Rare Words with
// Subword Units", 2016.
//
// A symbol is a byte (byte-level vocabularies) or a character (vocabularies of
// SentencePiece's kind, which spell the bytes of a character they lack as
// <0xE2><0x82><0xAC>, or else have one unknown token). Merges are a list, or
// every pair that together is a token, its id the rank (tiktoken).
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_TEXT_BYTEPAIRS_H
#define K2RT_TEXT_BYTEPAIRS_H

#include "text/TokenTable.h"
#include <array>
#include <optional>
#include <unordered_map>

namespace k2c::runtime {

class BytePairs {
public:
  BytePairs() { byteToken.fill(-1); }

  /// Declares that tokens `left` and `right` side by side become `merged`.
  /// Lower ranks go first; a pair declared twice keeps the later rank.
  void addMerge(int32_t left, int32_t right, int32_t rank, int32_t merged);

  /// Makes room for that many merges.
  void reserve(size_t count) { merges.reserve(count); }

  /// Working memory of encode, reused from word to word.
  struct Scratch {
    struct Symbol {
      int32_t token, previous, next; ///< -1 ends the list; token -1: merged
    };
    struct Candidate {
      int32_t rank, at, merged;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  /// Appends the tokens of a word of well-formed text. Returns false, with the
  /// symbol in `missing`, when a symbol has no token and nothing stands for it.
  bool encode(std::string_view word, std::vector<int32_t> &ids, Scratch &scratch, std::string_view &missing) const;

  /// A symbol is a character, found in characterToken by its code point.
  bool characters = false;
  std::unordered_map<uint32_t, int32_t> characterToken;
  /// The token of a byte: as a symbol, or, with `characters`, in the place of a
  /// character without a token, if all its bytes have one. -1: none.
  std::array<int32_t, 256> byteToken;
  /// Stands for a symbol without a token; -1: none.
  int32_t unknown = -1;
  /// Neighbouring unknown symbols are one unknown token.
  bool fuseUnknown = false;
  /// Words that are one token before any merge (`ignore_merges`, tiktoken).
  TokenTable whole;
  /// Pairs merge when `whole` has their bytes; symbols are bytes, all known.
  bool mergesByRank = false;

private:
  struct Merge {
    int32_t rank, merged;
  };
  struct Mix {
    size_t operator()(uint64_t pair) const {
      pair *= 0x9E3779B97F4A7C15u;
      return size_t(pair ^ pair >> 32);
    }
  };
  static uint64_t key(int32_t left, int32_t right) { return uint64_t(uint32_t(left)) << 32 | uint32_t(right); }
  bool split(std::string_view word, Scratch &scratch, std::string_view &missing) const;
  bool spellAsBytes(std::string_view character, Scratch &scratch) const;
  std::optional<Merge> mergeAt(int32_t at, std::string_view word, const Scratch &scratch) const;
  void propose(int32_t at, std::string_view word, Scratch &scratch) const;
  void mergeAll(std::string_view word, Scratch &scratch) const;

  std::unordered_map<uint64_t, Merge, Mix> merges;
};

} // namespace k2c::runtime

#endif // K2RT_TEXT_BYTEPAIRS_H

//===- BytePairs.h - byte-pair encoding of one word -----------------------===//
//
// A word begins as one token per byte. The neighbouring pair whose merge ranks
// first (ties: leftmost) becomes one token, until no pair has a merge. A heap
// of candidate merges over a linked list of tokens does it in O(n log n).
// Sennrich, Haddow, Birch: "Neural Machine Translation of Rare Words with
// Subword Units", 2016.
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_SERVE_BYTEPAIRS_H
#define K2RT_SERVE_BYTEPAIRS_H

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace k2rt {

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

  /// Appends the tokens of a word. Returns false, with the byte in `missing`,
  /// when a byte has no token.
  bool encode(std::string_view word, std::vector<int32_t> &ids, Scratch &scratch, uint8_t &missing) const;

  std::array<int32_t, 256> byteToken; ///< -1: none
  /// Words that are taken whole before any merge (`ignore_merges`); the keys
  /// must outlive this.
  std::unordered_map<std::string_view, int32_t> whole;

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
  void propose(int32_t at, Scratch &scratch) const;
  void mergeAll(Scratch &scratch) const;

  std::unordered_map<uint64_t, Merge, Mix> merges;
};

} // namespace k2rt

#endif // K2RT_SERVE_BYTEPAIRS_H

// Symbols of a word, then the merge loop.
#include "text/BytePairs.h"
#include "base/Utf8.h"
#include <algorithm>

namespace k2c::runtime {

namespace {

/// Orders a heap so that its front is the lowest rank, then the leftmost.
bool later(const BytePairs::Scratch::Candidate &a, const BytePairs::Scratch::Candidate &b) {
  return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
}

void append(BytePairs::Scratch &scratch, int32_t token) {
  const int32_t at = int32_t(scratch.symbols.size());
  if (at > 0)
    scratch.symbols.back().next = at;
  scratch.symbols.push_back({token, at - 1, -1});
}

} // namespace

void BytePairs::addMerge(int32_t left, int32_t right, int32_t rank, int32_t merged) {
  merges[key(left, right)] = {rank, merged};
}

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

bool BytePairs::spellAsBytes(std::string_view character, Scratch &scratch) const {
  for (char byte : character)
    if (byteToken[uint8_t(byte)] < 0)
      return false;
  for (char byte : character)
    append(scratch, byteToken[uint8_t(byte)]);
  return true;
}

bool BytePairs::split(std::string_view word, Scratch &scratch, std::string_view &missing) const {
  // An unknown token waits for the next known symbol, as in the `tokenizers` package: bytes of a character spelled as
  // bytes go before it.
  bool waiting = false;
  for (size_t at = 0; at < word.size();) {
    const std::string_view symbol = word.substr(at, characters ? utf8Step(word, at).length : 1);
    at += symbol.size();
    int32_t token = -1;
    if (!characters)
      token = byteToken[uint8_t(symbol[0])];
    else if (auto found = characterToken.find(utf8CodePoint(symbol)); found != characterToken.end())
      token = found->second;
    if (token < 0 && characters && spellAsBytes(symbol, scratch))
      continue;
    if (token < 0 && unknown < 0) {
      missing = symbol;
      return false;
    }
    if (waiting && (token >= 0 || !fuseUnknown))
      append(scratch, unknown);
    waiting = token < 0;
    if (token >= 0)
      append(scratch, token);
  }
  if (waiting)
    append(scratch, unknown);
  return true;
}

//===----------------------------------------------------------------------===//
// Merges
//===----------------------------------------------------------------------===//

/// The merge of the symbol and its neighbour, if they have one.
std::optional<BytePairs::Merge> BytePairs::mergeAt(int32_t at, std::string_view word, const Scratch &scratch) const {
  const Scratch::Symbol &left = scratch.symbols[size_t(at)];
  if (left.token < 0 || left.next < 0)
    return std::nullopt;
  const Scratch::Symbol &right = scratch.symbols[size_t(left.next)];
  if (mergesByRank) { // symbol i began as byte i
    const size_t end = right.next < 0 ? word.size() : size_t(right.next);
    const int32_t merged = whole.find(word.substr(size_t(at), end - size_t(at)));
    return merged < 0 ? std::nullopt : std::optional<Merge>({merged, merged});
  }
  auto found = merges.find(key(left.token, right.token));
  return found == merges.end() ? std::nullopt : std::optional<Merge>(found->second);
}

void BytePairs::propose(int32_t at, std::string_view word, Scratch &scratch) const {
  if (std::optional<Merge> merge = mergeAt(at, word, scratch)) {
    scratch.heap.push_back({merge->rank, at, merge->merged});
    std::push_heap(scratch.heap.begin(), scratch.heap.end(), later);
  }
}

void BytePairs::mergeAll(std::string_view word, Scratch &scratch) const {
  while (!scratch.heap.empty()) {
    std::pop_heap(scratch.heap.begin(), scratch.heap.end(), later);
    const Scratch::Candidate best = scratch.heap.back();
    scratch.heap.pop_back();
    // A candidate outlives the pair it was made for: check that it still holds.
    const std::optional<Merge> merge = mergeAt(best.at, word, scratch);
    if (!merge || merge->merged != best.merged)
      continue;
    Scratch::Symbol &left = scratch.symbols[size_t(best.at)];
    Scratch::Symbol &right = scratch.symbols[size_t(left.next)];
    left.token = best.merged;
    right.token = -1;
    left.next = right.next;
    if (left.next >= 0)
      scratch.symbols[size_t(left.next)].previous = best.at;
    if (left.previous >= 0)
      propose(left.previous, word, scratch);
    propose(best.at, word, scratch);
  }
}

bool BytePairs::encode(std::string_view word, std::vector<int32_t> &ids, Scratch &scratch,
                       std::string_view &missing) const {
  if (const int32_t token = whole.find(word); token >= 0) {
    ids.push_back(token);
    return true;
  }
  scratch.symbols.clear();
  scratch.heap.clear();
  if (!split(word, scratch, missing))
    return false;
  const int32_t count = int32_t(scratch.symbols.size());
  for (int32_t i = 0; i < count; ++i)
    propose(i, word, scratch);
  mergeAll(word, scratch);
  for (int32_t i = 0; i >= 0 && i < count; i = scratch.symbols[size_t(i)].next)
    ids.push_back(scratch.symbols[size_t(i)].token);
  return true;
}

} // namespace k2c::runtime

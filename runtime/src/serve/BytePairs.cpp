// The merge loop.
#include "serve/BytePairs.h"
#include <algorithm>

namespace k2rt {

namespace {

/// Orders a heap so that its front is the lowest rank, then the leftmost.
bool later(const BytePairs::Scratch::Candidate &a, const BytePairs::Scratch::Candidate &b) {
  return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
}

} // namespace

void BytePairs::addMerge(int32_t left, int32_t right, int32_t rank, int32_t merged) {
  merges[key(left, right)] = {rank, merged};
}

void BytePairs::propose(int32_t at, Scratch &scratch) const {
  const Scratch::Symbol &symbol = scratch.symbols[size_t(at)];
  if (symbol.next < 0)
    return;
  auto found = merges.find(key(symbol.token, scratch.symbols[size_t(symbol.next)].token));
  if (found == merges.end())
    return;
  scratch.heap.push_back({found->second.rank, at, found->second.merged});
  std::push_heap(scratch.heap.begin(), scratch.heap.end(), later);
}

void BytePairs::mergeAll(Scratch &scratch) const {
  while (!scratch.heap.empty()) {
    std::pop_heap(scratch.heap.begin(), scratch.heap.end(), later);
    const Scratch::Candidate best = scratch.heap.back();
    scratch.heap.pop_back();
    Scratch::Symbol &left = scratch.symbols[size_t(best.at)];
    if (left.token < 0 || left.next < 0)
      continue;
    Scratch::Symbol &right = scratch.symbols[size_t(left.next)];
    // A candidate outlives the pair it was made for: check that it still holds.
    auto found = merges.find(key(left.token, right.token));
    if (found == merges.end() || found->second.merged != best.merged)
      continue;
    left.token = best.merged;
    right.token = -1;
    left.next = right.next;
    if (left.next >= 0)
      scratch.symbols[size_t(left.next)].previous = best.at;
    if (left.previous >= 0)
      propose(left.previous, scratch);
    propose(best.at, scratch);
  }
}

bool BytePairs::encode(std::string_view word, std::vector<int32_t> &ids, Scratch &scratch, uint8_t &missing) const {
  if (!whole.empty())
    if (auto found = whole.find(word); found != whole.end()) {
      ids.push_back(found->second);
      return true;
    }
  const int32_t length = int32_t(word.size());
  scratch.symbols.clear();
  scratch.heap.clear();
  for (int32_t i = 0; i < length; ++i) {
    const int32_t token = byteToken[uint8_t(word[size_t(i)])];
    if (token < 0) {
      missing = uint8_t(word[size_t(i)]);
      return false;
    }
    scratch.symbols.push_back({token, i - 1, i + 1 < length ? i + 1 : -1});
  }
  for (int32_t i = 0; i < length; ++i)
    propose(i, scratch);
  mergeAll(scratch);
  for (int32_t i = 0; i >= 0 && i < length; i = scratch.symbols[size_t(i)].next)
    ids.push_back(scratch.symbols[size_t(i)].token);
  return true;
}

} // namespace k2rt

//===- TokenTable.h - tokens by their bytes -------------------------------===//
//
// The bytes of every token in one string, and a hash table over them that
// holds ids only: 4 bytes a slot, at most two thirds full. A vocabulary of
// 160,000 tokens takes 1 MiB on top of its bytes.
//
//===----------------------------------------------------------------------===//
#ifndef K2RT_TEXT_TOKENTABLE_H
#define K2RT_TEXT_TOKENTABLE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace k2c::runtime {

/// Bytes of tokens by id.
class TokenBytes {
public:
  /// The next id stands for `bytes`, none in a hole.
  void push(std::string_view bytes) {
    text += bytes;
    end.push_back(text.size());
  }
  /// One more than the largest id.
  int32_t size() const { return int32_t(end.size()); }
  /// `id` is in [0, size()).
  std::string_view operator[](int32_t id) const {
    const size_t begin = id == 0 ? 0 : end[size_t(id) - 1];
    return std::string_view(text).substr(begin, end[size_t(id)] - begin);
  }

private:
  std::string text;
  std::vector<size_t> end;
};

class TokenTable {
public:
  /// Makes room for `count` tokens of `tokens`, which must outlive the table.
  void reserve(const TokenBytes &tokens, size_t count);
  /// Adds a token, whose bytes are not empty. Returns -1, or the id that has
  /// the same bytes already.
  int32_t add(int32_t id);
  /// The token with these bytes, or -1.
  int32_t find(std::string_view bytes) const;
  bool empty() const { return slots.empty(); }

private:
  size_t slotOf(std::string_view bytes) const;

  const TokenBytes *tokens = nullptr;
  std::vector<int32_t> slots; ///< ids, -1 when free; a power of two of them
};

} // namespace k2c::runtime

#endif // K2RT_TEXT_TOKENTABLE_H

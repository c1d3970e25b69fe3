//===- StoredElements.h - Elements of a tensor as they are stored ---------===//
#ifndef K2C_LIB_WEIGHTS_STOREDELEMENTS_H
#define K2C_LIB_WEIGHTS_STOREDELEMENTS_H

#include "k2c/Weights/TensorSource.h"
#include <algorithm>
#include <cstring>
#include <optional>

namespace k2c::weights {

/// Of a tensor that lies turned in its file a piece takes a read for each column, so a piece has many rows.
constexpr int64_t pieceBytes = int64_t(32) << 20;

inline int64_t bytesOf(const StoredTensor &stored) {
  int64_t bytes = byteWidth(stored.type);
  for (int64_t size : stored.shape)
    bytes *= size;
  return bytes;
}

/// Index of the first of `count` elements of the width of a Word whose bits are such. The flag of a block is
/// accumulated, so that the loop vectorises.
template <class Word, class IsSuch>
std::optional<int64_t> firstWhere(const char *elements, int64_t count, const IsSuch &isSuch) {
  const auto isSuchAt = [&](int64_t i) {
    Word word;
    std::memcpy(&word, elements + i * int64_t(sizeof(Word)), sizeof(Word));
    return bool(isSuch(word));
  };
  constexpr int64_t block = 4096;
  for (int64_t begin = 0; begin < count; begin += block) {
    const int64_t end = std::min(begin + block, count);
    bool found = false;
    for (int64_t i = begin; i < end; ++i)
      found |= isSuchAt(i);
    for (int64_t i = begin; found && i < end; ++i)
      if (isSuchAt(i))
        return i;
  }
  return std::nullopt;
}

} // namespace k2c::weights

#endif // K2C_LIB_WEIGHTS_STOREDELEMENTS_H

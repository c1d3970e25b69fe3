// The pages of one cache group: taken when a sequence is admitted, given back when it ends.
#ifndef K2RT_ENGINE_PAGEPOOL_H
#define K2RT_ENGINE_PAGEPOOL_H

#include <cstdint>
#include <vector>

namespace k2c::runtime {

/// Free page numbers [0, pages). The last one given back is taken first: its lines may still be in a cache.
class PagePool {
public:
  explicit PagePool(int64_t pages) {
    free.reserve(static_cast<size_t>(pages));
    for (int64_t page = pages; page-- > 0;)
      free.push_back(static_cast<int32_t>(page));
  }

  int64_t available() const { return static_cast<int64_t>(free.size()); }

  /// Writes `count` page numbers to `table`; count <= available().
  void take(int64_t count, int32_t *table) {
    for (int64_t i = 0; i < count; ++i) {
      table[i] = free.back();
      free.pop_back();
    }
  }

  void giveBack(int64_t count, const int32_t *table) { free.insert(free.end(), table, table + count); }

private:
  std::vector<int32_t> free;
};

} // namespace k2c::runtime

#endif

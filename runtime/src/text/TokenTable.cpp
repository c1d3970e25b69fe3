// Open addressing with steps of one.
#include "text/TokenTable.h"
#include <functional>

namespace k2c::runtime {

void TokenTable::reserve(const TokenBytes &of, size_t count) {
  tokens = &of;
  size_t size = 16;
  while (size < count + count / 2)
    size *= 2;
  slots.assign(size, -1);
}

/// The slot of the token with these bytes, or the free one where it belongs.
size_t TokenTable::slotOf(std::string_view bytes) const {
  const size_t mask = slots.size() - 1;
  size_t slot = std::hash<std::string_view>()(bytes) & mask;
  while (slots[slot] >= 0 && (*tokens)[slots[slot]] != bytes)
    slot = (slot + 1) & mask;
  return slot;
}

int32_t TokenTable::add(int32_t id) {
  int32_t &slot = slots[slotOf((*tokens)[id])];
  if (slot >= 0)
    return slot;
  slot = id;
  return -1;
}

int32_t TokenTable::find(std::string_view bytes) const { return slots.empty() ? -1 : slots[slotOf(bytes)]; }

} // namespace k2c::runtime

// Arrays laid into one piece of memory, which is taken once and is large enough.
#ifndef K2RT_ENGINE_CARVER_H
#define K2RT_ENGINE_CARVER_H

#include <cstddef>
#include <cstdint>

namespace k2c::runtime {

/// Hands out 64-byte aligned arrays from [base, base + bytes); the caller computed that it is large enough.
class Carver {
public:
  Carver(std::byte *base, int64_t bytes) : base(base), bytes(bytes) {}

  /// The next `count` elements; null when the memory is exhausted, which fits() then tells.
  template <class T> T *take(int64_t count) { return static_cast<T *>(takeBytes(count * int64_t(sizeof(T)))); }
  bool fits() const { return used <= bytes; }

private:
  void *takeBytes(int64_t wanted) {
    std::byte *at = base + used;
    used += (wanted + 63) / 64 * 64;
    return fits() ? at : nullptr;
  }

  std::byte *base;
  int64_t bytes;
  int64_t used = 0;
};

} // namespace k2c::runtime

#endif

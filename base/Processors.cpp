// Masks on the heap, as CPU_ALLOC makes them.
#include "base/Processors.h"
#include <algorithm>
#include <cerrno>
#include <memory>

namespace k2c {

namespace {

struct FreeMask {
  void operator()(cpu_set_t *mask) const { CPU_FREE(mask); }
};

/// A mask for processors 0 .. count-1, none of them in it; its allocation may be null.
struct Mask {
  explicit Mask(int count) : bytes(CPU_ALLOC_SIZE(count)), bits(CPU_ALLOC(count)) {
    if (bits)
      CPU_ZERO_S(bytes, bits.get());
  }
  size_t bytes;
  std::unique_ptr<cpu_set_t, FreeMask> bits;
};

} // namespace

std::vector<int> ownProcessors(AffinityQuery query) {
  constexpr int most = 1 << 20; // far above any system's own limit
  for (int count = CPU_SETSIZE; count <= most; count *= 2) {
    Mask mask(count);
    if (!mask.bits)
      return {};
    if (query(0, mask.bytes, mask.bits.get()) != 0) {
      if (errno == EINVAL) // the system's mask is longer
        continue;
      return {};
    }
    std::vector<int> processors;
    for (int processor = 0; processor < count; ++processor)
      if (CPU_ISSET_S(processor, mask.bytes, mask.bits.get()))
        processors.push_back(processor);
    return processors;
  }
  return {};
}

int bindThread(pthread_t thread, const std::vector<int> &processors) {
  Mask mask(*std::max_element(processors.begin(), processors.end()) + 1);
  if (!mask.bits)
    return ENOMEM;
  for (int processor : processors)
    CPU_SET_S(processor, mask.bytes, mask.bits.get());
  return ::pthread_setaffinity_np(thread, mask.bytes, mask.bits.get());
}

} // namespace k2c

// Anonymous memory, taken once at start: a region is mapped, given huge pages and touched before the first step.
#ifndef K2RT_DEVICE_CPU_REGION_H
#define K2RT_DEVICE_CPU_REGION_H

#include "base/File.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace k2c::runtime {

/// An anonymous private mapping, zeroed, 4096-byte aligned. Move-only.
class Region {
public:
  Region() = default;
  Region(Region &&other) noexcept;
  Region &operator=(Region &&other) noexcept;
  ~Region();

  /// Reserves `bytes` (0: an empty region). `purpose` names it in the failure.
  static Expected<Region> allocate(int64_t bytes, const char *purpose);

  std::byte *data() const { return base; }
  int64_t size() const { return bytes; }

  /// Makes a worker's chunks resident: those of 2 MiB (the pages of its memory, where it is large) that `owns`, a
  /// function of a chunk's number, says are its own. Workers call it side by side.
  template <class Owns> void populate(Owns owns) const {
    const int64_t first = reinterpret_cast<intptr_t>(base) / hugePageBytes;
    for (int64_t offset = 0, chunk = 0; offset < bytes; ++chunk) {
      const int64_t end = std::min(bytes, (first + chunk + 1) * hugePageBytes - reinterpret_cast<intptr_t>(base));
      if (owns(chunk))
        touch(offset, end);
      offset = end;
    }
  }
  /// Makes all of it resident.
  void populate() const { touch(0, bytes); }

private:
  void touch(int64_t begin, int64_t end) const;

  std::byte *base = nullptr;
  int64_t bytes = 0;
};

} // namespace k2c::runtime

#endif

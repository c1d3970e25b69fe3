// Huge pages and first touch: what the kernel is told about a region, and why nothing faults during a step.
#include "device/cpu/Region.h"
#include "base/FormatBytes.h"
#include <sys/mman.h>
#include <utility>

namespace k2c::runtime {

static constexpr int64_t pageBytes = 4096;

Region::Region(Region &&other) noexcept
    : base(std::exchange(other.base, nullptr)), bytes(std::exchange(other.bytes, 0)) {}

Region &Region::operator=(Region &&other) noexcept {
  std::swap(base, other.base);
  std::swap(bytes, other.bytes);
  return *this;
}

Region::~Region() {
  if (base)
    ::munmap(base, static_cast<size_t>(bytes));
}

Expected<Region> Region::allocate(int64_t bytes, const char *purpose) {
  Region region;
  if (bytes == 0)
    return Expected<Region>(std::move(region));
  const int64_t size = (bytes + pageBytes - 1) / pageBytes * pageBytes;
  void *base = ::mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return Error{K2RT_OUT_OF_MEMORY, purpose, "the system refuses " + formatBytes(size) + " of memory",
                 "free memory, or compile with smaller --max-sequences, --max-context or --step-tokens"};
  // A refusal only means 4 KiB pages.
  if (size >= hugePageBytes)
    ::madvise(base, static_cast<size_t>(size), MADV_HUGEPAGE);
  region.base = static_cast<std::byte *>(base);
  region.bytes = size;
  return Expected<Region>(std::move(region));
}

void Region::touch(int64_t begin, int64_t end) const {
  for (int64_t offset = begin; offset < end; offset += pageBytes)
    *reinterpret_cast<volatile std::byte *>(base + offset) = std::byte{0};
}

} // namespace k2c::runtime

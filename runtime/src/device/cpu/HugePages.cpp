// linux/fs.h of the oldest supported Debian does not have the call yet, so its struct is written out here.
#include "device/cpu/HugePages.h"
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace k2c::runtime {

namespace {

constexpr uint64_t pageIsHuge = uint64_t(1) << 6;

struct PageRegion {
  uint64_t begin, end, categories;
};

/// struct pm_scan_arg: returns the regions of [begin, end) that have all categories of `mask`.
struct ScanArgument {
  uint64_t size, flags, begin, end, walkEnd, regions, regionCount, maxPages;
  uint64_t inverted, mask, anyOf, returned;
};

} // namespace

int queryHugePages(size_t count, const void *const *pages, bool *huge) {
  const int pagemap = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (pagemap < 0)
    return errno;
  constexpr uint64_t pageBytes = 4096;
  int refusal = 0;
  for (size_t i = 0; i < count && refusal == 0; ++i) {
    PageRegion found{};
    ScanArgument scan{};
    scan.size = sizeof scan;
    scan.begin = reinterpret_cast<uintptr_t>(pages[i]) / pageBytes * pageBytes;
    scan.end = scan.begin + pageBytes;
    scan.regions = reinterpret_cast<uintptr_t>(&found);
    scan.regionCount = 1;
    scan.mask = pageIsHuge;
    scan.returned = pageIsHuge;
    const int regions = ::ioctl(pagemap, _IOWR('f', 16, ScanArgument), &scan);
    refusal = regions < 0 ? errno : 0;
    huge[i] = regions > 0;
  }
  ::close(pagemap);
  return refusal;
}

} // namespace k2c::runtime

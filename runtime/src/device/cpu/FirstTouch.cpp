// A page of a file comes into the page cache on the node of the thread that reads it first, and stays there for all who
// map the file later: who populates decides, of the node and of the page's size. No page is moved or copied here.
//
// Huge pages: a step of one sequence reads all weights of its layers once, and with 4 KiB pages it waits for page
// tables as much as a quarter of the time. A fault in a mapping with MADV_HUGEPAGE reads 2 MiB into one page. Several
// nodes: what the system reads beyond a fault would reach over the border of a range. So it is told to read exactly
// what is asked for: whole huge pages inside of a node's range, single pages at its ends.
#include "device/cpu/FirstTouch.h"
#include "base/Container.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace k2c::runtime {

static constexpr int64_t pageBytes = 4096;

/// Best effort, as all advice is.
static void advise(const std::byte *base, int64_t bytes, int advice) {
  const auto begin = reinterpret_cast<uintptr_t>(base) / pageBytes * pageBytes;
  ::madvise(reinterpret_cast<void *>(begin), reinterpret_cast<uintptr_t>(base) + static_cast<size_t>(bytes) - begin,
            advice);
}

/// An older kernel refuses, and the first step faults instead.
static void populate(const std::byte *base, int64_t bytes) {
#ifdef MADV_POPULATE_READ
  advise(base, bytes, MADV_POPULATE_READ);
#else
  advise(base, bytes, MADV_WILLNEED);
#endif
}

/// The same for less than a huge page: pages for exactly this range, then their place in the page table. The system
/// reads no more at once than its readahead window, which is never this small.
static void populateExactly(const std::byte *base, int64_t bytes) {
  constexpr int64_t windowBytes = int64_t(64) << 10;
  for (int64_t offset = 0; offset < bytes; offset += windowBytes)
    advise(base + offset, std::min(windowBytes, bytes - offset), MADV_WILLNEED);
  populate(base, bytes);
}

/// Since Linux 5.18 such a fault brings a huge page; before, and where none are compiled in, one small page, slowly.
static bool faultsBringHugePages() {
  utsname system;
  int major = 0, minor = 0;
  return ::access("/sys/kernel/mm/transparent_hugepage", F_OK) == 0 && ::uname(&system) == 0 &&
         std::sscanf(system.release, "%d.%d", &major, &minor) == 2 && (major > 5 || (major == 5 && minor >= 18));
}

/// Calls visit(base, bytes) for the parts of bytes [begin, end) of a range that lie in one huge page of its file each.
template <class Visit> static void visitHugePages(const WeightRange &range, int64_t begin, int64_t end, Visit visit) {
  while (begin < end) {
    const int64_t border = ((range.offset + begin) / hugePageBytes + 1) * hugePageBytes - range.offset;
    const int64_t next = std::min(end, border);
    visit(range.base + begin, next - begin);
    begin = next;
  }
}

static void adviseAll(const Weights &weights, int advice) {
  for (const MappedFile &file : weights.mappedFiles())
    advise(static_cast<const std::byte *>(file.data()), file.size(), advice);
}

ReadAdvice::ReadAdvice(const Weights &weights, bool exact) : weights(weights), exact(exact) {
  adviseAll(weights, MADV_HUGEPAGE);
  if (exact)
    adviseAll(weights, MADV_RANDOM);
}

ReadAdvice::~ReadAdvice() {
  if (exact)
    adviseAll(weights, MADV_NORMAL);
}

void populateWeights(const Weights &weights, const WorkerBinding &binding, int32_t worker, int32_t workers,
                     WeightCheck *check) {
  int64_t number = 0;
  if (binding.nodes == 1) {
    for (const WeightRange &range : weights.ranges())
      for (int64_t chunk = 0; chunk * hugePageBytes < range.bytes; ++chunk) {
        if (!binding.owns(number++))
          continue;
        const int64_t begin = chunk * hugePageBytes;
        populate(range.base + begin, std::min(hugePageBytes, range.bytes - begin));
        if (check)
          check->compare(range, chunk);
      }
    return;
  }
  auto populateCommon = [&](const WeightRange &range, int64_t begin, int64_t end) {
    visitHugePages(range, begin, end, [&](const std::byte *part, int64_t length) {
      if (binding.owns(number++))
        populate(part, length);
    });
  };
  const bool huge = faultsBringHugePages();
  auto populateOwn = [&](const WeightRange &range, int64_t begin, int64_t end) {
    visitHugePages(range, begin, end, [&](const std::byte *part, int64_t length) {
      if (number++ % binding.count == binding.index)
        huge &&length == hugePageBytes ? populate(part, length) : populateExactly(part, length);
    });
  };
  const int64_t first = worker - binding.index;
  weights.visitOwn(first, first + binding.count, workers, populateOwn);
  weights.visitCommon(populateCommon);
}

void WeightPageCounts::add(const WeightPageCounts &other) {
  bytes += other.bytes;
  elsewhere += other.elsewhere;
  refusal = refusal ? refusal : other.refusal;
}

WeightPageCounts countOwnPages(const Weights &weights, int32_t node, int32_t worker, int32_t workers, PageQuery query) {
  constexpr int64_t samples = 4096;
  int64_t total = 0;
  weights.visitOwn(worker, worker + 1, workers,
                   [&](const WeightRange &, int64_t begin, int64_t end) { total += end - begin; });
  const int64_t stride = std::max<int64_t>((total / samples + pageBytes - 1) / pageBytes, 1) * pageBytes;
  PageCounts pageCounts;
  int64_t skip = 0; // bytes of the next range before its first sample
  weights.visitOwn(worker, worker + 1, workers, [&](const WeightRange &range, int64_t begin, int64_t end) {
    const int64_t bytes = end - begin;
    if (skip < bytes && !pageCounts.refusal)
      pageCounts.add(countPages(range.base + begin + skip, bytes - skip, stride, node, query));
    skip = skip < bytes ? (stride - (bytes - skip) % stride) % stride : skip - bytes;
  });
  const double scale = static_cast<double>(total) / static_cast<double>(std::max<int64_t>(pageCounts.asked, 1));
  return {std::llround(scale * static_cast<double>(pageCounts.told)),
          std::llround(scale * static_cast<double>(pageCounts.elsewhere)), pageCounts.refusal};
}

std::optional<int64_t> hugeWeightBytes(const Weights &weights, int64_t walkable, HugePageQuery query) {
  constexpr int64_t samples = 4096;
  const int64_t total = weights.hugePageableBytes() / hugePageBytes;
  const int64_t stride = std::max<int64_t>((total + samples - 1) / samples, 1);
  std::vector<const void *> pages;
  int64_t skip = 0; // huge pages of the next file before its first sample
  for (const MappedFile &file : weights.mappedFiles()) {
    const HugePages own = hugePagesOf(file);
    int64_t page = skip;
    for (; page < own.count; page += stride)
      pages.push_back(own.first + page * hugePageBytes);
    skip = page - own.count;
  }
  const std::unique_ptr<bool[]> huge(new bool[pages.size() + 1]());
  if (query(pages.size(), pages.data(), huge.get()) != 0)
    return weights.bytes() <= walkable ? hugeFileBytes() : std::nullopt;
  const int64_t found = std::count(huge.get(), huge.get() + pages.size(), true);
  const double share = static_cast<double>(found) / static_cast<double>(std::max<size_t>(pages.size(), 1));
  return std::llround(share * static_cast<double>(total)) * hugePageBytes;
}

} // namespace k2c::runtime

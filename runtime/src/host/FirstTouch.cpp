// A page of a file comes into the page cache on the node of the thread that reads it first, and stays there for all who
// map the file later: who populates decides. No page is moved or copied here. What the system reads ahead of a fault
// would reach over the border of a range, so on several nodes it reads exactly what each worker asks for.
#include "host/FirstTouch.h"
#include <algorithm>
#include <cmath>
#include <sys/mman.h>

namespace k2rt {

static constexpr int64_t pageBytes = 4096;
static constexpr int64_t chunkBytes = int64_t(4) << 20;

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

/// The same without reading ahead: pages for exactly this range, then their place in the page table.
static void populateExactly(const std::byte *base, int64_t bytes) {
  for (int64_t offset = 0; offset < bytes; offset += chunkBytes) {
    const int64_t length = std::min(chunkBytes, bytes - offset);
    advise(base + offset, length, MADV_WILLNEED);
    populate(base + offset, length);
  }
}

ExactReads::ExactReads(const Weights &weights, bool exact) : weights(weights), exact(exact) { setAdvice(MADV_RANDOM); }

ExactReads::~ExactReads() { setAdvice(MADV_NORMAL); }

void ExactReads::setAdvice(int advice) const {
  if (exact)
    for (const MappedFile &file : weights.mappedFiles())
      advise(static_cast<const std::byte *>(file.data()), file.size(), advice);
}

void populateWeights(const Weights &weights, const WorkerPlace &place, int32_t worker, int32_t workers) {
  int64_t number = 0;
  auto populateChunks = [&](const std::byte *base, int64_t bytes) {
    for (int64_t offset = 0; offset < bytes; offset += chunkBytes, ++number)
      if (place.owns(number))
        populate(base + offset, std::min(chunkBytes, bytes - offset));
  };
  if (place.turns == 1) {
    for (const MappedFile &file : weights.mappedFiles())
      populateChunks(static_cast<const std::byte *>(file.data()), file.size());
    return;
  }
  weights.visitOwn(worker, workers, populateExactly);
  weights.visitCommon(populateChunks);
}

void WeightCensus::add(const WeightCensus &other) {
  bytes += other.bytes;
  elsewhere += other.elsewhere;
  refusal = refusal ? refusal : other.refusal;
}

WeightCensus countOwnPages(const Weights &weights, int32_t node, int32_t worker, int32_t workers, PageQuery query) {
  constexpr int64_t samples = 4096;
  int64_t total = 0;
  weights.visitOwn(worker, workers, [&](const std::byte *, int64_t bytes) { total += bytes; });
  const int64_t stride = std::max<int64_t>((total / samples + pageBytes - 1) / pageBytes, 1) * pageBytes;
  PageCensus census;
  int64_t skip = 0; // bytes of the next range before its first sample
  weights.visitOwn(worker, workers, [&](const std::byte *base, int64_t bytes) {
    if (skip < bytes && !census.refusal)
      census.add(countPages(base + skip, bytes - skip, stride, node, query));
    skip = skip < bytes ? (stride - (bytes - skip) % stride) % stride : skip - bytes;
  });
  const double scale = static_cast<double>(total) / static_cast<double>(std::max<int64_t>(census.asked, 1));
  return {std::llround(scale * static_cast<double>(census.told)),
          std::llround(scale * static_cast<double>(census.elsewhere)), census.refusal};
}

} // namespace k2rt

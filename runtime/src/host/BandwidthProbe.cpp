// Four streams per worker with software prefetch: one stream alone leaves part of the bandwidth of a core unused.
#include "host/BandwidthProbe.h"
#include "trace/Trace.h"
#include <algorithm>
#include <emmintrin.h>

namespace k2rt {

static constexpr int64_t bufferBytes = int64_t(512) << 20;
static constexpr int64_t prefetchBytes = 1024;
static constexpr int passes = 5;

static uint64_t readStreams(const std::byte *base, int64_t bytes) {
  constexpr int streams = 4;
  const int64_t stride = bytes / streams / 64 * 64;
  __m128i sum = _mm_setzero_si128();
  for (int64_t offset = 0; offset < stride; offset += 64)
    for (int stream = 0; stream < streams; ++stream) {
      const auto *line = reinterpret_cast<const __m128i *>(base + stream * stride + offset);
      _mm_prefetch(reinterpret_cast<const char *>(line) + prefetchBytes, _MM_HINT_T0);
      for (int i = 0; i < 4; ++i)
        sum = _mm_add_epi64(sum, _mm_load_si128(line + i));
    }
  return static_cast<uint64_t>(_mm_cvtsi128_si64(sum));
}

double probeBandwidth(Session &session) {
  const int64_t workers = session.threads();
  const int64_t share = bufferBytes / workers / 4096 * 4096;
  Result<Region> buffer = Region::allocate(share * workers, "bandwidth probe");
  if (!buffer)
    return 0;
  session.onWorkers([&](int32_t worker) { buffer->populate(worker, workers); });
  double best = 0;
  std::vector<uint64_t> sums(static_cast<size_t>(workers) * 8);
  for (int pass = 0; pass < passes; ++pass) {
    const int64_t begin = Trace::nowNs();
    session.onWorkers([&](int32_t worker) { sums[worker * 8] += readStreams(buffer->data() + worker * share, share); });
    best = std::max(best, static_cast<double>(share * workers) * 1e9 / static_cast<double>(Trace::nowNs() - begin));
  }
  return best;
}

} // namespace k2rt

// Four streams per worker with software prefetch: one stream alone leaves part of the bandwidth of a core unused.
#include "device/cpu/BandwidthProbe.h"
#include "base/Container.h"
#include "engine/Trace.h"
#include <algorithm>
#include <emmintrin.h>
#include <fstream>
#include <set>

namespace k2c::runtime {

static constexpr int64_t prefetchBytes = 1024;
static constexpr int64_t lineBytes = 64;
static constexpr int passes = 5;

/// Reads [base, base + bytes), both of whole lines.
static uint64_t readStreams(const std::byte *base, int64_t bytes) {
  constexpr int streams = 4;
  const int64_t stride = bytes / streams / lineBytes * lineBytes;
  __m128i sum = _mm_setzero_si128();
  auto readLine = [&sum](const std::byte *at) {
    const auto *line = reinterpret_cast<const __m128i *>(at);
    for (int i = 0; i < 4; ++i)
      sum = _mm_add_epi64(sum, _mm_load_si128(line + i));
  };
  for (int64_t offset = 0; offset < stride; offset += lineBytes)
    for (int stream = 0; stream < streams; ++stream) {
      const std::byte *at = base + stream * stride + offset;
      // The last prefetches of a stream reach beyond it: a hint may name any address.
      _mm_prefetch(reinterpret_cast<const char *>(at) + prefetchBytes, _MM_HINT_T0);
      readLine(at);
    }
  for (int64_t offset = streams * stride; offset < bytes; offset += lineBytes)
    readLine(base + offset);
  return static_cast<uint64_t>(_mm_cvtsi128_si64(sum));
}

/// Each second- and third-level cache of the processors, counted once however many of them share it.
static int64_t sumCaches(const std::vector<int> &processors) {
  std::set<std::string> seen;
  int64_t bytes = 0;
  for (int processor : processors)
    for (int index = 0; index < 8; ++index) {
      const std::string folder =
          "/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/cache/index" + std::to_string(index) + "/";
      int level = 0;
      int64_t kibibytes = 0;
      std::string sharers;
      std::ifstream(folder + "level") >> level;
      std::ifstream(folder + "size") >> kibibytes;
      std::ifstream(folder + "shared_cpu_list") >> sharers;
      if (level >= 2 && seen.insert(std::to_string(level) + ":" + sharers).second)
        bytes += kibibytes * 1024;
    }
  return bytes;
}

Bandwidth probeBandwidth(CpuDevice &device) {
  const int64_t workers = device.workers();
  const std::vector<std::pair<const std::byte *, int64_t>> parts = device.memory();
  std::vector<uint64_t> sums(static_cast<size_t>(workers) * 8);
  Bandwidth found;
  found.cacheBytes = sumCaches(readContainer().processors);
  for (const auto &[base, bytes] : parts)
    found.bytes += bytes / lineBytes * lineBytes;
  for (int pass = 0; pass < passes; ++pass) {
    const int64_t begin = Trace::nowNs();
    device.onWorkers([&](int32_t worker) {
      for (const auto &[base, bytes] : parts) {
        const int64_t lines = bytes / lineBytes;
        const int64_t first = lines * worker / workers, end = lines * (worker + 1) / workers;
        sums[worker * 8] += readStreams(base + first * lineBytes, (end - first) * lineBytes);
      }
    });
    const auto ns = static_cast<double>(std::max<int64_t>(1, Trace::nowNs() - begin));
    found.bytesPerSecond = std::max(found.bytesPerSecond, static_cast<double>(found.bytes) * 1e9 / ns);
  }
  return found;
}

} // namespace k2c::runtime

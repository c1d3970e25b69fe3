//===- Roofs.cpp - What this machine can reach: memory reads, multiply-adds -===//
//
// One line of JSON: bytes a second that all threads read from memory side by side and, with --peaks, their FLOP a
// second in loops of multiply-adds on registers. The fastest of a few short passes: what another program takes away
// for a moment is not the machine's.
//
//   build/bin/k2c-roofs --threads 2 --peaks
//
//===----------------------------------------------------------------------===//
#include "Peaks.h"
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <functional>
#include <immintrin.h>
#include <memory>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace k2c::bench {
namespace {

/// Seconds until every thread has run `work` with its number.
double sideBySide(int threads, const std::function<void(int)> &work) {
  auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i)
    others.emplace_back(work, i);
  work(0);
  for (std::thread &other : others)
    other.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Sums four streams, prefetched: one stream alone does not fill the memory's pipeline.
[[gnu::target("avx2")]] uint64_t readStreams(const char *data, int64_t bytes) {
  constexpr int streams = 4, ahead = 1024;
  int64_t each = bytes / streams / 64 * 64;
  __m256i sum[streams] = {};
  for (int64_t at = 0; at < each; at += 64)
    for (int s = 0; s < streams; ++s) {
      const char *line = data + s * each + at;
      _mm_prefetch(line + ahead, _MM_HINT_T0);
      __m256i pair = _mm256_add_epi64(_mm256_load_si256(reinterpret_cast<const __m256i *>(line)),
                                      _mm256_load_si256(reinterpret_cast<const __m256i *>(line + 32)));
      sum[s] = _mm256_add_epi64(sum[s], pair);
    }
  uint64_t total = 0;
  for (__m256i &one : sum)
    total += uint64_t(_mm256_extract_epi64(one, 0)) + uint64_t(_mm256_extract_epi64(one, 3));
  return total;
}

/// Bytes a second of the fastest pass.
double readRate(int threads, int64_t bytes, int passes) {
  constexpr size_t hugePage = 2 << 20;
  std::unique_ptr<char, decltype(&std::free)> memory(
      static_cast<char *>(std::aligned_alloc(hugePage, (bytes + hugePage - 1) / hugePage * hugePage)), std::free);
  if (!memory)
    return 0;
  ::madvise(memory.get(), bytes, MADV_HUGEPAGE);
  int64_t each = bytes / threads / 4096 * 4096;
  sideBySide(threads, [&](int i) { std::fill_n(memory.get() + i * each, each, 1); });
  std::vector<uint64_t> sums(threads * 8); // a cache line apart
  double fastest = 0;
  for (int pass = 0; pass < passes; ++pass) {
    double seconds = sideBySide(threads, [&](int i) { sums[i * 8] = readStreams(memory.get() + i * each, each); });
    fastest = std::max(fastest, double(each * threads) / seconds);
  }
  return fastest;
}

/// FLOP a second of the fastest pass; 0 where the processor lacks the instruction.
double peakRate(int threads, double (*run)(int64_t), int passes) {
  double fastest = 0;
  for (int pass = 0; pass < passes; ++pass) {
    std::vector<double> flops(threads * 8);
    double seconds = sideBySide(threads, [&](int i) { flops[i * 8] = run(1 << 20); });
    double total = 0;
    for (double one : flops)
      total += one;
    fastest = std::max(fastest, total / seconds);
  }
  return fastest;
}

} // namespace
} // namespace k2c::bench

int main(int argc, char **argv) {
  using namespace k2c::bench;
  int threads = std::max(1U, std::thread::hardware_concurrency()), passes = 6;
  int64_t megabytes = 256;
  bool peaks = false;
  CLI::App app("Measures how fast this machine reads memory and multiplies");
  app.add_option("--threads", threads, "side by side (default: as many as processors)")->check(CLI::Range(1, 1024));
  app.add_option("--megabytes", megabytes, "read in a pass (default 256; more than the caches hold)")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--passes", passes, "of which the fastest counts (default 6)")->check(CLI::Range(1, 1000));
  app.add_flag("--peaks", peaks, "the loops of multiply-adds, too");
  app.footer("Example: k2c-roofs --threads 2 --peaks");
  CLI11_PARSE(app, argc, argv);
  double read = readRate(threads, megabytes << 20, passes);
  if (read == 0) {
    std::fprintf(stderr, "k2c-roofs: error: cannot allocate %lld MiB; choose less with --megabytes\n",
                 static_cast<long long>(megabytes));
    return 1;
  }
  std::printf("{\"threads\":%d,\"read_bytes_per_s\":%.0f", threads, read);
  if (peaks)
    std::printf(",\"f32_flops_per_s\":%.0f,\"bf16_flops_per_s\":%.0f", peakRate(threads, runF32Peak, passes),
                peakRate(threads, runBf16Peak, passes));
  std::printf("}\n");
}

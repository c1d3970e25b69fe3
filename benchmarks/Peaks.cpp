//===- Peaks.cpp - Multiply-add loops without memory ----------------------===//
#include "Peaks.h"
#include <immintrin.h>

namespace k2c::bench {

namespace {

constexpr int chains = 16;       // more than latency (4 cycles) x 2 a cycle
constexpr int narrowChains = 12; // as many, with x and y in the 16 registers of AVX2

[[gnu::target("avx2,fma"), gnu::noinline]] float narrowF32Loop(int64_t steps) {
  __m256 acc[narrowChains], x = _mm256_set1_ps(1.0f), y = _mm256_set1_ps(0.5f);
  for (__m256 &a : acc)
    a = _mm256_setzero_ps();
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 12
    for (int i = 0; i < narrowChains; ++i)
      acc[i] = _mm256_fmadd_ps(x, y, acc[i]);
    asm volatile("" : "+x"(x), "+x"(y));
  }
  __m256 sum = acc[0];
  for (int i = 1; i < narrowChains; ++i)
    sum = _mm256_add_ps(sum, acc[i]);
  return _mm256_cvtss_f32(sum);
}

[[gnu::target("avx512f"), gnu::noinline]] float f32Loop(int64_t steps) {
  __m512 acc[chains], x = _mm512_set1_ps(1.0f), y = _mm512_set1_ps(0.5f);
  for (__m512 &a : acc)
    a = _mm512_setzero_ps();
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 16
    for (int i = 0; i < chains; ++i)
      acc[i] = _mm512_fmadd_ps(x, y, acc[i]);
    asm volatile("" : "+v"(x), "+v"(y));
  }
  __m512 sum = acc[0];
  for (int i = 1; i < chains; ++i)
    sum = _mm512_add_ps(sum, acc[i]);
  return _mm512_cvtss_f32(sum);
}

[[gnu::target("avx512f,avx512bf16"), gnu::noinline]] float bf16Loop(int64_t steps) {
  __m512 acc[chains];
  __m512i bits = _mm512_set1_epi32(0x3f803f80);
  for (__m512 &a : acc)
    a = _mm512_setzero_ps();
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 16
    for (int i = 0; i < chains; ++i)
      acc[i] = _mm512_dpbf16_ps(acc[i], (__m512bh)bits, (__m512bh)bits);
    asm volatile("" : "+v"(bits));
  }
  __m512 sum = acc[0];
  for (int i = 1; i < chains; ++i)
    sum = _mm512_add_ps(sum, acc[i]);
  return _mm512_cvtss_f32(sum);
}

volatile float sink;

} // namespace

double runF32Peak(int64_t steps) {
  if (!__builtin_cpu_supports("avx512f")) {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
      return 0;
    sink = narrowF32Loop(steps);
    return double(steps) * narrowChains * 8 * 2;
  }
  sink = f32Loop(steps);
  return double(steps) * chains * 16 * 2;
}

double runBf16Peak(int64_t steps) {
  if (!__builtin_cpu_supports("avx512bf16"))
    return 0;
  sink = bf16Loop(steps);
  return double(steps) * chains * 32 * 2;
}

} // namespace k2c::bench

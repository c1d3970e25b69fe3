//===- Peaks.cpp - Multiply-add loops without memory ----------------------===//
#include "Peaks.h"
#include <immintrin.h>

namespace k2c::bench {

namespace {

constexpr int chains = 16; // more than latency (4 cycles) x 2 a cycle

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
  if (!__builtin_cpu_supports("avx512f"))
    return 0;
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

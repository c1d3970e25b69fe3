/* The scalar reading of polynomials.def: exp, log, sigmoid, silu, tanh, sin and cos with the same bits on every
 * machine.
 *
 * polynomials.def states the operations; this file performs them. It needs a compiler that neither contracts nor
 * reassociates (-ffp-contract=off, no -ffast-math): the build sets that for every target. __builtin_fma is one
 * instruction where the target has FMA and libm's correctly rounded function elsewhere: the bits are the same.
 * C11 and C++.
 */
#ifndef K2RT_POLYNOMIALS_H
#define K2RT_POLYNOMIALS_H

#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__)
#error "k2rt/polynomials.h: -ffast-math changes the bits; build without it"
#endif

/* clang-format off */
#define K2RT_F32_CONSTANT(name, value) static const float k2rt_f32_##name = value;
#define K2RT_F64_CONSTANT(name, value) static const double k2rt_f64_##name = value;
#define K2RT_F32_POLYNOMIAL(name, ...) static const float k2rt_f32_##name##_poly[] = {__VA_ARGS__};
#define K2RT_F64_POLYNOMIAL(name, ...) static const double k2rt_f64_##name##_poly[] = {__VA_ARGS__};
#include "k2rt/polynomials.def"
/* clang-format on */

/* horner(P, x) over a K2RT_F32_POLYNOMIAL or K2RT_F64_POLYNOMIAL of `n` coefficients. */
static inline float k2rt_horner_f32(const float *p, int n, float x) {
  float y = p[0];
  for (int i = 1; i < n; ++i)
    y = __builtin_fmaf(y, x, p[i]);
  return y;
}
static inline double k2rt_horner_f64(const double *p, int n, double x) {
  double y = p[0];
  for (int i = 1; i < n; ++i)
    y = __builtin_fma(y, x, p[i]);
  return y;
}
#define K2RT_HORNER_F32(name, x)                                                                                       \
  k2rt_horner_f32(k2rt_f32_##name##_poly, (int)(sizeof k2rt_f32_##name##_poly / sizeof(float)), x)
#define K2RT_HORNER_F64(name, x)                                                                                       \
  k2rt_horner_f64(k2rt_f64_##name##_poly, (int)(sizeof k2rt_f64_##name##_poly / sizeof(double)), x)

static inline int32_t k2rt_bits_f32(float x) {
  int32_t i;
  memcpy(&i, &x, sizeof i);
  return i;
}
static inline float k2rt_float_of_bits(int32_t i) {
  float x;
  memcpy(&x, &i, sizeof x);
  return x;
}
/* 2^n for -126 <= n <= 127. */
static inline float k2rt_power_of_two(int32_t n) { return k2rt_float_of_bits((int32_t)((uint32_t)(n + 127) << 23)); }

/* e^x. Below -87.33654: +0; above 88.72283: +inf; NaN gives NaN. */
static inline float k2rt_expf(float x) {
  float y = x < k2rt_f32_exp_lowest ? k2rt_f32_exp_lowest : x;
  y = y > k2rt_f32_exp_highest ? k2rt_f32_exp_highest : y;
  /* Adding 1.5 * 2^23 leaves no bit below the point: rint, and its integer is in the low bits of the sum. */
  float shifted = y * k2rt_f32_exp_log2e + 0x1.8p+23f;
  float n = shifted - 0x1.8p+23f;
  int32_t k = (int32_t)((uint32_t)k2rt_bits_f32(shifted) << 9) >> 9;
  float r = __builtin_fmaf(n, -k2rt_f32_exp_ln2_high, y);
  r = __builtin_fmaf(n, -k2rt_f32_exp_ln2_low, r);
  float e = K2RT_HORNER_F32(exp, r);
  if (x != x)
    return x;
  e = e * k2rt_power_of_two(k >> 1) * k2rt_power_of_two(k - (k >> 1));
  if (x < k2rt_f32_exp_lowest)
    return 0.0f;
  return x > k2rt_f32_exp_highest ? __builtin_inff() : e;
}

/* 1 / (1 + e^-x). */
static inline float k2rt_sigmoidf(float x) { return 1.0f / (1.0f + k2rt_expf(-x)); }

/* x * sigmoid(x), as x / (1 + e^-x): one division, no subnormal in between. */
static inline float k2rt_siluf(float x) { return x / (1.0f + k2rt_expf(-x)); }

/* Odd and monotone to within its error; +-1 from |x| = 9.02 on. */
static inline float k2rt_tanhf(float x) {
  float a = __builtin_fabsf(x), u = x * x;
  if (a < k2rt_f32_tanh_split)
    return __builtin_fmaf(x * u, K2RT_HORNER_F32(tanh, u), x);
  return __builtin_copysignf(1.0f - 2.0f / (k2rt_expf(a + a) + 1.0f), x);
}

/* Natural logarithm. Below 0: NaN. Zero and subnormal numbers: -inf, with and without DAZ. */
static inline float k2rt_logf(float x) {
  if (x != x || x < 0.0f)
    return __builtin_nanf("");
  if (x < 0x1p-126f)
    return -__builtin_inff();
  if (x == __builtin_inff())
    return x;
  int32_t base = k2rt_bits_f32(k2rt_f32_log_sqrt_half), i = k2rt_bits_f32(x) - base;
  float e = (float)(i >> 23), f = k2rt_float_of_bits((i & 0x7fffff) + base) - 1.0f;
  float q = f * f;
  float t = __builtin_fmaf(f * q, K2RT_HORNER_F32(log, f), e * k2rt_f32_log_ln2_low);
  t = __builtin_fmaf(-0.5f, q, t);
  return __builtin_fmaf(e, k2rt_f32_log_ln2_high, f + t);
}

/* Sine and cosine of x, |x| <= 2^20; NaN outside. */
static inline void k2rt_sincos(double x, double *sine, double *cosine) {
  if (!(__builtin_fabs(x) <= k2rt_f64_sincos_limit)) {
    *sine = *cosine = __builtin_nan("");
    return;
  }
  double shifted = x * k2rt_f64_sincos_two_over_pi + 0x1.8p+52, n = shifted - 0x1.8p+52;
  double r = __builtin_fma(n, -k2rt_f64_sincos_half_pi_high, x);
  r = __builtin_fma(n, -k2rt_f64_sincos_half_pi_mid, r);
  r = __builtin_fma(n, -k2rt_f64_sincos_half_pi_low, r);
  double u = r * r;
  double s = __builtin_fma(r * u, K2RT_HORNER_F64(sin, u), r);
  double c = __builtin_fma(u, __builtin_fma(u, K2RT_HORNER_F64(cos, u), -0.5), 1.0);
  int quadrant = (int)((int64_t)n & 3);
  double a = (quadrant & 1) ? c : s, b = (quadrant & 1) ? s : c;
  *sine = (quadrant & 2) ? -a : a;
  *cosine = (quadrant == 1 || quadrant == 2) ? -b : b;
}
static inline double k2rt_sin(double x) {
  double s, c;
  k2rt_sincos(x, &s, &c);
  return s;
}
static inline double k2rt_cos(double x) {
  double s, c;
  k2rt_sincos(x, &s, &c);
  return c;
}

#endif

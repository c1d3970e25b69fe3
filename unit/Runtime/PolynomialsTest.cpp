// polynomials.h against libm in higher precision: the bounds that polynomials.def states, and the exact edges.
#include "k2rt/polynomials.h"
#include <cfloat>
#include <cmath>
#include <gtest/gtest.h>

namespace {

constexpr float infinity = INFINITY;

/// Distance of `got` from `wanted` in units of the last place of a float (24 bits) or a double (53 bits).
double ulps(long double got, long double wanted, int bits) {
  int exponent;
  frexpl(wanted, &exponent);
  return double(fabsl(got - wanted) / ldexpl(1.0L, exponent - bits));
}

/// Largest error over every 4099th float pattern whose argument lies in [low, high] and whose value is normal.
double worstFloat(float (*mine)(float), double (*reference)(double), float low, float high) {
  double worst = 0;
  for (uint64_t pattern = 0; pattern < (uint64_t(1) << 32); pattern += 4099) {
    float x = k2rt_float_of_bits(int32_t(uint32_t(pattern)));
    if (!(x >= low && x <= high) || (std::fabs(x) < FLT_MIN && x != 0))
      continue;
    double wanted = reference(double(x));
    if (std::fabs(wanted) >= FLT_MIN)
      worst = std::fmax(worst, ulps(mine(x), wanted, 24));
  }
  return worst;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double silu(double x) { return x * sigmoid(x); }

TEST(Polynomials, Exp) { EXPECT_LE(worstFloat(k2rt_expf, std::exp, k2rt_f32_exp_lowest, k2rt_f32_exp_highest), 0.9); }
TEST(Polynomials, Log) { EXPECT_LE(worstFloat(k2rt_logf, std::log, FLT_MIN, FLT_MAX), 0.85); }
TEST(Polynomials, Tanh) { EXPECT_LE(worstFloat(k2rt_tanhf, std::tanh, -FLT_MAX, FLT_MAX), 1.4); }
TEST(Polynomials, Sigmoid) { EXPECT_LE(worstFloat(k2rt_sigmoidf, sigmoid, -87.3f, FLT_MAX), 2.4); }
TEST(Polynomials, Silu) { EXPECT_LE(worstFloat(k2rt_siluf, silu, -88.7f, FLT_MAX), 2.4); }

TEST(Polynomials, SineAndCosine) {
  double worst = 0;
  uint64_t state = 1;
  for (int i = 0; i < 400000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    double unit = double(state >> 11) * 0x1p-52 - 1; // [-1, 1)
    double x = std::ldexp(unit, i % 41 - 20);        // up to 2^20
    double s, c;
    k2rt_sincos(x, &s, &c);
    worst = std::fmax(worst, std::fmax(ulps(s, sinl(x), 53), ulps(c, cosl(x), 53)));
  }
  EXPECT_LE(worst, 1.6);
}

TEST(Polynomials, SineNearMultiplesOfHalfPi) {
  for (int k = 1; k <= 667543; k += 97) {
    double x = k * 1.5707963267948966;
    EXPECT_LE(ulps(k2rt_sin(x), sinl(x), 53), 1.6) << k;
    EXPECT_LE(ulps(k2rt_cos(x), cosl(x), 53), 1.6) << k;
  }
}

TEST(Polynomials, ExpEdges) {
  EXPECT_EQ(k2rt_expf(0.0f), 1.0f);
  EXPECT_EQ(k2rt_expf(-infinity), 0.0f);
  EXPECT_EQ(k2rt_expf(infinity), infinity);
  EXPECT_TRUE(std::isnan(k2rt_expf(NAN)));
  // The smallest argument with a normal result, and the next float below it.
  EXPECT_GE(k2rt_expf(k2rt_f32_exp_lowest), FLT_MIN);
  EXPECT_EQ(k2rt_expf(std::nextafterf(k2rt_f32_exp_lowest, -infinity)), 0.0f);
  EXPECT_TRUE(std::isfinite(k2rt_expf(k2rt_f32_exp_highest)));
  EXPECT_EQ(k2rt_expf(std::nextafterf(k2rt_f32_exp_highest, infinity)), infinity);
}

TEST(Polynomials, LogEdges) {
  EXPECT_EQ(k2rt_logf(1.0f), 0.0f);
  EXPECT_EQ(k2rt_logf(0.0f), -infinity);
  EXPECT_EQ(k2rt_logf(FLT_MIN / 2), -infinity);
  EXPECT_EQ(k2rt_logf(infinity), infinity);
  EXPECT_TRUE(std::isnan(k2rt_logf(-1.0f)));
  EXPECT_TRUE(std::isnan(k2rt_logf(NAN)));
}

TEST(Polynomials, GatesAtTheEnds) {
  EXPECT_EQ(k2rt_sigmoidf(infinity), 1.0f);
  EXPECT_EQ(k2rt_sigmoidf(-infinity), 0.0f);
  EXPECT_EQ(k2rt_siluf(-200.0f), -0.0f);
  EXPECT_EQ(k2rt_siluf(200.0f), 200.0f);
  EXPECT_TRUE(std::isnan(k2rt_siluf(-infinity)));
  EXPECT_EQ(k2rt_tanhf(infinity), 1.0f);
  EXPECT_EQ(k2rt_tanhf(-20.0f), -1.0f);
  EXPECT_EQ(k2rt_tanhf(-0.3f), -k2rt_tanhf(0.3f));
}

TEST(Polynomials, SineOutsideItsRangeIsNaN) {
  EXPECT_TRUE(std::isnan(k2rt_sin(0x1.1p+20)));
  EXPECT_TRUE(std::isnan(k2rt_cos(INFINITY)));
  EXPECT_FALSE(std::isnan(k2rt_cos(0x1p+20)));
}

// A few results by their bits: a change of any of these is a new numerics version.
TEST(Polynomials, Bits) {
  EXPECT_EQ(k2rt_expf(1.0f), 0x1.5bf0a8p+1f);
  EXPECT_EQ(k2rt_expf(-10.25f), 0x1.2899a8p-15f);
  EXPECT_EQ(k2rt_logf(10.0f), 0x1.26bb1cp+1f);
  EXPECT_EQ(k2rt_siluf(1.5f), 0x1.39f2d6p+0f);
  EXPECT_EQ(k2rt_tanhf(0.75f), 0x1.45323ep-1f);
  EXPECT_EQ(k2rt_sin(100000.0), 0x1.24daa9c527e96p-5);
}

} // namespace

//===- PolynomialsTest.cpp - double exp, log and pow against libm ---------===//

#include "k2c/Support/Polynomials.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace k2c;

namespace {

/// Distance in units of the last place of `expected`.
double ulps(double value, double expected) {
  return std::fabs(value - expected) / (std::nextafter(std::fabs(expected), INFINITY) - std::fabs(expected));
}

TEST(Polynomials, LogOverManyBinades) {
  for (double x = 0x1p-60; x < 0x1p60; x *= 1.0137)
    ASSERT_LT(std::fabs(poly::log(x) - std::log(x)), 2.3e-16 * std::max(1.0, std::fabs(std::log(x)))) << x;
}

TEST(Polynomials, ExpOverItsRange) {
  for (double x = -700; x < 700; x += 0.317)
    ASSERT_LT(ulps(poly::exp(x), std::exp(x)), 2) << x;
  EXPECT_EQ(poly::exp(0), 1.0);
}

TEST(Polynomials, PowOfRotaryBases) {
  for (double base : {1e4, 5e4, 5e5, 1e6, 1e7})
    for (double exponent = 0; exponent < 1; exponent += 1.0 / 128)
      ASSERT_LT(ulps(poly::pow(base, exponent), std::pow(base, exponent)), 32) << base << "^" << exponent;
}

} // namespace

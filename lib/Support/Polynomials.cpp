//===- Polynomials.cpp - double exp, log and pow with fixed bits ----------===//
//
// Each operation rounds as written: the build sets -ffp-contract=off.
//
//===----------------------------------------------------------------------===//

#include "k2c/Support/Polynomials.h"

#include <cmath>

using namespace k2c;

namespace {

/// Horner's rule, highest coefficient first.
template <int N> double horner(const double (&coefficients)[N], double x) {
  double sum = coefficients[0];
  for (int i = 1; i < N; ++i)
    sum = std::fma(sum, x, coefficients[i]);
  return sum;
}

// ln 2 as an unevaluated sum; the high part has trailing zeros, so that its
// product with a small integer is exact.
constexpr double ln2High = 0x1.62e42fefa38p-1, ln2Low = 0x1.ef35793c7673p-45;

} // namespace

double poly::log(double x) {
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)); ln m = 2 atanh((m-1)/(m+1)).
  int e;
  double m = std::frexp(x, &e);
  if (m < 0x1.6a09e667f3bcdp-1) {
    m = m + m;
    --e;
  }
  static const double a[] = {2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13,
                             2.0 / 11, 2.0 / 9,  2.0 / 7,  2.0 / 5,  2.0 / 3};
  double s = (m - 1) / (m + 1);
  double square = s * s;
  double cube = square * s;
  double logM = std::fma(cube, horner(a, square), s + s);
  return std::fma(e, ln2High, std::fma(e, ln2Low, logM));
}

double poly::exp(double x) {
  constexpr double log2e = 0x1.71547652b82fep+0;
  static const double c[] = {1.0 / 87178291200.0,
                             1.0 / 6227020800.0,
                             1.0 / 479001600.0,
                             1.0 / 39916800.0,
                             1.0 / 3628800.0,
                             1.0 / 362880.0,
                             1.0 / 40320.0,
                             1.0 / 5040.0,
                             1.0 / 720.0,
                             1.0 / 120.0,
                             1.0 / 24.0,
                             1.0 / 6.0,
                             1.0 / 2.0,
                             1.0,
                             1.0};
  double n = std::nearbyint(x * log2e);
  double r = std::fma(-n, ln2High, x);
  r = std::fma(-n, ln2Low, r);
  return std::ldexp(horner(c, r), static_cast<int>(n));
}

double poly::pow(double base, double exponent) {
  double l = log(base);
  double product = exponent * l;
  double rest = std::fma(exponent, l, -product);
  return std::fma(exp(product), rest, exp(product));
}

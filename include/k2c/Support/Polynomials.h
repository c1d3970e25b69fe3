//===- Polynomials.h - double exp, log and pow with fixed bits ------------===//
//
// For scalars and tables the compiler computes (rotary frequencies). libm's
// results differ by version and CPU; these use only +, *, / and explicit fma on
// doubles, which IEEE 754 fixes, so every machine gets the same bits (numerics
// N7). Taylor polynomials after argument reduction, error below 2e-16 relative
// to max(1, |result|). What programs compute at run time, and sine and cosine,
// are in k2rt/polynomials.def.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_SUPPORT_POLYNOMIALS_H
#define K2C_SUPPORT_POLYNOMIALS_H

namespace k2c::poly {

/// Natural logarithm of a positive normal number.
double log(double x);

/// The exponential e^x for |x| <= 700.
double exp(double x);

/// The power base^exponent for base > 0, as exp(exponent * log(base)): error
/// below 1e-14 relative for |exponent * log(base)| <= 40.
double pow(double base, double exponent);

} // namespace k2c::poly

#endif // K2C_SUPPORT_POLYNOMIALS_H

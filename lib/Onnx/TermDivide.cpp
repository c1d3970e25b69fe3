//===- TermDivide.cpp - divisions of integers in terms ------------------------------===//
//
// A floor is taken apart where its summands are multiples of the divisor or too small to count, which needs to know
// that an index is below its size: (64 h + d) / 64 = h for d below 64. Divisors may be sums of sizes, as where past and
// fresh tokens are one dimension: then summands are multiples as polynomials,
//
//   ((past + sequence) b + j) / (past + sequence) = b   for j below past + sequence
//
//===----------------------------------------------------------------------===//
#include "Term.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace k2c::onnx {

/// Bound of the steps of a division of polynomials; sizes and indices of tensors take a few.
constexpr int maxDivisionSteps = 64;

static double degreeOf(const std::vector<Part> &factors) {
  double degree = 0;
  for (const Part &factor : factors)
    degree += factor.factor;
  return degree;
}

/// Whether a product of these factors stands before another in a polynomial: by degree, then by what has the first
/// factor more often. Products keep this order when both are multiplied by a third, so that divisions end.
static bool isAbove(const std::vector<Part> &a, const std::vector<Part> &b) {
  if (degreeOf(a) != degreeOf(b))
    return degreeOf(a) > degreeOf(b);
  for (size_t i = 0; i < a.size() && i < b.size(); i++) {
    if (a[i].term != b[i].term)
      return a[i].term < b[i].term;
    if (a[i].factor != b[i].factor)
      return a[i].factor > b[i].factor;
  }
  return a.size() > b.size();
}

/// The summand of an integer sum that stands before the others.
Part Terms::leadingSummand(Term sum) const {
  if (kind(sum) != TermKind::Sum)
    return {sum, 1};
  std::vector<Part> all = parts(sum);
  const auto factors = [this](Term term) {
    return kind(term) == TermKind::Product ? parts(term) : std::vector<Part>{{term, 1}};
  };
  return *std::max_element(all.begin(), all.end(),
                           [&](const Part &a, const Part &b) { return isAbove(factors(b.term), factors(a.term)); });
}

/// Takes multiples of the divisor out of `term`, which becomes what is left: term = quotient * divisor + left.
Term Terms::takeMultiples(Term &term, Term divisor) {
  const Part leading = leadingSummand(divisor);
  Term quotient = number(0);
  for (int step = 0; step < maxDivisionSteps; step++) {
    double constant = 0;
    std::vector<Part> flat;
    collect(term, 1, constant, flat);
    std::optional<Term> multiple;
    for (size_t i = 0; i < flat.size() && !multiple; i++) {
      const double factor = flat[i].factor / leading.factor;
      const Term own = product({{flat[i].term, 1}, {leading.term, -1}});
      if (factor == std::floor(factor) && isInteger(own))
        multiple = scale(own, factor);
    }
    if (!multiple)
      break;
    quotient = add(quotient, *multiple);
    term = subtract(term, multiply(*multiple, divisor));
  }
  return quotient;
}

/// The integer that the quotient of an integer and a positive one is for all indices and sizes: 0 or -1; none: unknown.
std::optional<double> Terms::floorByBounds(Term term, Term divisor) {
  if (isNeverNegative(term) && isNeverNegative(plus(subtract(divisor, term), -1)))
    return 0;
  if (isNeverNegative(plus(scale(term, -1), -1)) && isNeverNegative(add(divisor, term)))
    return -1;
  return std::nullopt;
}

Term Terms::floorDivide(Term term, Term divisor) {
  if (divisor == Term(1))
    return term;
  if (isNumber(divisor) && number(divisor) <= 0) // of an axis that has no elements, nothing is asked for
    return number(0);
  if (isNumber(term) && isNumber(divisor))
    return number(std::floor(number(term) / number(divisor)));
  if (kind(term) == TermKind::Floor)
    return floorDivide(part(term, 0), multiply(part(term, 1), divisor));
  if (const std::optional<double> known = floorByBounds(term, divisor))
    return number(*known);
  Term left = term, quotient = number(0);
  if (isNumber(divisor)) {
    double constant = 0;
    std::vector<Part> flat, whole, rest;
    collect(term, 1, constant, flat);
    for (const Part &summand : flat) {
      const double factor = summand.factor / number(divisor);
      if (factor == std::floor(factor))
        whole.push_back({summand.term, factor});
      else
        rest.push_back(summand);
    }
    const double wholeConstant = std::floor(constant / number(divisor));
    left = sum(constant - wholeConstant * number(divisor), rest);
    quotient = sum(wholeConstant, whole);
  } else {
    quotient = takeMultiples(left, divisor);
  }
  if (isNumber(left) && isNumber(divisor))
    return plus(quotient, std::floor(number(left) / number(divisor)));
  if (const std::optional<double> known = floorByBounds(left, divisor))
    return plus(quotient, *known);
  return add(quotient, bareFloor(left, divisor));
}

/// The magnitude of a whole factor; 1 where it is beyond what is exact.
static int64_t wholeOf(double factor) { return std::abs(factor) <= 9007199254740992.0 ? int64_t(std::abs(factor)) : 1; }

/// A floor of what no rule takes apart, with what both have in common taken out.
Term Terms::bareFloor(Term term, Term divisor) {
  int64_t common = 0;
  for (Term side : {term, divisor}) {
    double constant = 0;
    std::vector<Part> flat;
    collect(side, 1, constant, flat);
    for (const Part &summand : flat)
      common = std::gcd(common, wholeOf(summand.factor));
    if (side == divisor)
      common = std::gcd(common, wholeOf(constant));
  }
  if (common > 1) { // of the constant above, what is less than a whole does not count
    double constant = 0;
    std::vector<Part> flat;
    collect(term, 1, constant, flat);
    for (Part &summand : flat)
      summand.factor /= double(common);
    return floorDivide(sum(std::floor(constant / double(common)), flat), scale(divisor, 1 / double(common)));
  }
  return make(TermKind::Floor, 0, 0, {{term, 1}, {divisor, 1}}, true);
}

Term Terms::modulo(Term term, Term divisor) { return subtract(term, multiply(divisor, floorDivide(term, divisor))); }

} // namespace k2c::onnx

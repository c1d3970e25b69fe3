//===- MatchRotary.cpp - rows whose pairs of elements are turned ----------------------===//
//
// Element d of such a row is a sum of two elements of the row before, times a cosine and a sine of the pair's angle at
// the row's position:
//
//   y(a) = x(a) cos - x(b) sin      y(b) = x(b) cos + x(a) sin
//
// for the pairs (a, b) = (j, j + dims / 2) or (2 j, 2 j + 1). The elements are taken apart where conditions on d
// change; whatever order the pieces of y are in, x is found from the indices that are read.
//
//===----------------------------------------------------------------------===//
#include "Match.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace k2c::onnx {

bool Rotation::operator==(const Rotation &o) const {
  return dims == o.dims && pairs == o.pairs && frequencies == o.frequencies && cosines == o.cosines &&
         sines == o.sines && begins == o.begins && steps == o.steps;
}

/// Elements from begin on, size of them: `value` at the variable `at`.
struct Matcher::Piece {
  int64_t begin = 0, step = 1, size = 0;
  Term at{}, value{};
};

/// A factor, an angle's cosine or sine, and the element that it turns.
struct Matcher::TurnedSummand {
  double factor = 1;
  Term rows{};
  std::optional<Function> function; ///< of an angle; none: of a table
  Term angle{};                     ///< per position, or the element of the table
};

/// Where [.. element .. >= 0] changes, from 0 to its size.
static std::set<int64_t> boundaries(Terms &terms, Term value, Term element) {
  std::set<int64_t> out;
  const int64_t size = terms.asInteger(terms.part(element, 0)).value_or(0);
  terms.visit(value, [&](Term inner) {
    if (terms.kind(inner) == TermKind::AtLeastZero && terms.kind(terms.part(inner, 0)) == TermKind::Sum) {
      const Term sum = terms.part(inner, 0);
      const std::vector<Part> parts = terms.parts(sum);
      if (parts.size() == 1 && parts[0].term == element) {
        const double zero = -terms.number(sum) / parts[0].factor;
        const int64_t at = parts[0].factor > 0 ? int64_t(std::ceil(zero)) : int64_t(std::floor(zero)) + 1;
        if (at > 0 && at < size)
          out.insert(at);
      }
    }
  });
  out.insert(0);
  out.insert(size);
  return out;
}

std::vector<Matcher::Piece> Matcher::pieces(Term value, Term element) {
  std::vector<Piece> out;
  const std::set<int64_t> ends = boundaries(terms, value, element);
  for (auto begin = ends.begin(), end = std::next(begin); end != ends.end(); begin++, end++) {
    const int64_t size = *end - *begin;
    const auto add = [&](int64_t first, int64_t step, int64_t count) {
      const Term at = fresh(terms.number(double(count)));
      const Term index = terms.sum(double(first), {{at, double(step)}});
      out.push_back({first, step, count, at, replaced(value, element, index)});
    };
    // Where pairs are neighbours and the parity decides, even and odd elements apart.
    const Term at = fresh(terms.number(double(size)));
    const Term inside = replaced(value, element, terms.plus(at, double(*begin)));
    const Term parity = terms.floorDivide(at, terms.number(2));
    if (size % 2 == 0 && replaced(inside, parity, terms.number(0)) != inside) {
      add(*begin, 2, size / 2);
      add(*begin + 1, 2, size / 2);
    } else {
      add(*begin, 1, size);
    }
  }
  return out;
}

std::optional<Matcher::TurnedSummand> Matcher::turnedSummand(const Part &summand, Term position, Term pair) {
  TurnedSummand out;
  out.factor = summand.factor;
  std::vector<Part> rest;
  bool isFound = false;
  for (const Part &factor : factors(summand.term)) {
    const bool isCall = terms.kind(factor.term) == TermKind::Call &&
                        (terms.function(factor.term) == Function::Cos || terms.function(factor.term) == Function::Sin);
    const bool isTable = isElement(factor.term, "constant") && terms.partCount(factor.term) == 2 &&
                         terms.part(factor.term, 0) == position && mentions(factor.term, pair);
    if (factor.factor != 1 || isFound || !(isCall || isTable)) {
      rest.push_back(factor);
      continue;
    }
    isFound = true;
    if (isTable) {
      out.angle = factor.term;
      continue;
    }
    out.function = terms.function(factor.term);
    const auto [scale, angle] = terms.splitFactor(terms.part(factor.term, 0));
    std::vector<Part> frequency = factors(angle);
    const auto found = std::find(frequency.begin(), frequency.end(), Part{position, 1});
    if (found == frequency.end())
      return std::nullopt;
    frequency.erase(found);
    out.angle = product(frequency, scale);
  }
  out.rows = product(rest);
  return isFound ? std::optional(out) : std::nullopt;
}

/// The two pieces of turned elements, as rows before.
Expected<TurnedRows> Matcher::turnedPair(const std::vector<Piece> &found, Term value, Term element, Term position) {
  const Error wrong = mismatch(value, "pairs that are turned by angles of their position");
  std::vector<std::vector<TurnedSummand>> both;
  const Term pair = found[0].at;
  for (const Piece &piece : found) {
    double constant = 0;
    both.emplace_back();
    for (const Part &summand : summands(replaced(piece.value, piece.at, pair), constant))
      if (const std::optional<TurnedSummand> one = turnedSummand(summand, position, pair))
        both.back().push_back(*one);
    if (both.back().size() != 2 || constant != 0 || piece.size != found[0].size)
      return wrong;
  }
  // The second element of a pair has summands of one sign.
  const auto isSecond = [](const std::vector<TurnedSummand> &of) { return of[0].factor * of[1].factor > 0; };
  if (isSecond(both[0]) == isSecond(both[1]))
    return wrong;
  const size_t firstAt = isSecond(both[0]), secondAt = 1 - firstAt;
  std::vector<TurnedSummand> first = both[firstAt], second = both[secondAt];
  const double sign = second[0].factor > 0 ? 1 : -1;
  if (first[0].factor * sign < 0)
    std::swap(first[0], first[1]); // cosine, then sine
  if (second[0].angle != first[0].angle || second[0].function != first[0].function)
    std::swap(second[0], second[1]);
  TurnedRows out;
  out.rotation.emplace();
  out.rotation->begins = {found[firstAt].begin, found[secondAt].begin};
  out.rotation->steps = {found[firstAt].step, found[secondAt].step};
  out.factor = first[0].factor;
  const bool areCalls = first[0].function == Function::Cos && first[1].function == Function::Sin;
  const bool areTables = !first[0].function && !first[1].function;
  bool isRight = (areCalls || areTables) && second[1].angle == first[1].angle &&
                 second[1].function == first[1].function && second[0].function == first[0].function &&
                 (areTables || first[0].angle == first[1].angle);
  for (double factor : {first[1].factor * -1, second[0].factor, second[1].factor})
    isRight = isRight && std::abs(factor - out.factor) <= 1e-6 * std::abs(out.factor);
  if (!isRight)
    return wrong;
  const double half = double(found[0].size);
  const auto at = [&](double scale, double offset) { return terms.sum(offset, {{pair, scale}}); };
  for (RopePairs pairs : {RopePairs::Half, RopePairs::Interleaved}) {
    const bool isHalf = pairs == RopePairs::Half;
    const Term a = isHalf ? pair : at(2, 0), b = isHalf ? at(1, half) : at(2, 1);
    const Term rows = replaced(first[0].rows, pair, isHalf ? element : terms.scale(element, 0.5));
    if (replaced(rows, element, a) == first[0].rows && replaced(rows, element, b) == first[1].rows &&
        second[0].rows == first[1].rows && second[1].rows == first[0].rows) {
      out.rows = rows;
      out.rotation->pairs = pairs;
      out.rotation->dims = 2 * found[0].size;
      break;
    }
  }
  if (out.rotation->dims == 0)
    return wrong;
  if (!readAngles(first[0], first[1], pair, position, *out.rotation))
    return wrong;
  return out;
}

/// Frequencies or tables of the angles of pairs. False: they are neither.
bool Matcher::readAngles(const TurnedSummand &cosine, const TurnedSummand &sine, Term pair, Term position,
                         Rotation &out) {
  if (!cosine.function) {
    const Term row = terms.variable(keyAt, fold.past);
    const auto table = [&](Term of) { return view(replaced(of, position, row), {row, pair}); };
    const std::optional<View> cosines = table(cosine.angle), sines = table(sine.angle);
    if (!cosines || !sines)
      return false;
    out.cosines = *cosines;
    out.sines = *sines;
    return true;
  }
  for (int64_t i = 0; i < out.dims / 2; i++) {
    const Term frequency = replaced(cosine.angle, pair, terms.number(double(i)));
    if (!terms.isNumber(frequency))
      return false;
    out.frequencies.push_back(float(terms.number(frequency)));
  }
  return true;
}

Expected<TurnedRows> Matcher::turned(Term value, Term element, Term position) {
  const std::vector<Piece> all = pieces(value, element);
  TurnedRows out;
  std::vector<Piece> pair, behind;
  for (const Piece &piece : all) {
    double constant = 0;
    bool isTurned = false;
    for (const Part &summand : summands(piece.value, constant))
      isTurned = isTurned || turnedSummand(summand, position, piece.at);
    if (isTurned)
      pair.push_back(piece);
    else if (pair.empty() && !out.before && piece.step == 1) {
      const auto [factor, rows] = terms.splitFactor(piece.value);
      out.before = replaced(rows, piece.at, element);
      out.beforeFactor = factor;
      out.beforeSize = piece.size;
    } else {
      behind.push_back(piece);
    }
  }
  if (pair.empty()) {
    const auto [factor, rows] = terms.splitFactor(value);
    out.rows = rows;
    out.factor = factor;
    out.before.reset();
    out.beforeSize = 0;
    return out;
  }
  if (pair.size() != 2)
    return mismatch(value, "two elements of each pair that is turned");
  Expected<TurnedRows> turnedPart = turnedPair(pair, value, element, position);
  if (!turnedPart)
    return turnedPart;
  // What follows the turned part goes on with the same rows, all of it times one factor.
  for (const Piece &piece : behind) {
    const Term rows = replaced(turnedPart->rows, element, terms.plus(piece.at, double(piece.begin)));
    const auto [factor, bare] = terms.splitFactor(piece.value);
    const double known = turnedPart->behindFactor.value_or(factor);
    if (piece.step != 1 || bare != rows || std::abs(factor / known - 1) > 1e-6)
      return mismatch(value, "rows that go on behind their turned part");
    turnedPart->behindFactor = factor;
  }
  turnedPart->before = out.before;
  turnedPart->beforeFactor = out.beforeFactor;
  turnedPart->beforeSize = out.beforeSize;
  return turnedPart;
}

} // namespace k2c::onnx

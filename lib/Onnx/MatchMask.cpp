//===- MatchMask.cpp - which rows a row sees -----------------------------------------===//
//
// What is added to the score of row s and key j may depend on how far the key is behind the row alone, t = past + s -
// j. Its conditions change at a few t: between them it is constant, so that a value on each side of each decides it for
// all lengths. Causal is 0 for t >= 0 and very negative below; a window of W is 0 for 0 <= t < W.
//
//===----------------------------------------------------------------------===//
#include "Match.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace k2c::onnx {

/// What is below this adds nothing to a softmax.
constexpr double excluded = -1e4;

Expected<int64_t> Matcher::window(Term mask, Term row, Term key) {
  // Conditions as [slope * t + offset >= 0] or [.. = 0].
  std::map<Term, std::pair<double, double>> conditions;
  bool isUnderstood = true;
  terms.rewrite(mask, [&](Term inner) -> std::optional<Term> {
    const TermKind kind = terms.kind(inner);
    if (kind == TermKind::AtLeastZero || kind == TermKind::EqualsZero) {
      double constant = 0, slope = 0;
      Term rest = terms.part(inner, 0);
      for (const Part &summand : summands(rest, constant))
        slope += summand.term == row ? summand.factor : 0;
      rest = terms.subtract(rest, terms.scale(terms.subtract(terms.add(fold.past, row), key), slope));
      isUnderstood = isUnderstood && slope != 0 && terms.isNumber(rest);
      if (isUnderstood)
        conditions[inner] = {slope, terms.number(rest)};
      return inner;
    }
    return std::nullopt;
  });
  std::set<double> distances{-1, 0, 1, 1e12, -1e12};
  for (const auto &[condition, line] : conditions)
    for (double around : {-1.0, 0.0, 1.0})
      distances.insert(std::floor(-line.second / line.first) + around);
  int64_t window = 0;
  for (double distance : distances) {
    const Term value = terms.rewrite(mask, [&](Term inner) -> std::optional<Term> {
      const auto found = conditions.find(inner);
      if (found == conditions.end())
        return std::nullopt;
      const double at = found->second.first * distance + found->second.second;
      return terms.number(terms.kind(inner) == TermKind::AtLeastZero ? at >= 0 : at == 0);
    });
    if (!isUnderstood || !terms.isNumber(value))
      return mismatch(mask, "a mask of how far a key is behind its row");
    const bool isSeen = terms.number(value) == 0;
    if (!isSeen && !(terms.number(value) < excluded))
      return mismatch(mask, "a mask of 0 and very negative numbers");
    if (isSeen && distance < 0)
      return mismatch(mask, "a causal mask");
    if (!isSeen && distance >= 0 && window == 0)
      window = int64_t(distance); // distances ascend
    if ((!isSeen && distance == 0) || (isSeen && window != 0))
      return mismatch(mask, "a causal mask, or one with a window");
  }
  return window;
}

} // namespace k2c::onnx

//===- TermLogic.cpp - bounds, conditions and replacement in terms -----------------===//
//
// A comparison becomes a number where bounds of its variables decide it.
//
//===----------------------------------------------------------------------===//
#include "Term.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_set>

namespace k2c::onnx {

/// Bound of how deep the search for bounds goes.
constexpr int maxDepth = 8;

/// A number that the integer term is never below, if one is found.
std::optional<double> Terms::minOf(Term term, int depth) {
  if (depth > maxDepth || isExhausted())
    return std::nullopt;
  steps++;
  switch (kind(term)) {
  case TermKind::Number:
    return number(term);
  case TermKind::Variable:
  case TermKind::AtLeastZero:
  case TermKind::EqualsZero:
  case TermKind::Negative:
  case TermKind::And:
  case TermKind::Or:
    return 0;
  case TermKind::Size:
    return double(minSizes[size_t(tag(term))]);
  case TermKind::Floor: {
    const std::optional<double> min = minOf(part(term, 0), depth + 1);
    return min && *min >= 0 ? std::optional<double>(0) : std::nullopt;
  }
  case TermKind::Product: {
    double min = 1;
    for (const Part &factor : parts(term)) {
      const std::optional<double> own = minOf(factor.term, depth + 1);
      if (!own || *own < 0 || factor.factor < 0)
        return std::nullopt;
      min *= std::pow(*own, factor.factor);
    }
    return min;
  }
  case TermKind::Select: {
    const std::optional<double> yes = minOf(part(term, 1), depth + 1), no = minOf(part(term, 2), depth + 1);
    return yes && no ? std::optional<double>(std::min(*yes, *no)) : std::nullopt;
  }
  case TermKind::Element:
    return definition(leaf(term)).min ? std::optional<double>(double(*definition(leaf(term)).min)) : std::nullopt;
  case TermKind::Sum: {
    bool changed = false;
    if (const Term bounded = withHighestSubtracted(term, depth + 1, changed); changed)
      return minOf(bounded, depth + 1);
    double min = number(term);
    for (const Part &summand : parts(term)) {
      const std::optional<double> own = minOf(summand.term, depth + 1);
      if (!own || summand.factor < 0)
        return std::nullopt;
      min += summand.factor * *own;
    }
    return min;
  }
  default:
    return std::nullopt;
  }
}

/// What an element of a leaf is never above.
std::optional<Term> Terms::maxOfElement(Term element) {
  const LeafDefinition &of = definition(leaf(element));
  if (of.op == "topk-indices")
    return number(double(of.numbers[1] - 1));
  if (of.op == "nonzero" && asInteger(part(element, 0)))
    return plus(of.bodies[size_t(*asInteger(part(element, 0))) + 1], -1);
  return std::nullopt;
}

/// A term without variables, or with fewer, that the integer term is never above, if one is found.
std::optional<Term> Terms::maxOf(Term term, int depth) {
  if (depth > maxDepth || isExhausted())
    return std::nullopt;
  steps++;
  switch (kind(term)) {
  case TermKind::Number:
  case TermKind::Size:
    return term;
  case TermKind::Variable:
    return plus(part(term, 0), -1);
  case TermKind::AtLeastZero:
  case TermKind::EqualsZero:
  case TermKind::Negative:
  case TermKind::And:
  case TermKind::Or:
    return number(1);
  case TermKind::Element:
    return maxOfElement(term);
  case TermKind::Floor: {
    const std::optional<Term> max = variables(part(term, 1)) == 0 ? maxOf(part(term, 0), depth + 1) : std::nullopt;
    return max ? std::optional(floorDivide(*max, part(term, 1))) : std::nullopt;
  }
  case TermKind::Sum: {
    std::vector<Part> out;
    for (const Part &summand : parts(term)) {
      const std::optional<Term> max = summand.factor > 0 ? maxOf(summand.term, depth + 1) : std::nullopt;
      const std::optional<double> min = summand.factor < 0 ? minOf(summand.term, depth + 1) : std::nullopt;
      if (!max && !min)
        return std::nullopt;
      out.push_back({max ? *max : number(*min), summand.factor});
    }
    return sum(number(term), out);
  }
  case TermKind::Product: {
    Term out = number(1);
    for (const Part &factor : parts(term)) {
      const std::optional<double> min = factor.factor > 0 ? minOf(factor.term, depth + 1) : std::nullopt;
      const std::optional<Term> max = min && *min >= 0 ? maxOf(factor.term, depth + 1) : std::nullopt;
      if (!max)
        return std::nullopt;
      out = multiply(out, power(*max, factor.factor));
    }
    return out;
  }
  default:
    return std::nullopt;
  }
}

/// A sum that is never above `sum`: what is subtracted is at its highest.
Term Terms::withHighestSubtracted(Term sum, int depth, bool &changed) {
  std::vector<Part> out;
  for (const Part &summand : parts(sum)) {
    const std::optional<Term> max = summand.factor < 0 ? maxOf(summand.term, depth) : std::nullopt;
    changed = changed || (max && *max != summand.term);
    out.push_back({max.value_or(summand.term), summand.factor});
  }
  return changed ? this->sum(number(sum), out) : sum;
}

Term Terms::atLeastZero(Term integer) {
  if (isNumber(integer))
    return number(number(integer) >= 0);
  if (isNeverNegative(integer))
    return number(1);
  if (isNeverNegative(plus(scale(integer, -1), -1)))
    return number(0);
  // Of 0 and 1: x >= 1 is x, and -x >= 0 its negation.
  double constant = 0;
  std::vector<Part> flat;
  collect(integer, 1, constant, flat);
  double divisor = 0;
  for (const Part &summand : flat)
    divisor = double(std::gcd(int64_t(divisor), int64_t(std::abs(summand.factor))));
  if (divisor > 1) {
    for (Part &summand : flat)
      summand.factor /= divisor;
    integer = sum(std::floor(constant / divisor), flat);
  }
  return make(TermKind::AtLeastZero, 0, 0, {{integer, 1}}, true);
}

/// Whether a term is 1 or 0 by what it is.
bool Terms::isCondition(Term term) const {
  const TermKind of = kind(term);
  return of == TermKind::AtLeastZero || of == TermKind::EqualsZero || of == TermKind::Negative || of == TermKind::And ||
         of == TermKind::Or;
}

Term Terms::equalsZero(Term term) {
  if (isNumber(term))
    return number(number(term) == 0);
  if (kind(term) == TermKind::EqualsZero && isCondition(part(term, 0)))
    return part(term, 0);
  if (kind(term) == TermKind::AtLeastZero) // not x >= 0 is -x - 1 >= 0
    return atLeastZero(plus(scale(part(term, 0), -1), -1));
  if (kind(term) == TermKind::Select && isNumber(part(term, 1)) && isNumber(part(term, 2))) {
    const bool yes = number(part(term, 1)) != 0, no = number(part(term, 2)) != 0;
    return yes == no ? number(!yes) : yes ? negate(part(term, 0)) : negate(negate(part(term, 0)));
  }
  if (isInteger(term) && (isNeverNegative(plus(term, -1)) || isNeverNegative(plus(scale(term, -1), -1))))
    return number(0);
  const Term bare = splitFactor(term).second;
  return make(TermKind::EqualsZero, 0, 0, {{bare, 1}}, true);
}

Term Terms::negate(Term condition) {
  const TermKind of = kind(condition);
  if (of == TermKind::And || of == TermKind::Or) {
    Term result = number(of == TermKind::And ? 0 : 1);
    for (const Part &part : parts(condition))
      result = logical(of == TermKind::And ? TermKind::Or : TermKind::And, result, negate(part.term));
    return result;
  }
  return equalsZero(condition);
}

Term Terms::negative(Term real) {
  if (isNumber(real))
    return number(number(real) < 0);
  if (isInteger(real))
    return atLeastZero(plus(scale(real, -1), -1));
  return make(TermKind::Negative, 0, 0, {{real, 1}}, true);
}

Term Terms::logical(TermKind of, Term a, Term b) {
  const bool isAnd = of == TermKind::And;
  std::vector<Part> flat;
  for (Term side : {a, b}) {
    if (isNumber(side)) {
      if ((number(side) != 0) != isAnd)
        return number(isAnd ? 0 : 1);
    } else if (kind(side) == of) {
      const std::vector<Part> own = parts(side);
      flat.insert(flat.end(), own.begin(), own.end());
    } else {
      flat.push_back({side, 1});
    }
  }
  std::sort(flat.begin(), flat.end(), [](const Part &x, const Part &y) { return x.term < y.term; });
  flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
  if (flat.empty())
    return number(isAnd ? 1 : 0);
  return flat.size() == 1 ? flat[0].term : make(of, 0, 0, flat, true);
}

/// The variable that is 0 where the condition x - 1 >= 0 does not hold.
std::optional<Term> Terms::indexThatIsZero(Term condition) const {
  if (kind(condition) != TermKind::AtLeastZero)
    return std::nullopt;
  const Term of = part(condition, 0);
  if (kind(of) != TermKind::Sum || number(of) != -1 || partCount(of) != 1)
    return std::nullopt;
  const Part only = parts(of)[0];
  return only.factor == 1 && kind(only.term) == TermKind::Variable ? std::optional<Term>(only.term) : std::nullopt;
}

/// A branch of a choice where the integer `assumed` is known not to be negative: choices that this settles are taken.
Term Terms::branchWhere(Term assumed, Term branch) {
  while (kind(branch) == TermKind::Select && kind(part(branch, 0)) == TermKind::AtLeastZero) {
    const Term tested = part(part(branch, 0), 0);
    if (isNeverNegative(subtract(tested, assumed)))
      branch = part(branch, 1);
    else if (isNeverNegative(plus(scale(add(tested, assumed), -1), -1)))
      branch = part(branch, 2);
    else
      break;
  }
  return branch;
}

/// Whether a condition is written the other way round, its branches exchanged: so that each choice has one form.
bool Terms::isTurned(Term condition) const {
  if (kind(condition) == TermKind::EqualsZero || kind(condition) == TermKind::Or)
    return true;
  if (kind(condition) != TermKind::AtLeastZero)
    return false;
  const Term of = part(condition, 0);
  return kind(of) == TermKind::Sum && storage[node(of).begin].factor < 0;
}

Term Terms::select(Term condition, Term yes, Term no) {
  if (const Term isFalse = equalsZero(condition); isNumber(isFalse))
    return number(isFalse) != 0 ? no : yes;
  if (yes == no)
    return yes;
  if (isTurned(condition))
    return select(kind(condition) == TermKind::EqualsZero ? part(condition, 0) : negate(condition), no, yes);
  // Of two branches with the same condition inside, one is taken.
  if (kind(yes) == TermKind::Select && part(yes, 0) == condition)
    yes = part(yes, 1);
  if (kind(no) == TermKind::Select && part(no, 0) == condition)
    no = part(no, 2);
  if (kind(condition) == TermKind::AtLeastZero) {
    yes = branchWhere(part(condition, 0), yes);
    no = branchWhere(plus(scale(part(condition, 0), -1), -1), no);
  }
  if (yes == no)
    return yes;
  // Where an index is 0 in one branch, the other may say the same of 0.
  if (const std::optional<Term> index = indexThatIsZero(condition))
    if (rewrite(yes, [&](Term inner) { return inner == *index ? std::optional<Term>(number(0)) : std::nullopt; }) == no)
      return yes;
  return make(TermKind::Select, 0, 0, {{condition, 1}, {yes, 1}, {no, 1}}, isInteger(yes) && isInteger(no));
}

/// The term with other parts.
Term Terms::rebuild(Term term, std::vector<Part> &parts) {
  const Node from = node(term);
  switch (from.kind) {
  case TermKind::Element:
    return elementOf(Leaf(from.tag), parts);
  case TermKind::Sum:
    return sum(from.number, std::move(parts));
  case TermKind::Product: {
    Term result = Term(1);
    for (const Part &part : parts)
      result = multiply(result, power(part.term, part.factor));
    return result;
  }
  case TermKind::Floor:
    return floorDivide(parts[0].term, parts[1].term);
  case TermKind::Select:
    return select(parts[0].term, parts[1].term, parts[2].term);
  case TermKind::AtLeastZero:
    return atLeastZero(parts[0].term);
  case TermKind::EqualsZero:
    return equalsZero(parts[0].term);
  case TermKind::Negative:
    return negative(parts[0].term);
  case TermKind::And:
  case TermKind::Or: {
    Term result = number(from.kind == TermKind::And ? 1 : 0);
    for (const Part &part : parts)
      result = logical(from.kind, result, part.term);
    return result;
  }
  default: {
    std::vector<Term> arguments;
    for (const Part &part : parts)
      arguments.push_back(part.term);
    return call(Function(from.tag), arguments);
  }
  }
}

Term Terms::rewrite(Term term, const std::function<std::optional<Term>(Term)> &replace) {
  return rewritten(term, replace, ++rewrites);
}

/// Results are remembered under the number of their rewrite; one inside of another forgets some of those outside.
Term Terms::rewritten(Term term, const std::function<std::optional<Term>(Term)> &replace, uint64_t rewrite) {
  if (size_t(term) < remembered.size() && remembered[size_t(term)].rewrite == rewrite)
    return remembered[size_t(term)].result;
  steps += 1 + partCount(term);
  Term result = term;
  if (const std::optional<Term> replaced = isExhausted() ? term : replace(term)) {
    result = *replaced;
  } else if (const TermKind of = kind(term);
             of != TermKind::Number && of != TermKind::Size && of != TermKind::Variable) {
    std::vector<Part> changed; // none: most terms stay what they are
    for (size_t i = 0; i < partCount(term); i++) {
      const Term before = part(term, i), now = rewritten(before, replace, rewrite);
      if (now != before && changed.empty())
        changed = parts(term);
      if (now != before)
        changed[i].term = now;
    }
    result = changed.empty() ? term : rebuild(term, changed);
  }
  if (remembered.size() <= size_t(term))
    remembered.resize(nodes.size() + nodes.size() / 2);
  remembered[size_t(term)] = {rewrite, result};
  return result;
}

void Terms::visit(Term term, const std::function<void(Term)> &see) {
  rewrite(term, [&](Term inner) -> std::optional<Term> {
    see(inner);
    return std::nullopt;
  });
}

std::vector<Term> Terms::variablesOf(const std::vector<Term> &in) const {
  std::vector<Term> out, open = in;
  std::unordered_set<int32_t> seen;
  while (!open.empty()) {
    const Term term = open.back();
    open.pop_back();
    if (variables(term) == 0 || !seen.insert(int32_t(term)).second)
      continue;
    if (kind(term) == TermKind::Variable)
      out.push_back(term);
    else
      for (size_t i = 0; i < partCount(term); i++)
        open.push_back(part(term, i));
  }
  std::sort(out.begin(), out.end(), [this](Term a, Term b) { return tag(a) < tag(b); });
  return out;
}

Term Terms::substitute(Term term, const std::vector<Term> &byPosition) {
  return rewrite(term, [&](Term inner) -> std::optional<Term> {
    if (variables(inner) == 0)
      return inner;
    if (kind(inner) == TermKind::Variable && size_t(tag(inner)) < byPosition.size())
      return byPosition[size_t(tag(inner))];
    return std::nullopt;
  });
}

} // namespace k2c::onnx

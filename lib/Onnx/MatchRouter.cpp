//===- MatchRouter.cpp - by what experts are chosen -------------------------------------===//
//
// Experts are chosen by their scores, perhaps with a bias that only the choice sees (DeepSeek V3, section 2.1.2), and
// perhaps among the experts of the best groups alone:
//
//   choice(e) = group(e) is among the best ? score(e) + bias(e) : very low
//
// where a group's score is the sum of its two best choices, or its best one.
//
//===----------------------------------------------------------------------===//
#include "Match.h"

#include <cmath>
#include <utility>

namespace k2c::onnx {

/// What a "topk-indices" leaf chose from, at the index `at` in place of the one that was chosen.
Term Matcher::chosenFrom(Term chosen, Term at) {
  return opened(withIndex(chosen, size_t(terms.definition(terms.leaf(chosen)).numbers[0]), at));
}

/// Whether no expert's choice is below 0: scores are not, but a bias may be.
bool Matcher::isNeverBelowZero(const RouterLayer &router) const {
  if (!router.bias)
    return true;
  const auto constant = fold.graph.constants.find(router.bias->constant);
  if (constant == fold.graph.constants.end() || router.bias->quantised)
    return false;
  for (int64_t i = 0; i < router.bias->shape[0]; i++) {
    const std::vector<double> bias =
        fold.elementsOf(constant->second, router.bias->offset + i * router.bias->strides[0], 1);
    if (bias.empty() || !(bias[0] >= 0))
      return false;
  }
  return true;
}

/// The two sides of a choice of which one is a number.
Matcher::Masked Matcher::withoutMask(Term term) {
  for (size_t outside : {size_t(2), size_t(1)})
    if (terms.kind(term) == TermKind::Select && terms.isNumber(terms.part(term, outside)))
      return {terms.part(term, 0), terms.number(terms.part(term, outside)), terms.part(term, 3 - outside),
              outside == 1};
  return {std::nullopt, 0, term, false};
}

/// What a "topk-indices" leaf chose from, taken apart, at the index `expert`.
Matcher::Choice Matcher::choiceOf(Term chosen, Term expert) {
  Choice out;
  out.masked = withoutMask(unshared(chosenFrom(chosen, expert)));
  out.biased = out.masked.inside;
  double constant = 0;
  std::vector<Part> rest;
  for (const Part &part : summands(out.biased, constant)) {
    if (const std::optional<View> bias = view(part.term, {expert}); bias && part.factor == 1 && !out.bias)
      out.bias = bias;
    else
      rest.push_back(part);
  }
  out.scores = terms.sum(constant, rest);
  return out;
}

Status Matcher::readChoice(Term chosen, Term scores, Term expert, RouterLayer &out) {
  if (terms.definition(terms.leaf(chosen)).numbers[3] != 1)
    return mismatch(chosen, "the experts of the largest scores");
  const Choice found = choiceOf(chosen, expert);
  const Term choice = found.biased;
  out.bias = found.bias;
  out.spec.correctionBias = out.bias.has_value();
  if (found.scores != unshared(scores))
    return mismatch(choice, "a choice by the scores of experts");
  if (!found.masked.condition)
    return Status::success();
  const double outside = found.masked.outside;
  if (outside == 0 && !isNeverBelowZero(out))
    return mismatch(choice, "biases of at least 0, where 0 stands for experts outside of the best groups");
  if (!(outside < -1e4) && outside != 0)
    return mismatch(choice, "a choice that experts outside of the best groups cannot be");
  return readGroups(found.masked, choice, expert, out);
}

/// The groups chosen, of a mask of experts: their number is floor(expert / width).
std::optional<Matcher::Groups> Matcher::groupsOf(const Masked &masked, Term expert, int64_t experts) {
  const Term mask = *masked.condition;
  const auto widthOf = [&](Term group) {
    const bool isGroup = terms.kind(group) == TermKind::Floor && terms.part(group, 0) == expert;
    const std::optional<int64_t> width = isGroup ? terms.asInteger(terms.part(group, 1)) : std::nullopt;
    return width && experts % *width == 0 ? width : std::nullopt;
  };
  // Of one group, not 0 where an expert is of another: chosen - floor(expert / width).
  if (masked.isOutside) {
    double constant = 0;
    std::vector<Part> both = summands(mask, constant);
    if (both.size() == 2 && !isElement(both[0].term, "topk-indices"))
      std::swap(both[0], both[1]);
    const bool isDifference = both.size() == 2 && constant == 0 && std::abs(both[0].factor) == 1 &&
                              both[0].factor == -both[1].factor && isElement(both[0].term, "topk-indices");
    const std::optional<int64_t> width = isDifference ? widthOf(both[1].term) : std::nullopt;
    return width ? std::optional(Groups{both[0].term, Term(0), *width}) : std::nullopt;
  }
  if (!isElement(mask, "scatter-elements"))
    return std::nullopt;
  // Of several, a mask that is 1 where the group is one of those chosen.
  const LeafDefinition scatter = terms.definition(terms.leaf(mask));
  const size_t last = terms.partCount(mask) - 1;
  const std::optional<int64_t> width = widthOf(terms.part(mask, last));
  if (!width || scatter.bodies[0] != Term(0) || scatter.bodies[2] != Term(1))
    return std::nullopt;
  const Term count = terms.number(double(experts / *width)), own = fresh(count), slot = fresh(count);
  const Term condition = opened(withIndex(mask, last, own), slot, /*body=*/1);
  std::optional<Term> best;
  terms.visit(condition, [&](Term inner) {
    if (isElement(inner, "topk-indices"))
      best = inner;
  });
  const bool isOfBest = best && condition == terms.equalsZero(terms.subtract(own, *best));
  return isOfBest ? std::optional(Groups{*best, slot, *width}) : std::nullopt;
}

Status Matcher::readGroups(const Masked &masked, Term choice, Term expert, RouterLayer &out) {
  const Error wrong = mismatch(*masked.condition, "experts of the best groups");
  const std::optional<Groups> found = groupsOf(masked, expert, out.spec.experts);
  if (!found)
    return wrong;
  const auto [best, slot, width] = *found;
  out.spec.groups = out.spec.experts / width;
  const std::vector<int64_t> numbers = terms.definition(terms.leaf(best)).numbers;
  if (numbers[1] != out.spec.groups || numbers[3] != 1 || terms.part(best, size_t(numbers[0])) != slot ||
      (slot == Term(0) && numbers[2] != 1))
    return wrong;
  out.spec.topGroups = numbers[2];
  // A group's score.
  const Term own = fresh(terms.number(double(out.spec.groups))), inside = fresh(terms.number(double(width)));
  const Term score = chosenFrom(best, own);
  const auto choiceOf = [&, width = width](Term index) {
    return replaced(choice, expert, terms.sum(0, {{own, double(width)}, {index, 1}}));
  };
  if (isElement(score, "max") && unshared(opened(score, inside)) == choiceOf(inside)) {
    out.spec.groupScore = GroupScore::Max;
    return Status::success();
  }
  if (!isElement(score, "sum"))
    return wrong;
  const Term place = fresh(terms.number(2));
  std::optional<Term> member;
  const Term summed = unshared(opened(score, place));
  terms.visit(summed, [&](Term inner) {
    if (isElement(inner, "topk-indices") && mentions(inner, place))
      member = inner;
  });
  if (!member || summed != choiceOf(*member) || unshared(chosenFrom(*member, inside)) != choiceOf(inside))
    return wrong;
  const std::vector<int64_t> two = terms.definition(terms.leaf(*member)).numbers;
  if (two[1] != width || two[2] != 2 || two[3] != 1)
    return wrong;
  out.spec.groupScore = GroupScore::Top2Sum;
  return Status::success();
}

} // namespace k2c::onnx

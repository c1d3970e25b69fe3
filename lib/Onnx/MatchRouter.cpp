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

Status Matcher::readChoice(Term chosen, Term scores, Term expert, RouterLayer &out) {
  if (terms.definition(terms.leaf(chosen)).numbers[3] != 1)
    return mismatch(chosen, "the experts of the largest scores");
  Term choice = unshared(chosenFrom(chosen, expert));
  std::optional<Term> mask;
  double outside = 0;
  if (terms.kind(choice) == TermKind::Select && terms.isNumber(terms.part(choice, 2))) {
    mask = terms.part(choice, 0);
    outside = terms.number(terms.part(choice, 2));
    choice = terms.part(choice, 1);
  }
  double constant = 0;
  std::vector<Part> rest;
  for (const Part &part : summands(choice, constant)) {
    if (const std::optional<View> bias = view(part.term, {expert}); bias && part.factor == 1 && !out.bias)
      out.bias = bias;
    else
      rest.push_back(part);
  }
  out.spec.correctionBias = out.bias.has_value();
  if (terms.sum(constant, rest) != unshared(scores))
    return mismatch(choice, "a choice by the scores of experts");
  if (!mask)
    return Status::success();
  if (outside == 0 && !isNeverBelowZero(out))
    return mismatch(choice, "biases of at least 0, where 0 stands for experts outside of the best groups");
  if (!(outside < -1e4) && outside != 0)
    return mismatch(choice, "a choice that experts outside of the best groups cannot be");
  return readGroups(*mask, choice, expert, out);
}

Status Matcher::readGroups(Term mask, Term choice, Term expert, RouterLayer &out) {
  const Error wrong = mismatch(mask, "experts of the best groups");
  if (!isElement(mask, "scatter-elements"))
    return wrong;
  const LeafDefinition scatter = terms.definition(terms.leaf(mask));
  // The group of an expert: floor(expert / experts of a group).
  const size_t last = terms.partCount(mask) - 1;
  const Term group = terms.part(mask, last);
  const std::optional<int64_t> width = terms.kind(group) == TermKind::Floor && terms.part(group, 0) == expert
                                           ? terms.asInteger(terms.part(group, 1))
                                           : std::nullopt;
  if (!width || out.spec.experts % *width || scatter.bodies[0] != Term(0) || scatter.bodies[2] != Term(1))
    return wrong;
  out.spec.groups = out.spec.experts / *width;
  // The mask is 1 where the group is one of those chosen.
  const Term groups = terms.number(double(out.spec.groups)), own = fresh(groups), slot = fresh(groups);
  const Term condition = opened(withIndex(mask, last, own), slot, /*body=*/1);
  std::optional<Term> best;
  terms.visit(condition, [&](Term inner) {
    if (isElement(inner, "topk-indices"))
      best = inner;
  });
  if (!best || condition != terms.equalsZero(terms.subtract(own, *best)))
    return wrong;
  const std::vector<int64_t> numbers = terms.definition(terms.leaf(*best)).numbers;
  if (numbers[1] != out.spec.groups || numbers[3] != 1 || terms.part(*best, size_t(numbers[0])) != slot)
    return wrong;
  out.spec.topGroups = numbers[2];
  // A group's score.
  const Term score = chosenFrom(*best, own), inside = fresh(terms.number(double(*width)));
  const auto choiceOf = [&](Term index) {
    return replaced(choice, expert, terms.sum(0, {{own, double(*width)}, {index, 1}}));
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
  if (two[1] != *width || two[2] != 2 || two[3] != 1)
    return wrong;
  out.spec.groupScore = GroupScore::Top2Sum;
  return Status::success();
}

} // namespace k2c::onnx

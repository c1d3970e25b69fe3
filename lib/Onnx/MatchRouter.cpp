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

/// The operand of a "topk-indices" leaf at the element's indices, `at` in place of the one that is chosen.
static Term operandOf(Terms &terms, Term chosen, Term at) {
  const LeafDefinition best = terms.definition(terms.leaf(chosen));
  std::vector<Term> indices;
  for (const Part &part : terms.parts(chosen))
    indices.push_back(part.term);
  indices[size_t(best.numbers[0])] = at;
  return terms.substitute(best.bodies[0], indices);
}

Status Matcher::readChoice(Term chosen, Term scores, Term expert, RouterLayer &out) {
  if (terms.definition(terms.leaf(chosen)).numbers[3] != 1)
    return mismatch(chosen, "the experts of the largest scores");
  Term choice = unshared(operandOf(terms, chosen, expert));
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
  // Scores are not below 0; with a bias they may be.
  if (!(outside < -1e4) && !(outside == 0 && !out.bias))
    return mismatch(choice, "a choice that experts outside of the best groups cannot be");
  return readGroups(*mask, choice, expert, out);
}

Status Matcher::readGroups(Term mask, Term choice, Term expert, RouterLayer &out) {
  const Error wrong = mismatch(mask, "experts of the best groups");
  if (!isElement(mask, "scatter-elements"))
    return wrong;
  const LeafDefinition scatter = terms.definition(terms.leaf(mask));
  std::vector<Term> indices;
  for (const Part &part : terms.parts(mask))
    indices.push_back(part.term);
  // The group of an expert: floor(expert / experts of a group).
  const Term group = indices.back();
  const std::optional<int64_t> width = terms.kind(group) == TermKind::Floor && terms.part(group, 0) == expert
                                           ? terms.asInteger(terms.part(group, 1))
                                           : std::nullopt;
  if (!width || out.spec.experts % *width || scatter.bodies[0] != Term(0) || scatter.bodies[2] != Term(1))
    return wrong;
  out.spec.groups = out.spec.experts / *width;
  // The mask is 1 where the group is one of those chosen.
  const Term groups = terms.number(double(out.spec.groups)), own = fresh(groups), slot = fresh(groups);
  std::vector<Term> byPosition(size_t(Fold::firstReduced) + 1, Term(0));
  std::copy(indices.begin(), indices.end(), byPosition.begin());
  byPosition[indices.size() - 1] = own;
  byPosition[size_t(Fold::firstReduced)] = slot;
  const Term condition = terms.substitute(scatter.bodies[1], byPosition);
  std::optional<Term> best;
  terms.rewrite(condition, [&](Term inner) -> std::optional<Term> {
    if (isElement(inner, "topk-indices"))
      best = inner;
    return std::nullopt;
  });
  if (!best || condition != terms.equalsZero(terms.subtract(own, *best)))
    return wrong;
  const std::vector<int64_t> numbers = terms.definition(terms.leaf(*best)).numbers;
  if (numbers[1] != out.spec.groups || numbers[3] != 1 || terms.part(*best, size_t(numbers[0])) != slot)
    return wrong;
  out.spec.topGroups = numbers[2];
  // A group's score.
  const Term score = operandOf(terms, *best, own), inside = fresh(terms.number(double(*width)));
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
  terms.rewrite(summed, [&](Term inner) -> std::optional<Term> {
    if (isElement(inner, "topk-indices") && mentions(inner, place))
      member = inner;
    return std::nullopt;
  });
  if (!member || summed != choiceOf(*member) || unshared(operandOf(terms, *member, inside)) != choiceOf(inside))
    return wrong;
  const std::vector<int64_t> two = terms.definition(terms.leaf(*member)).numbers;
  if (two[1] != *width || two[2] != 2 || two[3] != 1)
    return wrong;
  out.spec.groupScore = GroupScore::Top2Sum;
  return Status::success();
}

} // namespace k2c::onnx

//===- MatchFeedForward.cpp - gated MLPs and routed experts ---------------------------===//
//
// Experts of a token: sum over its slots k of weight(k) down_e(act(gate_e x) * up_e x), where e is the k-th expert that
// was chosen. Their weights are parts of one constant, at the index that was chosen.
//
//===----------------------------------------------------------------------===//
#include "Match.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace k2c::onnx {

Expected<MlpLayer> Matcher::gatedMlp(Term value, Term column) {
  MlpLayer out;
  Expected<LinearLayer> down = linear(value, {column});
  if (!down)
    return down.takeError();
  out.down = std::move(*down);
  const auto [factor, inner] = terms.splitFactor(unshared(out.down.input));
  std::vector<Part> rest;
  std::optional<Term> gate;
  for (const Part &part : factors(inner))
    if (part.factor == 1 && !gate && terms.kind(part.term) == TermKind::Call &&
        terms.function(part.term) == Function::Sigmoid)
      gate = terms.part(part.term, 0);
    else
      rest.push_back(part);
  const auto found = gate ? std::find(rest.begin(), rest.end(), Part{*gate, 1}) : rest.end();
  if (found == rest.end() || factor != 1)
    return mismatch(out.down.input, "silu(gate) * up");
  rest.erase(found);
  const Term index = terms.variable(columnAt, terms.number(double(out.down.depth)));
  Expected<LinearLayer> first = linear(*gate, {index});
  if (!first)
    return first.takeError();
  Expected<LinearLayer> second = linear(product(rest), {index});
  if (!second)
    return second.takeError();
  out.gate = std::move(*first);
  out.up = std::move(*second);
  out.input = out.gate.input;
  if (out.up.input != out.input || out.gate.expert != out.up.expert || out.gate.expert != out.down.expert)
    return mismatch(value, "a gated MLP of one input");
  return out;
}

Expected<ExpertsLayer> Matcher::experts(Term value, Term column) {
  // One expert a token is no sum.
  if (Expected<ExpertsLayer> one = expertsAt(value, Term(0), column))
    return one;
  const std::optional<Term> count = isElement(value, "sum") ? runningSize(value) : std::nullopt;
  if (!count || !terms.asInteger(*count))
    return mismatch(value, "a sum over the experts of a token");
  const Term slot = terms.variable(expertAt, *count);
  return expertsAt(opened(value, slot), slot, column);
}

/// What a sum over the experts of a token has at a slot.
Expected<ExpertsLayer> Matcher::expertsAt(Term value, Term slot, Term column) {
  ExpertsLayer out;
  const auto [factor, body] = terms.splitFactor(value);
  std::vector<Part> weights;
  std::optional<Term> weighted;
  for (const Part &part : factors(body))
    if (isElement(part.term, "sum") && part.factor == 1 && mentions(part.term, column) && !weighted)
      weighted = part.term;
    else
      weights.push_back(part);
  if (!weighted)
    return mismatch(value, "a sum over the experts of a token");
  Expected<MlpLayer> experts = gatedMlp(*weighted, column);
  if (!experts)
    return experts.takeError();
  out.experts = std::move(*experts);
  if (!out.experts.down.expert)
    return mismatch(*weighted, "an expert that was chosen");
  Expected<RouterLayer> router = this->router(product(weights, factor), *out.experts.down.expert, slot);
  if (!router)
    return router.takeError();
  out.router = std::move(*router);
  if (out.router.logits.input != out.experts.input)
    return mismatch(out.router.logits.input, "a router of what its experts read");
  return out;
}

Expected<OneExpert> Matcher::oneExpert(Term value, Term column) {
  OneExpert out;
  const Error wrong = mismatch(value, "an expert with a weight where it was chosen");
  auto [factor, body] = terms.splitFactor(value);
  std::vector<Part> rest;
  std::optional<Term> down, weight, condition;
  std::vector<Part> all = factors(body);
  // [the index is not the expert's] ? 0 : what it makes, where a token has one expert.
  if (all.size() == 1 && terms.kind(body) == TermKind::Select && terms.part(body, 1) == Term(0)) {
    condition = terms.part(body, 0);
    const auto [own, made] = terms.splitFactor(terms.part(body, 2));
    factor *= own;
    all = factors(made);
  }
  for (const Part &part : all) {
    const bool isSum = isElement(part.term, "sum") && part.factor == 1;
    if (isSum && mentions(part.term, column) && !down)
      down = part.term;
    else if (isSum && !weight && !condition)
      weight = part.term;
    else
      rest.push_back(part);
  }
  const std::optional<Term> count = weight ? runningSize(*weight) : std::nullopt;
  if (!down || (weight && (!count || !terms.asInteger(*count))))
    return wrong;
  // Over the slots of a token, of which one is no sum: [its index is not the expert's] ? 0 : its weight.
  out.slot = weight ? terms.variable(expertAt, *count) : Term(0);
  const Term atSlot = weight ? opened(*weight, out.slot) : product(std::exchange(rest, {}));
  const Term chosen = terms.rewrite(atSlot, [&](Term inner) -> std::optional<Term> {
    if (terms.kind(inner) != TermKind::Select || terms.part(inner, 1) != Term(0) || condition)
      return std::nullopt;
    condition = terms.part(inner, 0);
    return terms.part(inner, 2);
  });
  double added = 0; // to the index: less the expert's
  const std::vector<Part> index = condition ? summands(*condition, added) : std::vector<Part>();
  if (index.size() != 1 || index[0].factor != 1 || !isElement(index[0].term, "topk-indices") || added > 0)
    return wrong;
  out.expert = int64_t(-added);
  out.chosen = index[0].term;
  out.weight = terms.multiply(chosen, product(rest, factor));
  Expected<MlpLayer> mlp = gatedMlp(*down, column);
  if (!mlp)
    return mlp.takeError();
  out.mlp = std::move(*mlp);
  return out;
}

/// The index of a softmax's element on the axis that it runs over.
static Term softmaxIndex(const Terms &terms, Term element) {
  return terms.part(element, size_t(terms.definition(terms.leaf(element)).numbers[0]));
}

/// The weight of an expert: its score, over the sum of those chosen or not, times a number.
Expected<RouterLayer> Matcher::router(Term weights, Term expert, Term slot) {
  RouterLayer out;
  const auto [scale, bare] = terms.splitFactor(weights);
  const LeafDefinition chosen = terms.definition(terms.leaf(expert));
  out.spec.experts = chosen.numbers[1];
  out.spec.topK = chosen.numbers[2];
  out.spec.scale = scale;
  // Each slot is one of those chosen, and all are there.
  if (terms.part(expert, size_t(chosen.numbers[0])) != slot || countOf(slot) != out.spec.topK)
    return mismatch(expert, "all experts that were chosen");
  std::vector<Part> own;
  std::optional<Term> divisor;
  for (const Part &part : factors(bare))
    if (part.factor == -1 && !divisor)
      divisor = part.term;
    else
      own.push_back(part);
  Term scores = unshared(product(own));
  const Term all = terms.variable(headAt, terms.number(double(out.spec.experts)));
  if (divisor) {
    out.spec.normalize = true;
    const std::vector<Part> sum = summands(*divisor, out.spec.normalizeEps);
    const Term other = fresh(terms.number(double(out.spec.topK)));
    const auto isSumOfChosen = [&](Term sum) {
      return out.spec.topK == 1 ? sum == scores
                                : isElement(sum, "sum") && opened(sum, other) == replaced(scores, slot, other);
    };
    if (sum.size() != 1 || sum[0].factor != 1 || !isSumOfChosen(sum[0].term))
      return mismatch(*divisor, "the sum of the weights of the experts chosen");
  }
  if (scores == Term(1) && out.spec.topK == 1) { // one weight, made to sum to 1: its scores are those of the choice
    out.spec.normalize = true;
    const Choice choice = choiceOf(expert, all);
    const bool isScored = isElement(choice.scores, "softmax") || terms.kind(choice.scores) == TermKind::Call;
    scores = isScored ? choice.scores : choice.biased;
    if (Status status = isScored ? readScores(scores, all, out, expert) : readRouterLogits(scores, all, out); !status)
      return status.takeError();
  } else if (isElement(scores, "softmax") && softmaxIndex(terms, scores) == slot) {
    // A softmax of the logits chosen is one of all logits, made to sum to 1.
    out.spec.normalize = true;
    out.spec.scoring = Scoring::Softmax;
    scores = replaced(opened(scores), expert, all);
    if (Status status = readRouterLogits(scores, all, out); !status)
      return status.takeError();
  } else {
    scores = replaced(scores, expert, all);
    // Scores outside of the groups chosen are 0, and no expert there is chosen.
    if (const Masked masked = withoutMask(scores); masked.condition && masked.outside == 0) {
      if (unshared(*masked.condition) != choiceOf(expert, all).masked.condition)
        return mismatch(expert, "scores of the groups that experts are chosen from");
      scores = masked.inside;
    }
    if (Status status = readScores(scores, all, out, expert); !status)
      return status.takeError();
  }
  if (Status status = readChoice(expert, scores, all, out); !status)
    return status.takeError();
  return out;
}

Status Matcher::readScores(Term scores, Term expert, RouterLayer &out, Term at) {
  if (isElement(scores, "softmax")) {
    if (softmaxIndex(terms, scores) != expert)
      return mismatch(at, "a softmax over experts");
    out.spec.scoring = Scoring::Softmax;
    return readRouterLogits(opened(scores), expert, out);
  }
  if (terms.kind(scores) != TermKind::Call || terms.function(scores) != Function::Sigmoid)
    return mismatch(scores, "scores of experts: softmax or sigmoid");
  out.spec.scoring = Scoring::Sigmoid;
  return readRouterLogits(terms.part(scores, 0), expert, out);
}

Status Matcher::readRouterLogits(Term logits, Term expert, RouterLayer &out) {
  Expected<LinearLayer> layer = linear(logits, {expert});
  if (!layer)
    return layer.takeError();
  out.logits = std::move(*layer);
  if (out.logits.bias)
    return mismatch(logits, "router logits without a bias");
  return Status::success();
}

} // namespace k2c::onnx

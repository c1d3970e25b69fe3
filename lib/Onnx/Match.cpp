//===- Match.cpp - what matchers share, linear layers and norms ---------------------===//
//
// A linear layer is a contraction whose body is a part of a constant, with indices of its column and its depth, times
// rows without the column. A norm has the sum of the squares of the very rows that it divides, which is compared by
// building it.
//
//===----------------------------------------------------------------------===//
#include "Match.h"

#include "base/Utf8.h"
#include <algorithm>
#include <cmath>

namespace k2c::onnx {

Error Matcher::mismatch(Term at, const std::string &expected) const {
  std::string place = fold.graph.path;
  std::vector<Term> open{at};
  for (size_t i = 0; i < open.size() && i < 4096; i++) {
    const Term term = open[i];
    const int32_t node = terms.kind(term) == TermKind::Element ? terms.definition(terms.leaf(term)).node : -1;
    if (node >= 0) {
      place = fold.place(fold.graph.nodes[size_t(node)]);
      break;
    }
    for (const Part &part : terms.parts(term))
      open.push_back(part.term);
  }
  return Error{place, "expected " + expected + ", found " + shortened(terms.text(at)),
               "k2c compiles decoders; docs/Onnx.md says what is understood"};
}

bool Matcher::isElement(Term term, const char *op) const {
  return terms.kind(term) == TermKind::Element && terms.definition(terms.leaf(term)).op == op;
}

std::optional<Term> Matcher::runningSize(Term element) {
  for (Term variable : terms.variablesOf({terms.definition(terms.leaf(element)).bodies[0]}))
    if (terms.tag(variable) == Fold::firstReduced)
      return terms.part(variable, 0);
  return std::nullopt;
}

std::optional<int64_t> Matcher::countOf(Term variable) const {
  return terms.kind(variable) == TermKind::Variable ? terms.asInteger(terms.part(variable, 0)) : 1;
}

Term Matcher::opened(Term element, Term running, size_t body) {
  std::vector<Term> byPosition = terms.operands(element);
  byPosition.resize(size_t(Fold::firstReduced) + 1, Term(0));
  byPosition[size_t(Fold::firstReduced)] = running;
  return terms.substitute(terms.definition(terms.leaf(element)).bodies[body], byPosition);
}

Term Matcher::withIndex(Term element, size_t axis, Term index) {
  std::vector<Term> indices = terms.operands(element);
  indices[axis] = index;
  return terms.element(terms.leaf(element), indices);
}

Term Matcher::unshared(Term term) {
  return terms.rewrite(term, [&](Term inner) -> std::optional<Term> {
    return isElement(inner, "shared") ? std::optional(unshared(opened(inner))) : std::nullopt;
  });
}

bool Matcher::mentions(Term term, Term variable) {
  if (terms.variables(term) <= terms.tag(variable))
    return false;
  if (term == variable)
    return true;
  for (const Part &part : terms.parts(term))
    if (mentions(part.term, variable))
      return true;
  return false;
}

Term Matcher::replaced(Term term, Term from, Term to) {
  return terms.rewrite(term, [&](Term inner) -> std::optional<Term> {
    if (inner == from)
      return to;
    const bool isElsewhere = terms.kind(from) == TermKind::Variable && terms.variables(inner) <= terms.tag(from);
    return isElsewhere ? std::optional(inner) : std::nullopt;
  });
}

std::vector<Part> Matcher::factors(Term term) const {
  return terms.kind(term) == TermKind::Product ? terms.parts(term) : std::vector<Part>{{term, 1}};
}

std::vector<Part> Matcher::summands(Term term, double &constant) const {
  constant = terms.kind(term) == TermKind::Sum ? terms.number(term) : 0;
  return terms.kind(term) == TermKind::Sum ? terms.parts(term) : std::vector<Part>{{term, 1}};
}

Term Matcher::product(const std::vector<Part> &factors, double factor) {
  Term out = terms.number(1);
  for (const Part &part : factors)
    out = terms.multiply(out, terms.power(part.term, part.factor));
  return terms.scale(out, factor);
}

std::optional<View> Matcher::view(Term term, const std::vector<Term> &variables) {
  if (!isStored(term))
    return std::nullopt;
  View out;
  out.quantised = fold.quantisedOf(terms.leaf(term));
  out.constant = out.quantised ? out.quantised->numbers.value : ValueId(terms.definition(terms.leaf(term)).numbers[0]);
  out.strides.assign(variables.size(), 0);
  for (Term variable : variables)
    out.shape.push_back(countOf(variable).value_or(0));
  double offset = 0;
  for (const Part &summand : summands(fold.flatIndex(term), offset)) {
    if (terms.isNumber(summand.term)) { // an index that is a number alone
      offset += terms.number(summand.term) * summand.factor;
      continue;
    }
    const auto found = std::find(variables.begin(), variables.end(), summand.term);
    if (found == variables.end() || summand.factor != std::floor(summand.factor))
      return std::nullopt;
    out.strides[size_t(found - variables.begin())] += int64_t(summand.factor);
  }
  out.offset = int64_t(offset);
  return out;
}

std::optional<Error> Matcher::quantised(const std::vector<Part> &weights) {
  std::optional<ValueId> stored;
  for (const Part &weight : weights)
    terms.visit(weight.term, [&](Term inner) {
      const bool isStored = isElement(inner, "nibbles") || isElement(inner, "constant");
      if (isStored && terms.isInteger(inner))
        stored = ValueId(terms.definition(terms.leaf(inner)).numbers[0]);
    });
  if (!stored)
    return std::nullopt;
  const Tensor &tensor = fold.graph.constants.at(*stored);
  return Error{fold.graph.path + ": tensor '" + shortened(tensor.name) + "'",
               "is stored quantised, as " + name(tensor.type) + " with scales, in a form that is not understood",
               "export the model in FLOAT, FLOAT16 or BFLOAT16"};
}

Expected<LinearLayer> Matcher::linear(Term value, const std::vector<Term> &columns) {
  LinearLayer out;
  double constant = 0;
  if (isElement(value, "shared")) // with its bias, a sum that several nodes read
    value = opened(value);
  std::optional<Term> contraction;
  for (const Part &summand : summands(value, constant)) {
    const std::optional<View> bias = view(summand.term, columns);
    if (isElement(summand.term, "sum") && summand.factor == 1 && !contraction)
      contraction = summand.term;
    else if (bias && summand.factor == 1 && !out.bias)
      out.bias = bias;
    else
      return mismatch(value, "a linear layer");
  }
  const std::optional<Term> depth = contraction ? runningSize(*contraction) : std::nullopt;
  if (!depth || constant != 0 || !terms.asInteger(*depth))
    return mismatch(value, "a linear layer");
  out.depth = *terms.asInteger(*depth);
  const Term running = fresh(*depth);
  const auto isOfColumns = [&](Term term) {
    return std::any_of(columns.begin(), columns.end(), [&](Term column) { return mentions(term, column); });
  };
  const auto [factor, body] = terms.splitFactor(opened(*contraction, running));
  std::vector<Part> weights, inputs;
  for (const Part &part : factors(body))
    (isOfColumns(part.term) ? weights : inputs).push_back(part);
  if (const std::optional<Error> refused = quantised(weights))
    return *refused;
  if (weights.size() != 1 || weights[0].factor != 1)
    return mismatch(value, "a product of weights and rows");
  std::vector<Term> variables = columns;
  variables.push_back(running);
  if (isStored(weights[0].term))
    for (const Part &index : terms.parts(weights[0].term)) // that of an expert comes first
      if (isElement(index.term, "topk-indices")) {
        out.expert = index.term;
        variables.insert(variables.begin(), index.term);
      }
  const std::optional<View> weight = view(weights[0].term, variables);
  if (!weight)
    return mismatch(weights[0].term, "a weight whose indices are those of its rows and columns");
  out.weight = *weight;
  if (out.expert)
    out.weight.shape[0] = terms.definition(terms.leaf(*out.expert)).numbers[1];
  out.input = product(inputs, factor);
  out.input = replaced(out.input, running, terms.variable(columnAt, *depth));
  return out;
}

/// The term whose square the product is, if all its exponents are even.
static std::optional<std::vector<Part>> rootOf(std::vector<Part> factors) {
  for (Part &part : factors) {
    if (std::fmod(part.factor, 2) != 0)
      return std::nullopt;
    part.factor /= 2;
  }
  return factors;
}

static bool isNear(double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); }

Expected<NormLayer> Matcher::norm(Term value, Term index, double *scale) {
  NormLayer out;
  const auto [factor, body] = terms.splitFactor(value);
  std::vector<Part> rest;
  std::optional<Term> squares;
  std::optional<View> weight;
  double added = 0;
  for (const Part &part : factors(body)) {
    double constant = 0;
    const std::vector<Part> inner = summands(part.term, constant);
    if (part.factor == -0.5 && inner.size() == 1 && isElement(inner[0].term, "sum") && inner[0].factor == 1 &&
        !squares) {
      squares = inner[0].term;
      added = constant;
    } else if (const std::optional<View> found = view(part.term, {index}); found && part.factor == 1 && !weight) {
      weight = found;
    } else {
      rest.push_back(part);
    }
  }
  const std::optional<Term> size = squares ? runningSize(*squares) : std::nullopt;
  if (!size || !weight || !terms.asInteger(*size))
    return mismatch(value, "an RMS norm");
  const Term running = fresh(*size);
  const auto [inside, square] = terms.splitFactor(opened(*squares, running));
  const std::optional<std::vector<Part>> root = rootOf(factors(square));
  if (!root || inside <= 0)
    return mismatch(*squares, "the sum of squares of an RMS norm");
  out.size = *terms.asInteger(*size);
  if (countOf(index) != out.size)
    return mismatch(value, "an RMS norm of what it divides by");
  out.weight = *weight;
  out.input = product(rest, std::sqrt(inside));
  out.eps = added / double(out.size);
  // x (sum(x^2) / n + eps)^-1/2 = sqrt(n) x (sum(x^2) + n eps)^-1/2, where x = sqrt(inside) times the root.
  const double whole = std::sqrt(double(out.size) * inside);
  const Term divided = product(rest), squared = replaced(product(*root), running, index);
  const bool isOfItself = divided == squared || unshared(divided) == unshared(squared);
  if (!isOfItself || !(scale || isNear(factor, whole)))
    return mismatch(value, "an RMS norm of what it divides by");
  if (scale)
    *scale = factor / whole;
  return out;
}

} // namespace k2c::onnx

//===- MatchAttention.cpp - grouped-query attention -----------------------------------===//
//
//   output = Wo sum over j of softmax_j(scale q(s) k(j) + mask) v(j)
//
// Keys and values of past tokens stand before those of the step: put past + s in place of j, and what is left are the
// rows of the step, a linear layer of the same rows that queries are one of.
//
//===----------------------------------------------------------------------===//
#include "Match.h"

#include <algorithm>
#include <cmath>

namespace k2c::onnx {

/// The divisor of floor(variable / n) in a term; 0: there is none.
static int64_t divisorOf(Terms &terms, Term term, Term variable) {
  int64_t divisor = 0;
  terms.visit(term, [&](Term inner) {
    if (terms.kind(inner) == TermKind::Floor && terms.part(inner, 0) == variable)
      divisor = terms.asInteger(terms.part(inner, 1)).value_or(0);
  });
  return divisor;
}

/// The rows without a choice of 0 for those that see no key: every row sees itself, so there are none.
Term Matcher::withoutBlindRows(Term rows, Term row) {
  if (terms.kind(rows) != TermKind::Select || terms.part(rows, 1) != Term(0))
    return rows;
  const Term condition = terms.part(rows, 0);
  double constant = 0;
  const std::vector<Part> counted = summands(terms.part(condition, 0), constant);
  const TermKind kind = terms.kind(condition);
  const bool isCount = counted.size() == 1 && isElement(counted[0].term, "sum");
  if (!isCount || !(kind == TermKind::Negative || kind == TermKind::EqualsZero))
    return rows;
  // [keys seen - 1 < 0], or [keys seen = 0]: the key at past + row is one of them.
  const bool isOfNone = kind == TermKind::Negative ? constant == -1 && counted[0].factor == 1 : constant == 0;
  const Term itself = opened(counted[0].term, terms.add(fold.past, row));
  const Term seen = opened(counted[0].term, fresh(*runningSize(counted[0].term)));
  return isOfNone && itself == Term(1) && terms.isNeverNegative(seen) ? terms.part(rows, 2) : rows;
}

/// The term where it is no choice of 0 in place of NaN, which rows have that see no key.
Term Matcher::withoutNaN(Term term) const {
  const bool isChoice = terms.kind(term) == TermKind::Select && terms.part(term, 1) == Term(0);
  const Term condition = isChoice ? terms.part(term, 0) : term;
  const bool isOfNaN = isChoice && terms.kind(condition) == TermKind::Call &&
                       terms.function(condition) == Function::IsNaN && terms.part(condition, 0) == terms.part(term, 2);
  return isOfNaN ? terms.part(term, 2) : term;
}

/// Rows that are the weighted values of all heads, taken apart to queries, keys and values.
Expected<Attended> Matcher::attended(Term rows, int64_t depth) {
  Attended out;
  const Term column = terms.variable(columnAt, terms.number(double(depth)));
  out.valueWidth = divisorOf(terms, rows, column);
  out.valueWidth = out.valueWidth ? out.valueWidth : depth;
  if (depth % out.valueWidth)
    return mismatch(rows, "values that a softmax weighs");
  out.heads = depth / out.valueWidth;
  out.row = terms.variable(rowAt, fold.sequence);
  out.head = terms.variable(headAt, terms.number(double(out.heads)));
  out.valueElement = terms.variable(elementAt, terms.number(double(out.valueWidth)));
  rows = replaced(rows, column, terms.sum(0, {{out.head, double(out.valueWidth)}, {out.valueElement, 1}}));
  rows = withoutBlindRows(rows, out.row);
  const std::optional<Term> length = isElement(rows, "sum") ? runningSize(rows) : std::nullopt;
  if (!length)
    return mismatch(rows, "values that a softmax weighs");
  out.keyIndex = terms.variable(keyAt, *length);
  const auto [factor, weighted] = terms.splitFactor(unshared(opened(rows, out.keyIndex)));
  std::vector<Part> values;
  std::optional<Term> weights;
  for (const Part &part : factors(weighted)) {
    const Term inner = withoutNaN(part.term);
    if (isElement(inner, "softmax") && part.factor == 1 && !weights)
      weights = inner;
    else
      values.push_back(part);
  }
  if (!weights || factor != 1)
    return mismatch(weighted, "values that a softmax weighs");
  out.value = product(values);
  if (Status status = readLogits(*weights, out); !status)
    return status.takeError();
  return out;
}

/// Queries, keys, scale and mask of the weights of keys.
Status Matcher::readLogits(Term weights, Attended &out) {
  const int64_t axis = terms.definition(terms.leaf(weights)).numbers[0];
  if (terms.part(weights, size_t(axis)) != out.keyIndex)
    return mismatch(weights, "a softmax over keys");
  Term logits = unshared(opened(weights));
  // What is masked stands in a choice, or is added.
  std::vector<Part> mask;
  if (terms.kind(logits) == TermKind::Select && terms.isNumber(terms.part(logits, 2))) {
    mask.push_back({terms.select(terms.part(logits, 0), Term(0), terms.part(logits, 2)), 1});
    logits = terms.part(logits, 1);
  }
  double constant = 0;
  std::optional<Part> scores;
  for (const Part &part : summands(logits, constant)) {
    if (isElement(part.term, "sum") && !scores)
      scores = part;
    else
      mask.push_back(part);
  }
  const std::optional<Term> width = scores ? runningSize(scores->term) : std::nullopt;
  if (!width || !terms.asInteger(*width))
    return mismatch(logits, "products of queries and keys, and a mask");
  const Expected<int64_t> window = this->window(terms.sum(constant, mask), out.row, out.keyIndex);
  if (!window)
    return window.error();
  out.window = *window;
  out.keyWidth = *terms.asInteger(*width);
  out.element = terms.variable(elementAt, *width);
  const auto [scale, dot] = terms.splitFactor(unshared(opened(scores->term, out.element)));
  out.scale = scale * scores->factor;
  std::vector<Part> queries, keys;
  for (const Part &part : factors(dot))
    (mentions(part.term, out.keyIndex) ? keys : queries).push_back(part);
  out.query = product(queries);
  out.key = product(keys);
  return Status::success();
}

/// How many heads of queries one row of keys or values is for; 0: they do not follow each other.
int64_t Matcher::headsThatShare(Term rows, Term head) {
  const int64_t heads = countOf(head).value_or(1);
  if (heads == 1 || !mentions(rows, head))
    return heads;
  const int64_t divisor = divisorOf(terms, rows, head);
  if (divisor == 0)
    return 1;
  const Term size = terms.number(double(divisor));
  const Term first = terms.scale(terms.floorDivide(head, size), double(divisor));
  return replaced(rows, head, first) == rows && heads % divisor == 0 ? divisor : 0;
}

/// Rows of `head` and `element` as a linear layer, with what stands between.
Expected<ProjectedRows> Matcher::projected(Term rows, Term head, Term element) {
  ProjectedRows out;
  if (terms.kind(rows) == TermKind::Call && terms.function(rows) == Function::Min) {
    const Term bound = terms.isNumber(terms.part(rows, 0)) ? terms.part(rows, 0) : terms.part(rows, 1);
    const Term inner = terms.part(rows, terms.isNumber(terms.part(rows, 0)) ? 1 : 0);
    const bool isMax = terms.kind(inner) == TermKind::Call && terms.function(inner) == Function::Max;
    const bool isFirst = isMax && terms.isNumber(terms.part(inner, 0));
    if (!isMax || !terms.isNumber(bound) || terms.part(inner, isFirst ? 0 : 1) != terms.number(-terms.number(bound)) ||
        !(terms.number(bound) > 0))
      return mismatch(rows, "rows between a bound and its negative");
    out.clip = terms.number(bound);
    rows = terms.part(inner, isFirst ? 1 : 0);
  }
  const double width = double(terms.asInteger(terms.part(element, 0)).value_or(1));
  const bool isOneHead = terms.kind(head) != TermKind::Variable;
  const double heads = double(countOf(head).value_or(1));
  const Term column = fresh(terms.number(width * heads)), size = terms.number(width);
  const auto joined = [&](Term of) {
    const Term ofHead = isOneHead ? of : replaced(of, head, terms.floorDivide(column, size));
    return replaced(ofHead, element, isOneHead ? column : terms.modulo(column, size));
  };
  if (Expected<NormLayer> norm = this->norm(rows, element, &out.scale)) {
    out.isNormOfHead = true;
    out.norm = *norm;
    rows = joined(norm->input);
  } else if (Expected<NormLayer> whole = this->norm(joined(rows), column, &out.scale)) {
    out.norm = *whole;
    rows = whole->input;
  } else {
    out.scale = 1;
    rows = joined(rows);
  }
  Expected<LinearLayer> layer = linear(rows, {column});
  if (!layer)
    return layer.takeError();
  out.layer = std::move(*layer);
  return out;
}

Expected<GqaLayer> Matcher::grouped(const Attended &found, const TurnedRows &query, const TurnedRows &key) {
  GqaLayer out;
  const int64_t shared = headsThatShare(found.key, found.head);
  if (shared == 0 || headsThatShare(found.value, found.head) != shared)
    return mismatch(found.key, "keys and values of heads that follow each other");
  out.spec.heads = found.heads;
  out.spec.kvHeads = found.heads / shared;
  out.spec.headDim = found.valueWidth;
  out.spec.window = found.window;
  if (query.rotation.has_value() != key.rotation.has_value() ||
      (query.rotation && !(*query.rotation == *key.rotation)) || found.keyWidth != found.valueWidth)
    return mismatch(found.query, "queries and keys that are turned by the same angles");
  out.rotation = query.rotation;
  const Term keyHead = terms.variable(headAt, terms.number(double(out.spec.kvHeads)));
  const auto ofKeyHead = [&](Term rows) {
    return found.heads == 1 ? rows : replaced(rows, found.head, terms.scale(keyHead, double(shared)));
  };
  const Term position = terms.add(fold.past, found.row);
  const std::tuple<ProjectedRows *, Term, Term, Term> rows[] = {
      {&out.query, query.rows, found.head, found.element},
      {&out.key, ofKeyHead(key.rows), keyHead, found.element},
      {&out.value, ofKeyHead(replaced(found.value, found.keyIndex, position)), keyHead, found.valueElement}};
  for (const auto &[into, from, head, element] : rows) {
    Expected<ProjectedRows> projection = projected(from, head, element);
    if (!projection)
      return projection.takeError();
    *into = std::move(*projection);
  }
  if (out.spec.kvHeads == 1) // a norm of the one head is one of the row
    out.key.isNormOfHead = out.query.isNormOfHead;
  const double all = found.scale * out.query.scale * out.key.scale;
  out.turnedScale = all * query.factor * key.factor;
  out.scale = all * query.behindFactor.value_or(query.factor) * key.behindFactor.value_or(key.factor);
  out.input = out.query.layer.input;
  if (out.key.layer.input != out.input || out.value.layer.input != out.input)
    return mismatch(out.key.layer.input, "queries, keys and values of the same rows");
  return out;
}

Expected<AttentionLayer> Matcher::attention(Term value, Term column) {
  Expected<LinearLayer> output = linear(value, {column});
  if (!output)
    return output.takeError();
  const Expected<Attended> found = attended(output->input, output->depth);
  if (!found)
    return found.error();
  AttentionLayer out;
  out.keys = found->key;
  out.values = found->value;
  out.key = found->keyIndex;
  const Term position = terms.add(fold.past, found->row);
  const Expected<TurnedRows> query = turned(found->query, found->element, position);
  if (!query)
    return query.error();
  const Expected<TurnedRows> key = turned(replaced(found->key, found->keyIndex, position), found->element, position);
  if (!key)
    return key.error();
  const auto finish = [&](auto layer) -> Status {
    if (!layer)
      return layer.takeError();
    layer->output = std::move(*output);
    out.input = layer->input;
    out.layer = std::move(*layer);
    return Status::success();
  };
  if (query->before.has_value() != key->before.has_value())
    return mismatch(found->query, "queries and keys that are turned from the same element on");
  Status status = query->before ? finish(latent(*found, *query, *key)) : finish(grouped(*found, *query, *key));
  if (!status)
    return status.takeError();
  return out;
}

} // namespace k2c::onnx

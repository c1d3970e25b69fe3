//===- FoldAttention.cpp - ops that are a whole attention, taken apart --------------===//
//
// Attention, GroupQueryAttention and MultiHeadAttention become what decomposed graphs have: keys and values that stand
// behind those of past tokens, a contraction, a mask, a softmax, a contraction. So there is one form of attention to
// recognise.
//
//===----------------------------------------------------------------------===//
#include "FoldAttention.h"

#include "base/Utf8.h"
#include <cmath>
#include <limits>

namespace k2c::onnx {

/// softmax(scale q k + bias) v.
Fold::AttentionResult Fold::attention(const Node &node, ElementType type, const AttentionParts &parts) {
  const std::vector<Term> shape{parts.batch, terms.number(double(parts.query.heads)), parts.query.rows, parts.key.rows};
  const std::vector<Term> i = variables(shape);
  const Term group = terms.number(double(parts.query.heads / parts.key.heads));
  const Term inner = reduceVariable(0, parts.query.width);
  const Term product = terms.multiply(parts.query.at(i[0], i[1], i[2], inner),
                                      parts.key.at(i[0], terms.floorDivide(i[1], group), i[3], inner));
  AttentionResult out;
  out.products = contraction(node, type, shape, product, {parts.query.width});
  out.products.element = terms.scale(out.products.element, parts.scale);
  out.capped = out.products;
  if (parts.softcap != 0)
    out.capped.element =
        terms.scale(terms.call(Function::Tanh, {terms.scale(out.products.element, 1 / parts.softcap)}), parts.softcap);
  out.biased = out.capped;
  if (parts.bias)
    out.biased.element = terms.add(out.biased.element, parts.bias(i[0], i[1], i[2], i[3]));
  if (parts.allowed)
    out.biased.element = terms.add(out.biased.element, terms.select(parts.allowed(i[0], i[1], i[2], i[3]),
                                                                    terms.number(0), terms.number(parts.refused)));
  LeafDefinition definition{"softmax", {out.biased.element}, {3}, {}, false, {}, -1};
  out.weights = leafValue(node, type, shape, std::move(definition));
  if (parts.mayBeEmpty) // a softmax of nothing but minus infinities
    out.weights.element =
        terms.select(terms.call(Function::IsNaN, {out.weights.element}), terms.number(0), out.weights.element);
  const std::vector<Term> outShape{parts.batch, shape[1], parts.query.rows, parts.value.width};
  const std::vector<Term> o = variables(outShape);
  const Term row = reduceVariable(0, parts.key.rows);
  const Term weighted = terms.multiply(at(out.weights, {o[0], o[1], o[2], row}),
                                       parts.value.at(o[0], terms.floorDivide(o[1], group), row, o[3]));
  out.output = contraction(node, type, outShape, weighted, {parts.key.rows});
  return out;
}

/// [batch, heads, rows, width] as [batch, rows, heads * width].
Folded Fold::joinHeads(const Folded &value) {
  const std::vector<Term> shape{value.shape[0], value.shape[2], terms.multiply(value.shape[1], value.shape[3])};
  const std::vector<Term> i = variables(shape);
  return reshaped(value, shape,
                  {i[0], terms.floorDivide(i[2], value.shape[3]), i[1], terms.modulo(i[2], value.shape[3])});
}

/// Rows behind those of a cache, [batch, heads, past, width].
Fold::Heads Fold::behind(const Folded &cache, const Heads &fresh) {
  Heads out = fresh;
  const Term length = cache.shape[2];
  out.rows = terms.add(length, fresh.rows);
  out.at = [this, cache, fresh, length](Term b, Term h, Term j, Term d) {
    return terms.select(terms.atLeastZero(terms.plus(terms.subtract(length, j), -1)), at(cache, {b, h, j, d}),
                        fresh.at(b, h, terms.subtract(j, length), d));
  };
  return out;
}

/// Puts keys and values behind the caches that two inputs are. Error: one is missing or does not fit.
Status Fold::addCaches(const Node &node, size_t keys, size_t values, AttentionParts &parts) {
  if (has(node, keys) != has(node, values))
    return refuse(node, "it has a cache of keys or of values without the other");
  if (!has(node, keys))
    return Status::success();
  for (const size_t input : {keys, values}) {
    const Folded &cache = in(node, input);
    Heads &fresh = input == keys ? parts.key : parts.value;
    const auto fits = [&](size_t axis, Term size) { // sizes that the file leaves open are what the others say
      return cache.shape[axis] == size || terms.kind(cache.shape[axis]) == TermKind::Size;
    };
    if (cache.shape.size() != 4 || !fits(1, terms.number(double(fresh.heads))) || !fits(3, fresh.width))
      return refuse(node, "a cache of shape " + text(cache.shape) + " does not fit " + std::to_string(fresh.heads) +
                              " heads of " + terms.text(fresh.width));
    fresh = behind(cache, fresh);
  }
  if (parts.key.rows != parts.value.rows)
    return refuse(node, "caches of keys and of values have different lengths");
  return Status::success();
}

/// Whether operands have as many rows of a batch as the queries. Sizes that the file leaves open do, and caches, whose
/// batch is that of the step.
Status Fold::checkBatch(const Node &node, const std::vector<size_t> &inputs) const {
  const Term rows = in(node, 0).shape[0];
  for (size_t input : inputs)
    if (has(node, input) && in(node, input).shape[0] != batch && !unified(in(node, input).shape[0], rows))
      return refuse(node,
                    "an operand of shape " + text(in(node, input).shape) + " is not of a batch of " + terms.text(rows));
  return Status::success();
}

/// Whether heads of queries, keys and values fit each other.
Status Fold::checkHeads(const Node &node, const AttentionParts &parts) const {
  if (parts.query.heads % parts.key.heads || parts.key.heads != parts.value.heads ||
      parts.query.width != parts.key.width || parts.key.rows != parts.value.rows)
    return refuse(node, std::to_string(parts.query.heads) + " heads of " + terms.text(parts.query.width) +
                            " columns and " + std::to_string(parts.key.heads) + " of " + terms.text(parts.key.width) +
                            " do not fit each other");
  return Status::success();
}

/// The mask of Attention of ai.onnx: of any rank up to 4, sizes 1 repeated; conditions, or numbers that are added. A
/// last axis that is shorter than the keys is continued with what nobody sees.
Status Fold::addMask(const Node &node, const Folded &mask, AttentionParts &parts) {
  const std::vector<Term> whole{parts.batch, terms.number(double(parts.query.heads)), parts.query.rows, parts.key.rows};
  const size_t rank = mask.shape.size(), behind = 4 - rank;
  bool fits = rank >= 1 && rank <= 4;
  for (size_t i = 0; fits && i + 1 < rank; i++)
    fits = mask.shape[i] == whole[behind + i] || terms.asInteger(mask.shape[i]) == 1;
  const Term last = fits ? mask.shape.back() : Term{};
  const bool isShorter = fits && last != whole[3];
  if (!fits || (isShorter && !terms.isNeverNegative(terms.subtract(whole[3], last))) ||
      (isShorter && terms.asInteger(last) == 1))
    return refuse(node, "a mask of shape " + text(mask.shape) + " does not fit scores of shape " + text(whole));
  const bool isCondition = !isFloat(mask);
  const auto element = [this, mask, behind, last, isShorter](Term b, Term h, Term i, Term j, Term outside) {
    const Term all[] = {b, h, i, j};
    std::vector<Term> indices;
    for (size_t k = 0; k < mask.shape.size(); k++)
      indices.push_back(terms.asInteger(mask.shape[k]) == 1 ? terms.number(0) : all[behind + k]);
    const Term own = at(mask, indices);
    return isShorter ? terms.select(terms.atLeastZero(terms.plus(terms.subtract(last, j), -1)), own, outside) : own;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  if (isCondition)
    parts.allowed = [=, before = parts.allowed](Term b, Term h, Term i, Term j) {
      const Term own = element(b, h, i, j, terms.number(0));
      return before ? terms.both(before(b, h, i, j), own) : own;
    };
  else
    parts.bias = [=](Term b, Term h, Term i, Term j) { return element(b, h, i, j, terms.number(-infinity)); };
  parts.mayBeEmpty = true;
  return Status::success();
}

/// Which keys a query of Attention of ai.onnx sees by its position: causality, windows, lengths without padding.
void Fold::addPositions(const Node &node, Term queries, std::optional<Term> cached, AttentionParts &parts) {
  const Folded *const lengths = has(node, 6) ? &in(node, 6) : nullptr;
  const bool isCausal = flag(node, "is_causal", false);
  const int64_t left = integer(node, "left_window_size", -1), right = integer(node, "right_window_size", -1);
  if (!isCausal && left < 0 && right < 0 && !lengths)
    return;
  parts.mayBeEmpty = parts.mayBeEmpty || lengths || left >= 0 || right >= 0;
  parts.allowed = [=, before = parts.allowed](Term b, Term h, Term i, Term j) {
    Term offset = cached.value_or(terms.number(0));
    if (lengths && !cached)
      offset = terms.subtract(at(*lengths, {b}), queries);
    const Term distance = terms.subtract(terms.add(offset, i), j);
    Term out = before ? before(b, h, i, j) : terms.number(1);
    if (isCausal)
      out = terms.both(out, terms.atLeastZero(distance));
    if (left >= 0)
      out = terms.both(out, terms.atLeastZero(terms.plus(terms.scale(distance, -1), double(left))));
    if (right >= 0)
      out = terms.both(out, terms.atLeastZero(terms.plus(distance, double(right))));
    if (lengths)
      out = terms.both(out, terms.atLeastZero(terms.plus(terms.subtract(at(*lengths, {b}), j), -1)));
    return out;
  };
}

/// Attention of ai.onnx 23 and later: (q, k, v, mask, past keys, past values, lengths without padding).
Fold::Result Fold::standardAttention(const Node &node) {
  const Folded &q = in(node, 0);
  const size_t rank = q.shape.size();
  AttentionParts parts;
  Expected<Heads> heads[3] = {headsOf(node, q, integer(node, "q_num_heads", 0)),
                              headsOf(node, in(node, 1), integer(node, "kv_num_heads", 0)),
                              headsOf(node, in(node, 2), integer(node, "kv_num_heads", 0))};
  for (Expected<Heads> &one : heads)
    if (!one)
      return one.takeError();
  parts.query = *heads[0];
  parts.key = *heads[1];
  parts.value = *heads[2];
  parts.batch = q.shape[0];
  parts.refused = -std::numeric_limits<double>::infinity();
  if (Status status = addCaches(node, 4, 5, parts); !status)
    return status.takeError();
  if (Status status = checkBatch(node, {1, 2, 4, 5}); !status)
    return status.takeError();
  if (Status status = checkHeads(node, parts); !status)
    return status.takeError();
  if (has(node, 3))
    if (Status status = addMask(node, in(node, 3), parts); !status)
      return status.takeError();
  const bool isCached = has(node, 4);
  if (isCached && has(node, 6))
    return refuse(node, "it has both caches and lengths of keys that are no padding");
  if (has(node, 6) && in(node, 6).shape.size() != 1)
    return refuse(node, "its lengths have shape " + text(in(node, 6).shape) + ", not that of a batch");
  addPositions(node, parts.query.rows, isCached ? std::optional(in(node, 4).shape[2]) : std::nullopt, parts);
  const double scale = real(node, "scale", 0), width = double(terms.asInteger(parts.query.width).value_or(0));
  if (width == 0)
    return refuse(node, "its heads have " + terms.text(parts.query.width) + " columns");
  parts.scale = node.attributes.count("scale") ? scale : 1 / std::sqrt(width);
  parts.softcap = real(node, "softcap", 0);
  if (!(parts.softcap >= 0))
    return refuse(node, "softcap " + std::to_string(parts.softcap) + " is negative");
  const AttentionResult result = attention(node, q.type, parts);
  const Folded *const scores[] = {&result.products, &result.capped, &result.biased, &result.weights};
  const int64_t mode = integer(node, "qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3)
    return refuse(node, "qk_matmul_output_mode " + std::to_string(mode) + " is none of 0 to 3");
  return std::vector<Folded>{rank == 3 ? joinHeads(result.output) : result.output,
                             ofHeads(q.type, parts.batch, parts.key, 4), ofHeads(q.type, parts.batch, parts.value, 4),
                             *scores[mode]};
}

} // namespace k2c::onnx

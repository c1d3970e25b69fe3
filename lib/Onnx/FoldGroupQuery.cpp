//===- FoldGroupQuery.cpp - attentions of com.microsoft ------------------------------===//
//
// GroupQueryAttention and MultiHeadAttention by what onnxruntime computes. Of their many inputs and attributes those
// that a decoder without padding needs are understood; the others are refused by name, as attributes that are not known
// are, for they may change the result.
//
//===----------------------------------------------------------------------===//
#include "FoldAttention.h"

#include "base/Utf8.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace k2c::onnx {

/// Bound of the heads of a node.
constexpr int64_t maxHeads = int64_t(1) << 32;

/// Refuses attributes other than these.
Status Fold::checkAttributes(const Node &node, const std::vector<const char *> &known) const {
  for (const auto &[name, attribute] : node.attributes)
    if (std::none_of(known.begin(), known.end(), [&name = name](const char *one) { return name == one; }))
      return refuse(node, "attribute '" + shortened(name) + "' is not understood");
  return Status::success();
}

/// Queries, keys and values of GroupQueryAttention: three inputs, or heads of one.
Expected<Fold::AttentionParts> Fold::groupedHeads(const Node &node) {
  AttentionParts parts;
  const int64_t heads = integer(node, "num_heads", 0), keyHeads = integer(node, "kv_num_heads", 0);
  if (heads < 1 || keyHeads < 1 || heads > maxHeads || keyHeads > maxHeads)
    return refuse(node, std::to_string(heads) + " heads of queries and " + std::to_string(keyHeads) +
                            " of keys are not understood");
  const bool isPacked = !has(node, 1);
  if (isPacked == has(node, 2))
    return refuse(node, "it has keys or values without the other");
  Expected<Heads> query = headsOf(node, in(node, 0), heads + (isPacked ? 2 * keyHeads : 0));
  if (!query)
    return query.takeError();
  parts.batch = in(node, 0).shape[0];
  parts.query = parts.key = parts.value = *query;
  parts.query.heads = heads;
  if (isPacked) {
    const auto from = [all = *query, this](int64_t first) {
      return
          [all, first, this](Term b, Term h, Term s, Term d) { return all.at(b, terms.plus(h, double(first)), s, d); };
    };
    parts.key.heads = parts.value.heads = keyHeads;
    parts.key.at = from(heads);
    parts.value.at = from(heads + keyHeads);
    return parts;
  }
  for (size_t input : {1, 2}) {
    Expected<Heads> own = headsOf(node, in(node, input), keyHeads);
    if (!own)
      return own.takeError();
    (input == 1 ? parts.key : parts.value) = *own;
  }
  return parts;
}

/// What must be so for GroupQueryAttention to be what is understood.
Status Fold::checkGrouped(const Node &node) {
  const Status status = checkAttributes(
      node, {"num_heads", "kv_num_heads", "scale", "local_window_size", "do_rotary", "rotary_interleaved", "softcap",
             "smooth_softmax", "qk_output", "causal", "qk_norm_epsilon", "q_norm_epsilon", "k_norm_epsilon",
             "kv_cache_bit_width", "sliding_window_cache", "k_quant_type", "v_quant_type"});
  if (!status)
    return status;
  if (integer(node, "smooth_softmax", 0) > 0 || integer(node, "qk_output", 0) != 0 ||
      flag(node, "sliding_window_cache", false))
    return refuse(node, "smooth_softmax, qk_output and sliding_window_cache are not understood");
  if (!flag(node, "causal", true))
    return refuse(node, "attention to tokens that follow (causal = 0) is not understood");
  static const char *const names[] = {"attention_bias", "head_sink",     "k_scale",      "v_scale",
                                      "q_norm_weight",  "k_norm_weight", "query_seqlens"};
  for (size_t i = 10; i < node.inputs.size(); i++)
    if (i != 10 && i != 14 && i != 15 && has(node, i))
      return refuse(node, "input " + std::to_string(i) + (i < 17 ? std::string(" (") + names[i - 10] + ")" : "") +
                              " is not understood");
  const int64_t window = integer(node, "local_window_size", -1);
  if (window == 0 || window < -1)
    return refuse(node, "local_window_size " + std::to_string(window) + " is neither -1 nor positive");
  const Term total = terms.add(past, sequence);
  if (!has(node, 5) || !has(node, 6) || in(node, 5).element != terms.plus(total, -1) || in(node, 6).element != total)
    return refuse(node, "its lengths are not those of a step without padding");
  if (has(node, 9) && in(node, 9).element != terms.add(past, terms.variable(1, sequence)))
    return refuse(node, "its positions are not those of a step without padding");
  return Status::success();
}

/// Heads whose rows have unit mean square, times a weight, as q_norm_weight says.
Expected<Fold::Heads> Fold::normedHeads(const Node &node, const Heads &heads, size_t input, double epsilon) {
  const Folded &weight = in(node, input);
  const std::optional<int64_t> width = terms.asInteger(heads.width);
  if (weight.shape != std::vector<Term>{heads.width} || !width)
    return refuse(node, "a weight of shape " + text(weight.shape) + " does not fit heads of " +
                            terms.text(heads.width) + " columns");
  const std::vector<Term> shape{batch, terms.number(double(heads.heads)), heads.rows, heads.width};
  const std::vector<Term> i = variables(shape);
  Folded squares{ElementType::F32, shape, terms.power(heads.at(i[0], i[1], i[2], i[3]), 2)};
  const Folded sum = reduced(node, "sum", squares, {3}, false);
  const double columns = double(*width);
  Heads out = heads;
  out.at = [this, heads, sum, weight, columns, epsilon](Term b, Term h, Term s, Term d) {
    const Term mean = terms.scale(at(sum, {b, h, s}), 1 / columns);
    return terms.multiply(terms.multiply(heads.at(b, h, s, d), terms.power(terms.plus(mean, epsilon), -0.5)),
                          at(weight, {d}));
  };
  return out;
}

/// Heads turned by the tables that are inputs 7 and 8, at the positions of a step.
Expected<Fold::Heads> Fold::turnedHeads(const Node &node, const Heads &heads) {
  if (!has(node, 7) || !has(node, 8))
    return refuse(node, "it rotates without tables");
  const Folded &cosines = in(node, 7), &sines = in(node, 8);
  const int64_t pairs = cosines.shape.size() == 2 ? terms.asInteger(cosines.shape[1]).value_or(0) : 0;
  if (pairs < 1 || sines.shape != cosines.shape || 2 * pairs > terms.asInteger(heads.width).value_or(0))
    return refuse(node, "tables of shape " + text(cosines.shape) + " and " + text(sines.shape) + " are not understood");
  const bool isInterleaved = flag(node, "rotary_interleaved", false);
  Heads out = heads;
  out.at = [this, heads, cosines, sines, pairs, isInterleaved](Term b, Term h, Term s, Term d) {
    const Term position = terms.add(past, s);
    return rotated([&](Term e) { return heads.at(b, h, s, e); }, d, 2 * pairs, isInterleaved,
                   [&](Term column) { return at(cosines, {position, column}); },
                   [&](Term column) { return at(sines, {position, column}); });
  };
  return out;
}

/// What GroupQueryAttention does to queries and keys before they meet: norms, then rotations.
Status Fold::prepareGrouped(const Node &node, AttentionParts &parts) {
  if (has(node, 14) != has(node, 15))
    return refuse(node, "it has q_norm_weight or k_norm_weight without the other");
  const double epsilon = real(node, "qk_norm_epsilon", 1e-6);
  for (const bool isKey : {false, true}) {
    Heads &heads = isKey ? parts.key : parts.query;
    if (has(node, 14)) {
      Expected<Heads> normed =
          normedHeads(node, heads, isKey ? 15 : 14, real(node, isKey ? "k_norm_epsilon" : "q_norm_epsilon", epsilon));
      if (!normed)
        return normed.takeError();
      heads = *normed;
    }
    if (!flag(node, "do_rotary", false))
      continue;
    Expected<Heads> turned = turnedHeads(node, heads);
    if (!turned)
      return turned.takeError();
    heads = *turned;
  }
  return Status::success();
}

/// A bias [batch or 1, heads or 1, rows, keys] that is added to scores.
Status Fold::addBias(const Node &node, size_t input, AttentionParts &parts) {
  const Folded &bias = in(node, input);
  const std::vector<Term> whole{parts.batch, terms.number(double(parts.query.heads)), parts.query.rows, parts.key.rows};
  bool fits = bias.shape.size() == 4;
  for (size_t i = 0; fits && i < 4; i++)
    fits = bias.shape[i] == whole[i] || (i < 2 && terms.asInteger(bias.shape[i]) == 1);
  if (!fits)
    return refuse(node, "a bias of shape " + text(bias.shape) + " does not fit scores of shape " + text(whole));
  parts.bias = [this, bias](Term b, Term h, Term i, Term j) {
    const auto one = [&](size_t axis, Term index) {
      return terms.asInteger(bias.shape[axis]) == 1 ? terms.number(0) : index;
    };
    return at(bias, {one(0, b), one(1, h), one(2, i), one(3, j)});
  };
  return Status::success();
}

Fold::Result Fold::groupQueryAttention(const Node &node) {
  if (Status status = checkGrouped(node); !status)
    return status.takeError();
  Expected<AttentionParts> heads = groupedHeads(node);
  if (!heads)
    return heads.takeError();
  AttentionParts parts = *heads;
  if (Status status = prepareGrouped(node, parts); !status)
    return status.takeError();
  if (Status status = addCaches(node, 3, 4, parts); !status)
    return status.takeError();
  if (Status status = checkBatch(node, {1, 2, 3, 4}); !status)
    return status.takeError();
  if (Status status = checkHeads(node, parts); !status)
    return status.takeError();
  if (has(node, 10))
    if (Status status = addBias(node, 10, parts); !status)
      return status.takeError();
  const double scale = real(node, "scale", 0);
  parts.scale = scale != 0 ? scale : 1 / std::sqrt(double(terms.asInteger(parts.query.width).value_or(1)));
  parts.softcap = real(node, "softcap", 0);
  if (!(parts.softcap >= 0))
    return refuse(node, "softcap " + std::to_string(parts.softcap) + " is negative");
  parts.refused = -std::numeric_limits<double>::infinity();
  // A token sees those at its position and before; of a window of W, itself and the W - 1 before it.
  const int64_t window = integer(node, "local_window_size", -1);
  parts.allowed = [this, window](Term, Term, Term i, Term j) {
    const Term distance = terms.subtract(terms.add(past, i), j);
    const Term isSeen = terms.atLeastZero(distance);
    return window < 0
               ? isSeen
               : terms.both(isSeen, terms.atLeastZero(terms.plus(terms.scale(distance, -1), double(window - 1))));
  };
  const ElementType type = in(node, 0).type;
  return std::vector<Folded>{joinHeads(attention(node, type, parts).output), ofHeads(type, batch, parts.key, 4),
                             ofHeads(type, batch, parts.value, 4)};
}

/// Of rows [batch, rows, columns] those with a part of a bias added that begins at its element `first`.
Folded Fold::withBias(const Folded &value, const Folded &bias, Term first) {
  Folded out = value;
  out.element = terms.add(value.element, at(bias, {terms.add(terms.variable(2, value.shape[2]), first)}));
  return out;
}

/// MultiHeadAttention of three inputs of rank 3, with a causal mask or a bias of scores or none.
Fold::Result Fold::multiHeadAttention(const Node &node) {
  if (Status status = checkAttributes(node, {"num_heads", "unidirectional", "scale", "mask_filter_value"}); !status)
    return status.takeError();
  const int64_t heads = integer(node, "num_heads", 0);
  if (!has(node, 1) || !has(node, 2) || in(node, 0).shape.size() != 3 || in(node, 1).shape.size() != 3 ||
      in(node, 2).shape.size() != 3)
    return refuse(node, "queries, keys and values that are packed or caches are not understood");
  for (size_t i = 8; i < node.inputs.size(); i++)
    if (has(node, i))
      return refuse(node, "shared buffers of caches (input " + std::to_string(i) + ") are not understood");
  if (has(node, 4) && (in(node, 4).element != terms.number(1) || in(node, 4).shape.size() < 2))
    return refuse(node, "a mask of padding that is not 1 everywhere is not understood");
  Folded operands[3] = {in(node, 0), in(node, 1), in(node, 2)};
  if (has(node, 3)) {
    const Folded &bias = in(node, 3);
    const Term all = terms.add(terms.add(operands[0].shape[2], operands[1].shape[2]), operands[2].shape[2]);
    if (bias.shape != std::vector<Term>{all})
      return refuse(node, "a bias of shape " + text(bias.shape) + " does not fit " + terms.text(all) + " columns");
    Term first = terms.number(0);
    for (Folded &operand : operands) {
      operand = withBias(operand, bias, first);
      first = terms.add(first, operand.shape[2]);
    }
  }
  AttentionParts parts;
  parts.batch = operands[0].shape[0];
  Heads *const places[3] = {&parts.query, &parts.key, &parts.value};
  for (size_t i = 0; i < 3; i++) {
    Expected<Heads> own = headsOf(node, operands[i], heads);
    if (!own)
      return own.takeError();
    *places[i] = *own;
  }
  if (Status status = addCaches(node, 6, 7, parts); !status)
    return status.takeError();
  if (Status status = checkBatch(node, {1, 2, 6, 7}); !status)
    return status.takeError();
  if (Status status = checkHeads(node, parts); !status)
    return status.takeError();
  if (has(node, 5))
    if (Status status = addBias(node, 5, parts); !status)
      return status.takeError();
  const double scale = real(node, "scale", 0);
  parts.scale = scale != 0 ? scale : 1 / std::sqrt(double(terms.asInteger(parts.query.width).value_or(1)));
  parts.refused = -std::numeric_limits<double>::infinity();
  const Term cached = has(node, 6) ? in(node, 6).shape[2] : terms.number(0);
  if (flag(node, "unidirectional", false))
    parts.allowed = [this, cached](Term, Term, Term i, Term j) {
      return terms.atLeastZero(terms.subtract(terms.add(cached, i), j));
    };
  const ElementType type = in(node, 0).type;
  return std::vector<Folded>{joinHeads(attention(node, type, parts).output), ofHeads(type, parts.batch, parts.key, 4),
                             ofHeads(type, parts.batch, parts.value, 4)};
}

} // namespace k2c::onnx

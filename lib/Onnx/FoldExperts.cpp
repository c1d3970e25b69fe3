//===- FoldExperts.cpp - layers of experts of com.microsoft, taken apart ------------------===//
//
// MoE and QMoE become what exporters write of the same layer: the softmax of the router's scores, the experts chosen,
// their weights gathered, and a sum over the chosen ones.
//
//   out(t, o) = sum over k of weight(t, k) (sum over i of down(e(t, k), o, i) act(gate(t, k, i)) up(t, k, i))
//
// What is an activation of a gate times another row is understood, and activations alone; the rest is refused by name.
//
//===----------------------------------------------------------------------===//
#include "Fold.h"

#include "base/Utf8.h"
#include <algorithm>
#include <cmath>

namespace k2c::onnx {

/// Weights [experts, rows, columns] and a bias [experts, rows] of one of the layers.
struct Fold::ExpertLayer {
  Folded weights;
  const Folded *bias = nullptr;
};

/// What MoE and QMoE have in common.
struct Fold::Experts {
  Term tokens{}, hidden{};
  int64_t count = 0, chosen = 0;
  std::function<Term(Term t, Term column)> input; ///< rows of tokens
  Folded router;                                  ///< [tokens, experts]
  const Folded *mixing = nullptr;                 ///< scores that are weights; none: the router's
  ExpertLayer first, second, third;               ///< third: of the rows that an activated gate is multiplied by
  bool hasThird = false;
};

/// Refuses what changes the result in a way that is not understood.
Status Fold::checkExperts(const Node &node) const {
  if (flag(node, "use_sparse_mixer", false))
    return refuse(node, "use_sparse_mixer is not understood");
  if (real(node, "activation_alpha", 1) != 1 || real(node, "activation_beta", 0) != 0)
    return refuse(node, "activation_alpha " + std::to_string(real(node, "activation_alpha", 1)) +
                            " and activation_beta " + std::to_string(real(node, "activation_beta", 0)) +
                            " are not those of a gate times a row (1 and 0)");
  if (node.attributes.count("swiglu_limit") && std::isfinite(real(node, "swiglu_limit", 0)))
    return refuse(node, "rows that are clamped (swiglu_limit) are not understood");
  static const char *const activations[] = {"relu", "silu", "identity", "swiglu"};
  const std::string activation = word(node, "activation_type", "relu");
  if (std::find(std::begin(activations), std::end(activations), activation) == std::end(activations))
    return refuse(node, "activation '" + shortened(activation) + "' is not understood");
  const int64_t fusion = integer(node, "swiglu_fusion", 0);
  if (fusion < 0 || fusion > 2)
    return refuse(node, "swiglu_fusion " + std::to_string(fusion) + " is none of 0 to 2");
  return Status::success();
}

/// Rows of tokens, of rank 2 or 3, and the router's.
Status Fold::addTokens(const Node &node, Experts &experts) {
  const Folded &x = in(node, 0);
  if (x.shape.size() != 2 && x.shape.size() != 3)
    return refuse(node, "tokens of shape " + text(x.shape) + " are not understood");
  experts.hidden = x.shape.back();
  experts.tokens = total(x.shape, 0, x.shape.size() - 1);
  experts.input = [this, &x](Term t, Term column) {
    return x.shape.size() == 2 ? at(x, {t, column})
                               : at(x, {terms.floorDivide(t, x.shape[1]), terms.modulo(t, x.shape[1]), column});
  };
  experts.router = in(node, 1);
  const std::vector<Term> &scores = experts.router.shape;
  const std::optional<int64_t> count = scores.empty() ? std::nullopt : terms.asInteger(scores.back());
  const std::optional<Folded> flat = count ? inShape(experts.router, {experts.tokens, scores.back()}) : std::nullopt;
  experts.count = count.value_or(0);
  experts.chosen = integer(node, "k", 1);
  if (!flat || experts.chosen < 1 || experts.chosen > experts.count)
    return refuse(node, "chooses " + std::to_string(experts.chosen) + " by scores of shape " + text(scores) + " for " +
                            terms.text(experts.tokens) + " tokens");
  experts.router = *flat;
  return Status::success();
}

/// Element `row` of a layer of the expert e, of what stands at `input`.
Term Fold::layerBody(const ExpertLayer &layer, Term e, Term row, Term column, Term input) {
  return terms.multiply(at(layer.weights, {e, row, column}), input);
}

/// The rows between the layers: activated ones, or activated ones times others; [tokens, chosen, columns].
Expected<Folded> Fold::activated(const Node &node, const Experts &experts, const Folded &chosen, Term columns) {
  const std::string activation = word(node, "activation_type", "relu");
  const int64_t fusion = activation == "swiglu" ? integer(node, "swiglu_fusion", 0) : 0;
  const bool isFused = fusion != 0;
  const auto rows = [&](const ExpertLayer &layer) {
    const std::vector<Term> shape{experts.tokens, chosen.shape[1], layer.weights.shape[1]};
    const std::vector<Term> i = variables(shape);
    const Term inner = reduceVariable(0, experts.hidden), e = at(chosen, {i[0], i[1]});
    Folded out = contraction(node, experts.router.type, shape,
                             layerBody(layer, e, i[2], inner, experts.input(i[0], inner)), {experts.hidden});
    if (layer.bias)
      out.element = terms.add(out.element, at(*layer.bias, {e, i[2]}));
    return out;
  };
  if (activation == "swiglu" && isFused == experts.hasThird)
    return refuse(node, isFused ? "a third layer beside one that is fused is not understood"
                                : "swiglu without a third layer that is not fused is not understood");
  const Term expected = isFused ? terms.scale(columns, 2) : columns;
  if (experts.first.weights.shape[1] != expected || (experts.hasThird && experts.third.weights.shape[1] != columns))
    return refuse(node, "its first layer has " + terms.text(experts.first.weights.shape[1]) + " rows, not " +
                            terms.text(expected));
  const std::vector<Term> shape{experts.tokens, chosen.shape[1], columns};
  const std::vector<Term> i = variables(shape);
  const Folded first = rows(experts.first);
  const auto part = [&](bool second) { // of a layer that is fused: every other row, or a half
    const Term offset = fusion == 1 ? terms.number(second) : second ? columns : terms.number(0);
    return at(first, {i[0], i[1], terms.add(terms.scale(i[2], fusion == 1 ? 2 : 1), offset)});
  };
  const Term gate = isFused ? part(false) : at(first, i);
  Term out = gate;
  if (activation == "silu" || activation == "swiglu")
    out = terms.multiply(gate, terms.call(Function::Sigmoid, {gate}));
  else if (activation == "relu")
    out = terms.call(Function::Relu, {gate});
  if (isFused)
    out = terms.multiply(out, part(true));
  else if (experts.hasThird)
    out = terms.multiply(out, at(rows(experts.third), i));
  return Folded{first.type, shape, out};
}

/// Weights of the experts chosen, [tokens, chosen], and which they are.
std::pair<Folded, Folded> Fold::routed(const Node &node, const Experts &experts) {
  Folded scores = experts.router;
  if (!experts.mixing) {
    LeafDefinition definition{"softmax", {scores.element}, {1}, {}, false, {}, -1};
    scores = leafValue(node, scores.type, scores.shape, std::move(definition));
  }
  const std::vector<Term> shape{experts.tokens, terms.number(double(experts.chosen))};
  LeafDefinition definition{"topk-indices", {scores.element}, {1, experts.count, experts.chosen, 1}, {}, true, 0, -1};
  const Folded chosen = leafValue(node, ElementType::I64, shape, std::move(definition));
  const Folded &mixing = experts.mixing ? *experts.mixing : scores;
  const Term t = terms.variable(0, shape[0]);
  Folded weights{scores.type, shape, at(mixing, {t, chosen.element})};
  if (flag(node, "normalize_routing_weights", false)) {
    const Folded sum = reduced(node, "sum", weights, {1}, false);
    weights.element = terms.multiply(weights.element, terms.power(at(sum, {t}), -1));
  }
  return {weights, chosen};
}

/// The layer as a whole.
Fold::Result Fold::mixed(const Node &node, const Experts &experts) {
  const auto isLayer = [&](const ExpertLayer &layer) {
    return layer.weights.shape.size() == 3 && terms.asInteger(layer.weights.shape[0]) == experts.count &&
           (!layer.bias || layer.bias->shape == std::vector<Term>{layer.weights.shape[0], layer.weights.shape[1]});
  };
  if (!isLayer(experts.first) || !isLayer(experts.second) || (experts.hasThird && !isLayer(experts.third)) ||
      experts.first.weights.shape[2] != experts.hidden || experts.second.weights.shape[1] != experts.hidden ||
      (experts.hasThird && experts.third.weights.shape[2] != experts.hidden))
    return refuse(node, "weights of shape " + text(experts.first.weights.shape) + " and " +
                            text(experts.second.weights.shape) + " do not fit " + std::to_string(experts.count) +
                            " experts of rows of " + terms.text(experts.hidden));
  const auto [weights, chosen] = routed(node, experts);
  const Term columns = experts.second.weights.shape[2];
  Expected<Folded> between = activated(node, experts, chosen, columns);
  if (!between)
    return between.takeError();
  const std::vector<Term> shape{experts.tokens, chosen.shape[1], experts.hidden};
  const std::vector<Term> i = variables(shape);
  const Term inner = reduceVariable(0, columns), e = at(chosen, {i[0], i[1]});
  Folded each = contraction(node, in(node, 0).type, shape,
                            layerBody(experts.second, e, i[2], inner, at(*between, {i[0], i[1], inner})), {columns});
  if (experts.second.bias)
    each.element = terms.add(each.element, at(*experts.second.bias, {e, i[2]}));
  const Term k = reduceVariable(0, shape[1]), t = i[0], o = terms.variable(1, experts.hidden);
  const Folded sum = contraction(node, in(node, 0).type, {experts.tokens, experts.hidden},
                                 terms.multiply(at(weights, {t, k}), at(each, {t, k, o})), {shape[1]});
  return std::vector<Folded>{*inShape(sum, in(node, 0).shape)};
}

/// MoE: (tokens, router, first layer, bias, second layer, bias, third layer, bias).
Fold::Result Fold::mixtureOfExperts(const Node &node) {
  Experts experts;
  if (Status status = checkExperts(node); !status)
    return status.takeError();
  if (Status status = addTokens(node, experts); !status)
    return status.takeError();
  const auto bias = [&](size_t input) { return has(node, input) ? &in(node, input) : nullptr; };
  experts.first = {in(node, 2), bias(3)};
  if (!has(node, 4))
    return refuse(node, "input 4, which it needs, is left out");
  experts.second = {in(node, 4), bias(5)};
  experts.hasThird = has(node, 6);
  if (experts.hasThird)
    experts.third = {in(node, 6), bias(7)};
  return mixed(node, experts);
}

/// QMoE: the same with weights of few bits, (tokens, router, then weights, scales and bias of each layer, zero points
/// of each, scores that are weights).
Fold::Result Fold::quantisedExperts(const Node &node) {
  Experts experts;
  if (Status status = checkExperts(node); !status)
    return status.takeError();
  if (Status status = addTokens(node, experts); !status)
    return status.takeError();
  if (word(node, "quant_type", "int") != "int")
    return refuse(node, "quant_type '" + shortened(word(node, "quant_type", "int")) + "' is not understood");
  if (integer(node, "weights_prepacked", 0) > 0)
    return refuse(node, "weights that are packed for one device (weights_prepacked) are not understood");
  if (const int64_t block = integer(node, "block_size", 0); block != 0)
    if (Status status = checkBlock(node, block); !status)
      return status.takeError();
  for (size_t i = 15; i < node.inputs.size(); i++)
    if (has(node, i))
      return refuse(node, "input " + std::to_string(i) + " is not understood");
  experts.hasThird = has(node, 8);
  ExpertLayer *const layers[] = {&experts.first, &experts.second, &experts.third};
  static const char *const overrides[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"};
  for (size_t i = 0; i < (experts.hasThird ? 3 : 2); i++) {
    const int64_t bits = integer(node, overrides[i], integer(node, "expert_weight_bits", 4));
    if (!has(node, 2 + 3 * i))
      return refuse(node, "input " + std::to_string(2 + 3 * i) + ", which it needs, is left out");
    const std::vector<Term> &stored = in(node, 2 + 3 * i).shape;
    const std::optional<int64_t> bytes = stored.size() == 3 ? terms.asInteger(stored[2]) : std::nullopt;
    if (!bytes || (bits != 4 && bits != 8) || !has(node, 3 + 3 * i))
      return refuse(node, "weights of shape " + text(stored) + " of " + std::to_string(bits) +
                              " bits, with scales or without, are not understood");
    const int64_t depth = *bytes * 8 / bits, block = integer(node, "block_size", 0);
    Expected<Folded> weights = blockedRows(node, {2 + 3 * i,
                                                  3 + 3 * i,
                                                  11 + i,
                                                  bits,
                                                  {stored[0], stored[1]},
                                                  depth,
                                                  block > 0 ? block : std::max<int64_t>(depth, 1),
                                                  block <= 0});
    if (!weights)
      return weights.takeError();
    *layers[i] = {*weights, has(node, 4 + 3 * i) ? &in(node, 4 + 3 * i) : nullptr};
  }
  std::optional<Folded> mixing;
  if (has(node, 14)) {
    mixing = inShape(in(node, 14), experts.router.shape);
    if (!mixing)
      return refuse(node, "router_weights of shape " + text(in(node, 14).shape) + " do not fit scores of shape " +
                              text(experts.router.shape));
    experts.mixing = &*mixing;
  }
  return mixed(node, experts);
}

} // namespace k2c::onnx

//===- DecoderExperts.cpp - experts of a graph that is written --------------------===//
//
// com.microsoft's MoE where its router is the model's: a softmax of scores of which the best are taken. Of its layers
// ONNX Runtime's kernel for processors takes the one form whose rows of gate and up take turns. Other routers are
// nodes, and what they choose, [batch, sequence, chosen], gathers the matrices of each token's experts:
//
//   y(t) = sum over k of factor(t, k) down(e(t, k)) (silu(gate(e(t, k)) x(t)) up(e(t, k)) x(t))
//
//===----------------------------------------------------------------------===//
#include "DecoderWriter.h"

#include <limits>

namespace k2c::onnx {

/// Whether groups leave experts out of the choice that it could take: of groups of one expert it takes the best.
static bool isLimited(const MoeSpec &moe) { return moe.topGroups < moe.groups && moe.groups < moe.experts; }

bool isMoeNode(const MoeSpec &moe) {
  return moe.scoring == Scoring::Softmax && !moe.correctionBias && !isLimited(moe) && moe.scale == 1;
}

/// Scores of the experts of the best groups; those of others are as low as can be.
std::string DecoderWriter::withoutOtherGroups(const std::string &choice) {
  const MoeSpec &moe = *spec.moe;
  const bool isSum = moe.groupScore == GroupScore::Top2Sum;
  const GraphWriter::Attributes last = {{"axis", int64_t(-1)}}, flat = {{"keepdims", int64_t(0)}};
  const std::string grouped = reshaped("router.groups", choice, {0, 0, moe.groups, moe.experts / moe.groups});
  std::string best = grouped;
  if (isSum) {
    best = fresh("router.two_best");
    graph.nodes("TopK", best, {grouped, graph.list({2})}, {best, best + ".ids"}, last);
  }
  const std::string scores =
      onnx(isSum ? "ReduceSum" : "ReduceMax", "router.group_scores", {best, graph.list({-1})}, flat);
  const std::string top = fresh("router.best_groups"), ids = top + ".ids";
  graph.nodes("TopK", top, {scores, graph.list({moe.topGroups})}, {top, ids}, last);
  const std::string none =
      onnx("Expand", "router.zeros", {graph.real(0), onnx("Shape", "router.groups_shape", {scores})});
  const std::string ones = onnx("Expand", "router.ones", {graph.real(1), onnx("Shape", "router.ids_shape", {ids})});
  const std::string isBest =
      onnx("Cast", "router.is_best", {onnx("ScatterElements", "router.marks", {none, ids, ones}, last)},
           {{"to", int64_t(ElementType::Bool)}});
  const std::string columns = onnx("Unsqueeze", "router.is_best_column", {isBest, graph.list({3})});
  const std::string kept =
      onnx("Where", "router.kept", {columns, grouped, graph.real(-std::numeric_limits<float>::infinity())});
  return reshaped("router.choice", kept, {0, 0, moe.experts});
}

/// Ids and factors of the chosen experts; where a MoE node routes itself, the logits twice.
std::vector<DecoderWriter::Value> DecoderWriter::routing(const LayerOp &op, const Value &logits) {
  const MoeSpec &moe = *spec.moe;
  if (isMoeNode(moe))
    return {logits, logits};
  const GraphWriter::Attributes last = {{"axis", int64_t(-1)}};
  const std::string scores = moe.scoring == Scoring::Sigmoid
                                 ? onnx("Sigmoid", "router.scores", {logits.names[0]})
                                 : onnx("Softmax", "router.scores", {logits.names[0]}, last);
  std::string choice = scores;
  if (moe.correctionBias)
    choice = onnx("Add", "router.biased", {choice, vectorOf(*spec.find(op.weights[0]))});
  if (isLimited(moe))
    choice = withoutOtherGroups(choice);
  const std::string top = fresh("router.best"), ids = top + ".ids";
  graph.nodes("TopK", top, {choice, graph.list({moe.topK})}, {top, ids}, last);
  std::string factors = onnx("GatherElements", "router.factors", {scores, ids}, last);
  if (moe.normalize) {
    const std::string sum = onnx("ReduceSum", "router.sum", {factors, graph.list({-1})}, {{"keepdims", int64_t(1)}});
    const std::string above = onnx("Add", "router.sum_above_0", {sum, graph.real(float(moe.normalizeEps))});
    factors = onnx("Div", "router.normalised", {factors, above});
  }
  if (moe.scale != 1)
    factors = onnx("Mul", "router.scaled", {factors, graph.real(float(moe.scale))});
  return {{{ids}, op.results[0]}, {{factors}, op.results[1]}};
}

DecoderWriter::Value DecoderWriter::experts(const LayerOp &op, const std::vector<Value> &in) {
  const std::string &x = in[0].names[0];
  return {
      {isMoeNode(*spec.moe) ? moeNode(op, x, in[1].names[0]) : chosenExperts(op, x, in[1].names[0], in[2].names[0])},
      op.results[0]};
}

/// The tensors of all experts of a layer, in order, alternatives innermost.
static std::vector<std::string> namesOf(const WeightFamily &family, int64_t layer) {
  std::vector<std::string> names;
  for (int64_t expert = 0; expert < family.experts; expert++)
    for (size_t i = 0; i < std::max<size_t>(1, family.alternatives.size()); i++)
      names.push_back(family.tensorName(layer, expert, i));
  return names;
}

/// The first and second matrices of all experts.
DecoderWriter::Names DecoderWriter::expertWeights(const LayerOp &op, DataTensor::Order order) {
  const MoeSpec &moe = *spec.moe;
  return {weights(own("experts.gate_up"),
                  {order, {moe.experts, 2 * moe.inter, spec.hidden}, namesOf(*spec.find(op.weights[0]), layer)}),
          weights(own("experts.down"), {DataTensor::Order::AsStored,
                                        {moe.experts, spec.hidden, moe.inter},
                                        namesOf(*spec.find(op.weights[1]), layer)})};
}

std::string DecoderWriter::moeNode(const LayerOp &op, const std::string &x, const std::string &logits) {
  const MoeSpec &moe = *spec.moe;
  const Names of = expertWeights(op, DataTensor::Order::InTurns);
  const std::string rows = reshaped("router.rows", logits, {-1, moe.experts});
  return graph.node("MoE", fresh("experts"), {x, rows, of[0], "", of[1]},
                    {{"k", moe.topK},
                     {"activation_type", "swiglu"},
                     {"swiglu_fusion", int64_t(1)},
                     {"activation_alpha", 1.0},
                     {"activation_beta", 0.0},
                     {"normalize_routing_weights", int64_t(moe.normalize)}},
                    "com.microsoft");
}

std::string DecoderWriter::chosenExperts(const LayerOp &op, const std::string &x, const std::string &ids,
                                         const std::string &factors) {
  const Names of = expertWeights(op, DataTensor::Order::AsStored);
  const std::string column = onnx("Unsqueeze", "experts.column", {x, graph.list({2, 4})});
  const std::string both =
      onnx("MatMul", "experts.rows", {onnx("Gather", "experts.chosen_gate_up", {of[0], ids}), column});
  const Names sides = split("experts.sides", both, 3, {spec.moe->inter, spec.moe->inter});
  const std::string down = onnx("Gather", "experts.chosen_down", {of[1], ids});
  const std::string each = onnx("MatMul", "experts.each", {down, gated(sides[0], sides[1])});
  const std::string flat = onnx("Squeeze", "experts.outputs", {each, graph.list({4})});
  const std::string weighed =
      onnx("Mul", "experts.weighed", {flat, onnx("Unsqueeze", "experts.factors", {factors, graph.list({3})})});
  return onnx("ReduceSum", "experts", {weighed, graph.list({2})}, {{"keepdims", int64_t(0)}});
}

} // namespace k2c::onnx

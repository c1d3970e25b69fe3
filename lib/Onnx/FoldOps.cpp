//===- FoldOps.cpp - which op is lowered by what, and norms -------------------------------===//
//
// The table of all ops that are understood, by their names; those of other domains than ai.onnx stand behind theirs.
// A norm is lowered to what exporters write for it otherwise: a mean of squares, a power and a product.
//
//===----------------------------------------------------------------------===//
#include "Fold.h"

namespace k2c::onnx {

/// Ops that move, cut, join and make elements.
const Fold::Table &Fold::movingOps() {
  static const Table table = {
      {"Identity", {&Fold::identity}},
      {"Dropout", {&Fold::dropout}},
      {"Shape", {&Fold::shapeOf}},
      {"Size", {&Fold::sizeOf}},
      {"Squeeze", {&Fold::squeeze}},
      {"Unsqueeze", {&Fold::unsqueeze}},
      {"Reshape", {&Fold::reshape, 2}},
      {"Flatten", {&Fold::flatten}},
      {"Transpose", {&Fold::transpose}},
      {"Expand", {&Fold::expand, 2}},
      {"Tile", {&Fold::tile, 2}},
      {"Slice", {&Fold::slice, 3}},
      {"Split", {&Fold::split}},
      {"SplitToSequence", {&Fold::splitToSequence}},
      {"SequenceAt", {&Fold::sequenceAt, 2}},
      {"Concat", {&Fold::concat, allInputs}},
      {"Gather", {&Fold::gather, 2}},
      {"GatherND", {&Fold::gatherNd, 2}},
      {"GatherElements", {&Fold::gatherElements, 2}},
      {"Range", {&Fold::range, 3}},
      {"ConstantOfShape", {&Fold::constantOfShape}},
      {"Trilu", {&Fold::trilu}},
  };
  return table;
}

/// Ops on elements at the same indices.
const Fold::Table &Fold::elementWiseOps() {
  static const Table table = {
      {"Cast", {&Fold::cast}},
      {"CastLike", {&Fold::cast, 2}},
      {"Where", {&Fold::where, 3}},
      {"Add", {&Fold::arithmetic, allInputs}},
      {"Sub", {&Fold::arithmetic, allInputs}},
      {"Mul", {&Fold::arithmetic, allInputs}},
      {"Div", {&Fold::arithmetic, allInputs}},
      {"Mod", {&Fold::arithmetic, allInputs}},
      {"Pow", {&Fold::arithmetic, allInputs}},
      {"Sum", {&Fold::arithmetic, allInputs}},
      {"Mean", {&Fold::arithmetic, allInputs}},
      {"Max", {&Fold::arithmetic, allInputs}},
      {"Min", {&Fold::arithmetic, allInputs}},
      {"Equal", {&Fold::compare, 2}},
      {"Less", {&Fold::compare, 2}},
      {"LessOrEqual", {&Fold::compare, 2}},
      {"Greater", {&Fold::compare, 2}},
      {"GreaterOrEqual", {&Fold::compare, 2}},
      {"And", {&Fold::logical, 2}},
      {"Or", {&Fold::logical, 2}},
      {"Xor", {&Fold::logical, 2}},
      {"Not", {&Fold::logical}},
      {"Neg", {&Fold::unary}},
      {"Sqrt", {&Fold::unary}},
      {"Reciprocal", {&Fold::unary}},
      {"Exp", {&Fold::unary}},
      {"Log", {&Fold::unary}},
      {"Sin", {&Fold::unary}},
      {"Cos", {&Fold::unary}},
      {"Tanh", {&Fold::unary}},
      {"Erf", {&Fold::unary}},
      {"Sigmoid", {&Fold::unary}},
      {"Swish", {&Fold::unary}},
      {"com.microsoft:QuickGelu", {&Fold::unary}},
      {"Abs", {&Fold::unary}},
      {"Sign", {&Fold::unary}},
      {"Relu", {&Fold::unary}},
      {"Round", {&Fold::unary}},
      {"Ceil", {&Fold::unary}},
      {"Floor", {&Fold::unary}},
      {"IsNaN", {&Fold::unary}},
      {"IsInf", {&Fold::isInfinite}},
      {"Gelu", {&Fold::gelu}},
      {"com.microsoft:Gelu", {&Fold::gelu}},
      {"Clip", {&Fold::clip}},
  };
  return table;
}

/// Ops over axes, and those of com.microsoft.
const Fold::Table &Fold::otherOps() {
  static const Table table = {
      {"ReduceSum", {&Fold::reduce}},
      {"ReduceMean", {&Fold::reduce}},
      {"ReduceMax", {&Fold::reduce}},
      {"ReduceMin", {&Fold::reduce}},
      {"ReduceSumSquare", {&Fold::reduce}},
      {"ReduceL2", {&Fold::reduce}},
      {"Softmax", {&Fold::softmax}},
      {"LogSoftmax", {&Fold::softmax}},
      {"TopK", {&Fold::topK, 2}},
      {"CumSum", {&Fold::cumulativeSum, 2}},
      {"MatMul", {&Fold::matMul, 2}},
      {"com.microsoft:FusedMatMul", {&Fold::fusedMatMul, 2}},
      {"Gemm", {&Fold::gemm, 2}},
      {"com.microsoft:FusedGemm", {&Fold::fusedGemm, 2}},
      {"ScatterElements", {&Fold::scatterElements, 3}},
      {"NonZero", {&Fold::nonZero}},
      {"OneHot", {&Fold::oneHot, 3}},
      {"ScatterND", {&Fold::scatterNd, 3}},
      {"RMSNormalization", {&Fold::rmsNorm, 2}},
      {"SimplifiedLayerNormalization", {&Fold::rmsNorm, 2}},
      {"com.microsoft:SkipSimplifiedLayerNormalization", {&Fold::skipRmsNorm, 3}},
      {"RotaryEmbedding", {&Fold::rotaryEmbedding, 3}},
      {"com.microsoft:RotaryEmbedding", {&Fold::rotaryEmbedding, 4}},
      {"Attention", {&Fold::standardAttention, 3}},
      {"com.microsoft:GroupQueryAttention", {&Fold::groupQueryAttention}},
      {"com.microsoft:MultiHeadAttention", {&Fold::multiHeadAttention}},
      {"com.microsoft:MatMulNBits", {&Fold::matMulNBits, 3}},
      {"com.microsoft:GatherBlockQuantized", {&Fold::gatherBlockQuantized, 3}},
      {"DequantizeLinear", {&Fold::dequantizeLinear, 2}},
      {"com.microsoft:DequantizeLinear", {&Fold::dequantizeLinear, 2}},
      {"com.microsoft:MoE", {&Fold::mixtureOfExperts, 3}},
      {"com.microsoft:QMoE", {&Fold::quantisedExperts, 4}},
  };
  return table;
}

const Fold::Lowering *Fold::lowering(const std::string &op) {
  for (const Table *table : {&movingOps(), &elementWiseOps(), &otherOps()})
    if (const auto found = table->find(op); found != table->end())
      return &found->second;
  return nullptr;
}

/// Said of a weight or a bias of a norm.
constexpr char weightSizes[] = "its weight or bias has sizes that its operand does not have";

/// x / sqrt(mean of x squared + eps) times a weight, over the last axis.
Fold::Result Fold::rmsNorm(const Node &node) {
  Folded value = in(node, 0);
  const int64_t rank = int64_t(value.shape.size()), given = integer(node, "axis", -1);
  if (rank < 1 || (given != -1 && given != rank - 1))
    return refuse(node, "normalises from axis " + std::to_string(given) + " of a tensor of rank " +
                            std::to_string(rank) + "; the last one is understood");
  if (broadcast({value.shape, in(node, 1).shape}) != value.shape)
    return refuse(node, weightSizes);
  Folded squares = value;
  squares.element = terms.power(value.element, 2);
  const Folded sum = reduced(node, "sum", squares, {rank - 1}, true);
  const Term mean = terms.multiply(sum.element, terms.power(value.shape.back(), -1));
  const Term scale = terms.power(terms.plus(mean, real(node, "epsilon", 1e-5)), -0.5);
  value.element = terms.multiply(terms.multiply(value.element, scale), spread(in(node, 1), value.shape));
  return std::vector<Folded>{value};
}

/// The norm of a sum, and the sum: outputs 0 and 3. The mean and the divisor have no value.
Fold::Result Fold::skipRmsNorm(const Node &node) {
  const Expected<std::vector<Term>> shape = commonShape(node, 2);
  if (!shape)
    return shape.error();
  if (shape->empty() || broadcast({*shape, in(node, 2).shape}) != *shape ||
      (has(node, 3) && broadcast({*shape, in(node, 3).shape}) != *shape))
    return refuse(node, weightSizes);
  Term sum = terms.add(spread(in(node, 0), *shape), spread(in(node, 1), *shape));
  if (has(node, 3))
    sum = terms.add(sum, spread(in(node, 3), *shape));
  LeafDefinition definition;
  definition.op = "shared";
  definition.bodies = {sum};
  const Folded whole = leafValue(node, in(node, 0).type, *shape, std::move(definition));
  Folded squares = whole;
  squares.element = terms.power(whole.element, 2);
  const Folded total = reduced(node, "sum", squares, {int64_t(shape->size()) - 1}, true);
  const Term mean = terms.multiply(total.element, terms.power(shape->back(), -1));
  const Term scale = terms.power(terms.plus(mean, real(node, "epsilon", 1e-5)), -0.5);
  Folded norm = whole;
  norm.element = terms.multiply(terms.multiply(whole.element, scale), spread(in(node, 2), *shape));
  return std::vector<Folded>{norm, {}, {}, whole}; // not the mean, nor what it was divided by
}

} // namespace k2c::onnx

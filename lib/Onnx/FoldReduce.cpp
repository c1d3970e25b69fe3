//===- FoldReduce.cpp - ops over an axis --------------------------------------------===//
//
// A contraction is a leaf "sum" whose body is the product under the sum: its own indices are the first variables, those
// that it runs over stand at firstReduced and behind. Softmax, TopK and running sums are leaves likewise.
//
//===----------------------------------------------------------------------===//
#include "Fold.h"

#include "base/Utf8.h"
#include <algorithm>
#include <unordered_map>

namespace k2c::onnx {

Folded Fold::contraction(const Node &node, ElementType type, std::vector<Term> shape, Term body,
                         const std::vector<Term> &running) {
  std::vector<bool> isRun(running.size(), false);
  bool isAny = false;
  for (Term variable : terms.variablesOf({body}))
    if (terms.tag(variable) >= firstReduced)
      isAny = isRun[size_t(terms.tag(variable) - firstReduced)] = true;
  for (size_t i = 0; i < running.size(); i++) // the same for all of an axis
    if (!isRun[i])
      body = terms.multiply(body, running[i]);
  if (!isAny)
    return Folded{type, std::move(shape), body};
  LeafDefinition definition;
  definition.op = "sum";
  definition.bodies = {body};
  return leafValue(node, type, std::move(shape), std::move(definition));
}

Folded Fold::reduced(const Node &node, const char *op, const Folded &value, const std::vector<int64_t> &axes,
                     bool keep) {
  std::vector<Term> shape, indices, running;
  for (size_t i = 0; i < value.shape.size(); i++) {
    const bool isReduced = std::count(axes.begin(), axes.end(), int64_t(i)) > 0;
    if (isReduced) {
      indices.push_back(reduceVariable(int(running.size()), value.shape[i]));
      running.push_back(value.shape[i]);
    } else {
      indices.push_back(terms.variable(int32_t(shape.size()), value.shape[i]));
    }
    if (!isReduced || keep)
      shape.push_back(isReduced ? terms.number(1) : value.shape[i]);
  }
  LeafDefinition definition;
  definition.op = op;
  definition.bodies = {at(value, indices)};
  if (definition.op == "sum")
    return contraction(node, value.type, shape, definition.bodies[0], running);
  if (terms.variables(definition.bodies[0]) <= firstReduced) // the same for all
    return Folded{value.type, shape, definition.bodies[0]};
  return leafValue(node, value.type, shape, std::move(definition));
}

/// ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceSumSquare, ReduceL2.
Fold::Result Fold::reduce(const Node &node) {
  Folded value = in(node, 0);
  const int64_t rank = int64_t(value.shape.size());
  const auto given = axes(node, 1, rank);
  if (!given)
    return given.error();
  std::vector<int64_t> over = given->value_or(std::vector<int64_t>());
  if (over.empty() && !flag(node, "noop_with_empty_axes", false))
    for (int64_t i = 0; i < rank; i++)
      over.push_back(i);
  std::sort(over.begin(), over.end());
  if (node.op == "ReduceSumSquare" || node.op == "ReduceL2")
    value.element = terms.power(value.element, 2);
  for (int64_t axis : over)
    if (!isFloat(value) && terms.asInteger(value.shape[size_t(axis)]) == 0 && node.op[6] == 'M')
      return refuse(node, "the most or least of no elements of " + name(value.type) + " is not understood");
  const char *const op = node.op == "ReduceMax" ? "max" : node.op == "ReduceMin" ? "min" : "sum";
  Folded out = reduced(node, op, value, over, flag(node, "keepdims", true));
  if (node.op == "ReduceL2")
    out.element = terms.power(out.element, 0.5);
  for (int64_t axis : over)
    if (node.op == "ReduceMean")
      out.element = terms.multiply(out.element, terms.power(value.shape[size_t(axis)], -1));
  return std::vector<Folded>{out};
}

Fold::Result Fold::softmax(const Node &node) {
  const Folded &value = in(node, 0);
  const Expected<int64_t> axis = axisOf(node, -1, value.shape.size());
  if (!axis)
    return axis.error();
  LeafDefinition definition;
  definition.op = node.op == "Softmax" ? "softmax" : "log-softmax";
  definition.bodies = {value.element};
  definition.numbers = {*axis};
  return std::vector<Folded>{leafValue(node, value.type, value.shape, std::move(definition))};
}

Fold::Result Fold::topK(const Node &node) {
  const Folded &value = in(node, 0);
  const Expected<int64_t> given = axisOf(node, -1, value.shape.size());
  if (!given)
    return given.error();
  const int64_t axis = *given;
  const std::optional<std::vector<int64_t>> count = numbers(in(node, 1));
  if (!count || count->size() != 1)
    return refuse(node, "how many it chooses is not known before a run");
  const std::optional<int64_t> size = terms.asInteger(value.shape[size_t(axis)]);
  if (!size || (*count)[0] < 1 || (*count)[0] > *size)
    return refuse(node, "chooses " + std::to_string((*count)[0]) + " of " + terms.text(value.shape[size_t(axis)]));
  std::vector<Term> shape = value.shape;
  shape[size_t(axis)] = terms.number(double((*count)[0]));
  LeafDefinition definition;
  definition.bodies = {value.element};
  definition.numbers = {axis, *size, (*count)[0], flag(node, "largest", true)};
  definition.op = "topk-indices";
  definition.min = 0;
  Folded chosen = leafValue(node, ElementType::I64, shape, std::move(definition));
  if (*size == 1) // the only one
    chosen.element = terms.number(0);
  // The values are the operand's at the indices chosen.
  std::vector<Term> indices = variables(shape);
  indices[size_t(axis)] = chosen.element;
  return std::vector<Folded>{reshaped(value, shape, indices), chosen};
}

Fold::Result Fold::cumulativeSum(const Node &node) {
  const Folded &value = in(node, 0);
  const std::optional<std::vector<int64_t>> given = numbers(in(node, 1));
  const int64_t rank = int64_t(value.shape.size());
  if (!given || given->size() != 1 || (*given)[0] < -rank || (*given)[0] >= rank)
    return refuse(node, "its axis is not a constant");
  const int64_t axis = (*given)[0] < 0 ? (*given)[0] + rank : (*given)[0];
  const bool isExclusive = flag(node, "exclusive", false), isReverse = flag(node, "reverse", false);
  const Term index = terms.variable(int32_t(axis), value.shape[size_t(axis)]);
  if (terms.isNumber(value.element) && !isReverse) {
    const Term count = terms.plus(index, isExclusive ? 0 : 1);
    return std::vector<Folded>{{value.type, value.shape, terms.multiply(value.element, count)}};
  }
  LeafDefinition definition{"running-sum", {value.element}, {axis, isExclusive, isReverse}, {}, false, {}, -1};
  return std::vector<Folded>{leafValue(node, value.type, value.shape, std::move(definition))};
}

Fold::Result Fold::matMul(const Node &node) { return product(node, in(node, 0), in(node, 1)); }

/// MatMul of transposed operands, and a factor.
Fold::Result Fold::fusedMatMul(const Node &node) {
  if (flag(node, "transBatchA", false) || flag(node, "transBatchB", false))
    return refuse(node, "operands whose batches are transposed are not understood");
  const auto operand = [&](size_t input, const char *turns) {
    Folded out = in(node, input);
    const size_t rank = out.shape.size();
    if (rank < 2 || !flag(node, turns, false))
      return out;
    std::swap(out.shape[rank - 2], out.shape[rank - 1]);
    std::vector<Term> indices = variables(out.shape);
    std::swap(indices[rank - 2], indices[rank - 1]);
    out.element = at(in(node, input), indices);
    return out;
  };
  Result out = product(node, operand(0, "transA"), operand(1, "transB"));
  if (out)
    (*out)[0].element = terms.scale((*out)[0].element, real(node, "alpha", 1));
  return out;
}

/// Rows of `a` times columns of `b`.
Fold::Result Fold::product(const Node &node, Folded a, Folded b) {
  if (a.shape.empty() || b.shape.empty())
    return refuse(node, "an operand has rank 0");
  const bool isRow = a.shape.size() == 1, isColumn = b.shape.size() == 1;
  if (isRow) { // a vector is a matrix of one row, or of one column
    a.element = at(a, {terms.variable(1, a.shape[0])});
    a.shape.insert(a.shape.begin(), terms.number(1));
  }
  if (isColumn)
    b.shape.push_back(terms.number(1));
  const std::optional<std::vector<Term>> outer = broadcast(
      {std::vector<Term>(a.shape.begin(), a.shape.end() - 2), std::vector<Term>(b.shape.begin(), b.shape.end() - 2)});
  const Term depth = a.shape.back();
  if (!outer || depth != b.shape[b.shape.size() - 2])
    return refuse(node, "an operand has " + terms.text(depth) + " columns, the other " +
                            terms.text(b.shape[b.shape.size() - 2]) + " rows");
  std::vector<Term> shape = *outer;
  shape.push_back(a.shape[a.shape.size() - 2]);
  shape.push_back(b.shape.back());
  const size_t rank = shape.size();
  const Term inner = reduceVariable(0, depth);
  const auto operand = [&](const Folded &of, bool isLeft) {
    std::vector<Term> indices;
    for (size_t i = 0; i + 2 < of.shape.size(); i++) {
      const size_t axis = rank - of.shape.size() + i;
      indices.push_back(terms.asInteger(of.shape[i]) == 1 ? terms.number(0)
                                                          : terms.variable(int32_t(axis), shape[axis]));
    }
    indices.push_back(isLeft ? terms.variable(int32_t(rank - 2), shape[rank - 2]) : inner);
    indices.push_back(isLeft ? inner : terms.variable(int32_t(rank - 1), shape[rank - 1]));
    return at(of, indices);
  };
  const Term body = terms.asInteger(depth) == 0 ? Term(0) : terms.multiply(operand(a, true), operand(b, false));
  Folded out = contraction(node, a.type, shape, body, {depth});
  // Axes of vectors go again.
  std::vector<Term> kept = shape, indices;
  if (isColumn)
    kept.pop_back();
  if (isRow)
    kept.erase(kept.end() - (isColumn ? 1 : 2));
  if (!isRow && !isColumn)
    return std::vector<Folded>{out};
  for (size_t i = 0; i < rank; i++)
    indices.push_back(i + 1 == rank ? (isColumn ? terms.number(0) : terms.variable(int32_t(kept.size() - 1), shape[i]))
                      : i + 2 == rank && isRow ? terms.number(0)
                                               : terms.variable(int32_t(i), shape[i]));
  return std::vector<Folded>{reshaped(out, kept, indices)};
}

Fold::Result Fold::gemm(const Node &node) {
  Folded a = in(node, 0), b = in(node, 1);
  if (a.shape.size() != 2 || b.shape.size() != 2)
    return refuse(node, "its operands have ranks " + std::to_string(a.shape.size()) + " and " +
                            std::to_string(b.shape.size()) + ", not 2");
  const bool turnsA = flag(node, "transA", false), turnsB = flag(node, "transB", false);
  const Term rows = a.shape[turnsA], depth = a.shape[!turnsA], columns = b.shape[!turnsB];
  if (b.shape[turnsB] != depth)
    return refuse(node, "an operand has " + terms.text(depth) + " columns, the other " + terms.text(b.shape[turnsB]) +
                            " rows");
  const std::vector<Term> shape{rows, columns};
  const Term row = terms.variable(0, rows), column = terms.variable(1, columns), inner = reduceVariable(0, depth);
  const auto turned = [](bool turns, Term x, Term y) {
    return turns ? std::vector<Term>{y, x} : std::vector<Term>{x, y};
  };
  const Term body = terms.multiply(at(a, turned(turnsA, row, inner)), at(b, turned(turnsB, inner, column)));
  Folded out = contraction(node, a.type, shape, body, {depth});
  out.element = terms.scale(out.element, real(node, "alpha", 1));
  if (has(node, 2)) {
    if (broadcast({shape, in(node, 2).shape}) != shape)
      return refuse(node, "its third operand does not fit the others");
    out.element = terms.add(out.element, terms.scale(spread(in(node, 2), shape), real(node, "beta", 1)));
  }
  return std::vector<Folded>{out};
}

/// Gemm, and a function of its result.
Fold::Result Fold::fusedGemm(const Node &node) {
  static const std::unordered_map<std::string, Function> functions = {
      {"Relu", Function::Relu}, {"Sigmoid", Function::Sigmoid}, {"Tanh", Function::Tanh}};
  const std::string activation = word(node, "activation", "");
  const auto function = functions.find(activation);
  if (function == functions.end())
    return refuse(node, "activation '" + shortened(activation) + "' is not understood");
  Result out = gemm(node);
  if (out)
    (*out)[0].element = terms.call(function->second, {(*out)[0].element});
  return out;
}

} // namespace k2c::onnx

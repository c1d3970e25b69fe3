//===- RefusalHelpers.h - single nodes, folded ------------------------------------===//
//
// A table's row is a node: its op, operands and attributes, and what Fold says about it:
//
//   {"MatMul", {reals({2, 3}), reals({4, 5})}, {}, "an operand has 3 columns, the other 4 rows"}
//
// A row whose text is empty is folded.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_UNIT_ONNX_REFUSALHELPERS_H
#define K2C_UNIT_ONNX_REFUSALHELPERS_H

#include "Fold.h"
#include "GraphBuilder.h"
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

namespace k2c::onnx::test {

/// An operand of a node: an input of the graph, a constant, or none.
struct Operand {
  ElementType type = ElementType::None; ///< None: the operand is left out
  std::vector<SizeOf> shape;
  std::optional<std::vector<double>> values; ///< of a constant
};

/// Inputs of the graph, of real numbers and of integers.
inline Operand reals(std::vector<SizeOf> shape) { return {ElementType::F32, std::move(shape), std::nullopt}; }
inline Operand integers(std::vector<SizeOf> shape) { return {ElementType::I64, std::move(shape), std::nullopt}; }
/// Constants: a number, and a list of integers.
inline Operand number(double value, ElementType type = ElementType::F32) {
  return {type, {}, std::vector<double>{value}};
}
inline Operand list(std::vector<double> values) {
  return {ElementType::I64, {int64_t(values.size())}, std::move(values)};
}
inline Operand leftOut() { return {}; }

/// The operand as a value of the graph.
inline ValueId add(GraphBuilder &graph, const Operand &operand, const std::string &name) {
  if (operand.type == ElementType::None)
    return noValue;
  if (!operand.values)
    return graph.input(name, operand.type, operand.shape);
  std::vector<int64_t> shape;
  for (const SizeOf &size : operand.shape)
    shape.push_back(size.size);
  return graph.constant(name, shape, *operand.values, operand.type);
}

/// Folds a graph whose nodes are all read; its error, without one "".
inline std::string refusalOf(const Graph &graph) {
  Fold fold(graph, InputRoles());
  const Status status = fold.run();
  return status ? "" : status.error().text();
}

struct OneNode {
  std::string op; ///< behind its domain and ':', where that is not ai.onnx
  std::vector<Operand> operands;
  GraphBuilder::Attributes attributes;
  std::string text; ///< part of its error; "": it is folded
  size_t outputs = 1;
};

/// The graph of a node alone.
inline Graph graphOf(const OneNode &one) {
  GraphBuilder graph;
  std::vector<ValueId> inputs;
  for (const Operand &operand : one.operands)
    inputs.push_back(add(graph, operand, "x" + std::to_string(inputs.size())));
  const size_t colon = one.op.find(':');
  const std::string op = colon == std::string::npos ? one.op : one.op.substr(colon + 1);
  graph.nodes(op, inputs, one.outputs, one.attributes);
  Node &node = graph.graph.nodes.back();
  if (colon != std::string::npos) {
    node.domain = one.op.substr(0, colon);
    node.version = 1;
  }
  return std::move(graph.graph);
}

/// Expects of each node that it is folded, or refused with its text, its place and a remedy.
inline void expectEach(const std::vector<OneNode> &nodes) {
  for (const OneNode &one : nodes) {
    const Graph graph = graphOf(one);
    const std::string refusal = refusalOf(graph);
    SCOPED_TRACE(one.op + ": " + (one.text.empty() ? "is folded" : one.text));
    if (one.text.empty()) {
      EXPECT_EQ(refusal, "");
      continue;
    }
    EXPECT_NE(refusal.find(one.text), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("tiny/tiny.onnx: node '" + graph.nodes[0].name + "'"), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("docs/Onnx.md says what is read"), std::string::npos) << refusal;
  }
}

} // namespace k2c::onnx::test

#endif // K2C_UNIT_ONNX_REFUSALHELPERS_H

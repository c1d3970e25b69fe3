//===- RefusalSteps.h - single nodes of a step, folded ----------------------------===//
//
// Nodes as those of RefusalHelpers.h, whose operands may also be what a step has: caches of past tokens, a mask of
// padding, positions, and how many tokens there are.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_UNIT_ONNX_REFUSALSTEPS_H
#define K2C_UNIT_ONNX_REFUSALSTEPS_H

#include "RefusalHelpers.h"
#include <algorithm>

namespace k2c::onnx::test {

struct StepOperand : Operand {
  enum class Role {
    Own,       ///< none: as an operand of any node
    Again,     ///< the same value as the operand `count`
    Cache,     ///< keys or values of past tokens
    Mask,      ///< [batch, past + sequence], 1 everywhere
    Positions, ///< of a step without padding, [batch, sequence]
    Total      ///< past + sequence + `count`, a scalar
  };
  StepOperand(Operand operand, Role role = Role::Own, int64_t count = 0)
      : Operand(std::move(operand)), role(role), count(count) {}
  Role role;
  int64_t count;
};

inline StepOperand again(int64_t operand) { return {leftOut(), StepOperand::Role::Again, operand}; }
inline StepOperand cache(std::vector<SizeOf> shape) { return {reals(std::move(shape)), StepOperand::Role::Cache}; }
inline StepOperand mask() { return {leftOut(), StepOperand::Role::Mask}; }
inline StepOperand positions() { return {integers({"batch", "sequence"}), StepOperand::Role::Positions}; }
inline StepOperand total(int64_t added) { return {leftOut(), StepOperand::Role::Total, added}; }

/// A constant of bytes that are all 0.
inline Operand bytes(std::vector<SizeOf> shape) {
  int64_t count = 1;
  for (const SizeOf &size : shape)
    count *= size.size;
  return {ElementType::U8, std::move(shape), std::vector<double>(size_t(count), 0)};
}

/// Operands by their numbers.
template <class T> using Changes = std::vector<std::pair<size_t, T>>;

/// Operands with some replaced or added.
template <class T> std::vector<T> changed(std::vector<T> operands, const Changes<T> &changes) {
  for (const auto &[number, operand] : changes) {
    operands.resize(std::max(operands.size(), number + 1), T(leftOut()));
    operands[number] = operand;
  }
  return operands;
}

/// As OneNode.
struct StepNode {
  std::string op;
  std::vector<StepOperand> operands;
  GraphBuilder::Attributes attributes;
  std::string text;
};

/// A node in a graph that has a mask beside what the node reads.
class StepGraph {
public:
  explicit StepGraph(const StepNode &step) {
    roles.masks = {builder.input("mask", ElementType::I64, {"batch", "total"})};
    std::vector<ValueId> inputs;
    for (const StepOperand &operand : step.operands)
      inputs.push_back(operand.role == StepOperand::Role::Again
                           ? inputs[size_t(operand.count)]
                           : valueOf(operand, "x" + std::to_string(inputs.size())));
    const size_t colon = step.op.find(':');
    builder.nodes(step.op.substr(colon == std::string::npos ? 0 : colon + 1), inputs, 3, step.attributes);
    if (colon != std::string::npos)
      builder.graph.nodes.back().domain = step.op.substr(0, colon);
  }

  /// The error of folding it; without one "".
  std::string refusal() const {
    const Status status = Fold(builder.graph, roles).run();
    return status ? "" : status.error().text();
  }
  /// The name of the node.
  const std::string &name() const { return builder.graph.nodes.back().name; }

private:
  ValueId valueOf(const StepOperand &operand, const std::string &name) {
    if (operand.role == StepOperand::Role::Mask)
      return roles.masks[0];
    if (operand.role == StepOperand::Role::Total)
      return totalOf(operand.count);
    const ValueId value = add(builder, operand, name);
    if (operand.role == StepOperand::Role::Cache)
      roles.caches.push_back(value);
    if (operand.role == StepOperand::Role::Positions)
      roles.positions.push_back(value);
    return value;
  }
  ValueId totalOf(int64_t added) {
    const ValueId sizes = builder.node("Shape", {roles.masks[0]});
    const ValueId size = builder.node("Gather", {sizes, builder.number(1, ElementType::I64)});
    return builder.node("Add", {size, builder.number(double(added), ElementType::I64)});
  }

  GraphBuilder builder;
  InputRoles roles;
};

/// Expects of each node that it is folded, or refused with its text at its place.
inline void expectEachStep(const std::vector<StepNode> &nodes) {
  for (const StepNode &step : nodes) {
    SCOPED_TRACE(step.op + ": " + (step.text.empty() ? "is folded" : step.text));
    const StepGraph graph(step);
    const std::string refusal = graph.refusal();
    if (step.text.empty()) {
      EXPECT_EQ(refusal, "");
      continue;
    }
    EXPECT_NE(refusal.find(step.text), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("node '" + graph.name() + "'"), std::string::npos) << refusal;
  }
}

} // namespace k2c::onnx::test

#endif // K2C_UNIT_ONNX_REFUSALSTEPS_H

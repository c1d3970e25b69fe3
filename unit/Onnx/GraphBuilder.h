//===- GraphBuilder.h - graphs in memory ----------------------------------------===//
//
// Makes the graph that a file would be read to, node by node; no file is written:
//
//   GraphBuilder graph;
//   const ValueId x = graph.input("x", ElementType::F32, {"batch", 8});
//   graph.output(graph.node("Relu", {x}), "y", {"batch", 8});
//
//===----------------------------------------------------------------------===//
#ifndef K2C_UNIT_ONNX_GRAPHBUILDER_H
#define K2C_UNIT_ONNX_GRAPHBUILDER_H

#include "Graph.h"
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace k2c::onnx::test {

/// A size of a port: a number, or a symbol's name.
struct SizeOf : Port::Size {
  SizeOf(int64_t number) { size = number; }
  SizeOf(int number) { size = number; }
  SizeOf(const char *name) { symbol = name; }
};

/// An attribute by its value.
struct AttributeOf : Attribute {
  AttributeOf(int value) { integer = value; }
  AttributeOf(int64_t value) { integer = value; }
  AttributeOf(double value) {
    kind = Kind::Float;
    real = float(value);
  }
  AttributeOf(const char *value) {
    kind = Kind::String;
    text = value;
  }
  AttributeOf(std::vector<int64_t> values) {
    kind = Kind::Ints;
    integers = std::move(values);
  }
};

class GraphBuilder {
public:
  using Attributes = std::vector<std::pair<std::string, AttributeOf>>;

  GraphBuilder() {
    graph.path = "tiny/tiny.onnx";
    graph.irVersion = 8;
    graph.files = std::make_shared<Files>();
  }

  ValueId input(const std::string &name, ElementType type, const std::vector<SizeOf> &shape) {
    const ValueId value = named(name);
    graph.inputs.push_back({value, type, std::vector<Port::Size>(shape.begin(), shape.end())});
    return value;
  }

  /// A constant; `type` F32, F64, BF16 (of numbers that are exact in it) or I64, I8, U8, Bool. Of another type its
  /// bytes are `values`.
  ValueId constant(const std::string &name, std::vector<int64_t> shape, const std::vector<double> &values,
                   ElementType type = ElementType::F32) {
    std::string bytes;
    for (double value : values)
      bytes += stored(value, type);
    const ValueId value = named(name);
    graph.constants[value] = {name, type, std::move(shape), -1, 0, std::make_shared<const std::string>(bytes)};
    return value;
  }
  ValueId number(double value, ElementType type = ElementType::F32) { return constant("number", {}, {value}, type); }
  /// A list of integers: [n] of I64.
  ValueId list(const std::vector<int64_t> &values) {
    return constant("list", {int64_t(values.size())}, std::vector<double>(values.begin(), values.end()),
                    ElementType::I64);
  }

  /// The first output of a new node of ai.onnx 20.
  ValueId node(const std::string &op, std::vector<ValueId> inputs, const Attributes &attributes = {}) {
    return nodes(op, std::move(inputs), 1, attributes)[0];
  }
  /// All outputs of one.
  std::vector<ValueId> nodes(const std::string &op, std::vector<ValueId> inputs, size_t outputs,
                             const Attributes &attributes = {}) {
    Node made{op, "", 20, op + std::to_string(graph.nodes.size()), std::move(inputs), {}, {}};
    for (size_t i = 0; i < outputs; i++)
      made.outputs.push_back(named(made.name + ".out" + std::to_string(i)));
    for (const auto &[name, attribute] : attributes)
      made.attributes[name] = attribute;
    graph.nodes.push_back(made);
    return made.outputs;
  }

  /// The value is an output by a name of its own.
  void output(ValueId value, const std::string &name, const std::vector<SizeOf> &shape) {
    const ValueId out = node("Identity", {value});
    graph.values[size_t(out)] = name;
    graph.outputs.push_back({out, ElementType::F32, std::vector<Port::Size>(shape.begin(), shape.end())});
  }

  /// The graph, nodes that no output depends on apart.
  Graph finish() {
    std::set<ValueId> read;
    for (const Port &port : graph.outputs)
      read.insert(port.value);
    std::vector<Node> used;
    for (size_t i = graph.nodes.size(); i-- > 0;) {
      const Node &node = graph.nodes[i];
      bool isRead = false;
      for (ValueId output : node.outputs)
        isRead = isRead || read.count(output) > 0;
      if (isRead)
        read.insert(node.inputs.begin(), node.inputs.end());
      (isRead ? used : graph.unused).push_back(node);
    }
    graph.nodes.assign(used.rbegin(), used.rend());
    return std::move(graph);
  }

  Graph graph;

private:
  ValueId named(const std::string &name) {
    graph.values.push_back(name);
    return ValueId(graph.values.size() - 1);
  }

  template <class T> static std::string bytesOf(T value) {
    return std::string(reinterpret_cast<const char *>(&value), sizeof value);
  }
  static std::string stored(double value, ElementType type) {
    switch (type) {
    case ElementType::I64:
      return bytesOf(int64_t(value));
    case ElementType::F64:
      return bytesOf(value);
    case ElementType::U8:
      return bytesOf(uint8_t(value));
    case ElementType::I8:
    case ElementType::Bool:
      return bytesOf(int8_t(value));
    case ElementType::BF16:
      return bytesOf(float(value)).substr(2);
    case ElementType::F32:
      return bytesOf(float(value));
    default:
      return bytesOf(uint8_t(value));
    }
  }
};

} // namespace k2c::onnx::test

#endif // K2C_UNIT_ONNX_GRAPHBUILDER_H

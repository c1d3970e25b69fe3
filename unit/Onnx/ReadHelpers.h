//===- ReadHelpers.h - files to read, graphs to compare -----------------------===//
#ifndef K2C_UNIT_ONNX_READHELPERS_H
#define K2C_UNIT_ONNX_READHELPERS_H

#include "../TempFolder.h"
#include "ProtoWriter.h"
#include <gtest/gtest.h>
#include <string>

namespace k2c::onnx::test {

using k2c::test::TempFolder;

/// The graph of a file's bytes; fails the test where it is refused.
struct Read {
  explicit Read(const std::string &bytes) {
    Expected<Graph> read = readGraph(folder.write("m.onnx", bytes));
    EXPECT_TRUE(read) << read.error().text();
    if (read)
      graph = std::move(*read);
  }

  /// "Neg(x)->y Exp(y)->z": the nodes in their order.
  std::string nodes() const {
    std::string text;
    for (const Node &node : graph.nodes)
      text += (text.empty() ? "" : " ") + node.op + "(" + list(node.inputs) + ")->" + list(node.outputs);
    return text;
  }
  std::string list(const std::vector<ValueId> &values) const {
    std::string text;
    for (size_t i = 0; i < values.size(); ++i)
      text += (i ? "," : "") + nameOf(values[i]);
    return text;
  }
  std::string nameOf(ValueId value) const { return value == noValue ? "" : graph.values[static_cast<size_t>(value)]; }
  /// A constant by name; null: there is none.
  const Tensor *constant(const std::string &name) const {
    for (const auto &[value, tensor] : graph.constants)
      if (nameOf(value) == name)
        return &tensor;
    return nullptr;
  }
  /// Its stored bytes.
  std::string bytesOf(const std::string &name) const {
    const Tensor *tensor = constant(name);
    if (!tensor)
      return "no constant " + name;
    Expected<std::string> bytes = readTensor(graph, *tensor, 1 << 20);
    return bytes ? *bytes : bytes.error().text();
  }

  TempFolder folder;
  Graph graph;
};

/// Why the bytes of "m.onnx" are refused; "" when they are not.
inline std::string failure(const std::string &bytes) {
  TempFolder folder;
  Expected<Graph> graph = readGraph(folder.write("m.onnx", bytes));
  return graph ? "" : folder.relative(graph.error().text());
}

} // namespace k2c::onnx::test

#endif // K2C_UNIT_ONNX_READHELPERS_H

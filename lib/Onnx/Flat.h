//===- Flat.h - the graph while it is made ------------------------------------===//
#ifndef K2C_LIB_ONNX_FLAT_H
#define K2C_LIB_ONNX_FLAT_H

#include "Budget.h"
#include "Graph.h"
#include "Messages.h"
#include <string>
#include <unordered_map>
#include <vector>

namespace k2c::onnx {

/// A graph whose nodes stand in any order, with who defines each value and what of it is not read. What is not read is
/// refused only where an output depends on it.
struct FlatGraph {
  /// Who defines a value: the number of a node, or one of these.
  enum : int64_t { nobody = -1, input = -2, initializer = -3, constantNode = -4 };

  Graph graph;
  std::vector<int64_t> definedBy;                            ///< by ValueId
  std::unordered_map<ValueId, std::string> unreadableValues; ///< what they are instead: "a sequence"
  std::unordered_map<size_t, std::string> unreadableNodes;   ///< by number: why

  /// Adds a value.
  ValueId add(std::string name);
  /// Error: it is defined already. `noValue` is not.
  Status define(ValueId value, int64_t definer);
  /// Defines a value as a tensor, which is a constant if its type is one that is read.
  Status defineConstant(ValueId value, Tensor tensor, int64_t definer);
  /// For messages: "node 'a' (Add)", "an initializer".
  std::string describe(int64_t definer, size_t most = maxQuoted / 2) const;
  const std::string &name(ValueId value) const { return graph.values[static_cast<size_t>(value)]; }
};

/// Moves the nodes of a model to `flat`, which has the values of its graph, those of functions in the place of their
/// calls. Error: a function calls itself, calls lie deeper than 64, or the nodes exceed the budget.
Status inlineFunctions(ModelMessage &model, FlatGraph &flat, Budget &budget);

/// Sorts the nodes so that each stands behind what it reads; one that does already stays. Sets those apart that
/// no output depends on. Error: a cycle, a value that nobody defines, an unreadable node or value that is needed.
Status orderNodes(FlatGraph &flat);

/// The tensor of a Constant node; none: it has an attribute that is not read.
std::optional<Tensor> constantOf(const Node &node);

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_FLAT_H

//===- Roles.cpp - what the inputs of a graph are for ---------------------------------===//
//
// What inputs are for is said by what they do, not by their names: ids of tokens index a table, caches have elements
// that are no integers. Other integers are a mask or positions; where sizes do not tell, both are tried.
//
//===----------------------------------------------------------------------===//
#include "Roles.h"

#include "base/Utf8.h"
#include <algorithm>

namespace k2c::onnx {

namespace {

bool isInteger(ElementType type) {
  return type == ElementType::I64 || type == ElementType::I32 || type == ElementType::Bool;
}

/// The input that a value is, looked at through ops that keep its elements; none: it is computed.
ValueId inputOf(const Graph &graph, const std::unordered_map<ValueId, const Node *> &producers, ValueId value) {
  for (size_t steps = 0; steps <= graph.nodes.size(); steps++) {
    const auto producer = producers.find(value);
    if (producer == producers.end())
      return value;
    static const char *const keeping[] = {"Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten"};
    const Node &node = *producer->second;
    if (std::find(std::begin(keeping), std::end(keeping), node.op) == std::end(keeping) || node.inputs.empty())
      return noValue;
    value = node.inputs[0];
  }
  return noValue;
}

/// Inputs of token ids: integers [batch, sequence] that index a table.
std::vector<ValueId> tokenInputs(const Graph &graph) {
  std::unordered_map<ValueId, const Node *> producers;
  for (const Node &node : graph.nodes)
    for (ValueId output : node.outputs)
      producers[output] = &node;
  std::vector<ValueId> out;
  for (const Node &node : graph.nodes) {
    if ((node.op != "Gather" && node.op != "GatherBlockQuantized") || node.inputs.size() < 2)
      continue;
    const ValueId input = inputOf(graph, producers, node.inputs[1]);
    for (const Port &port : graph.inputs)
      if (port.value == input && isInteger(port.type) && port.shape && port.shape->size() == 2 &&
          std::find(out.begin(), out.end(), input) == out.end())
        out.push_back(input);
  }
  return out;
}

/// Roles of the inputs where `ids` is that of tokens: masks and positions of any sizes are told apart by `isMask`.
Expected<InputRoles> rolesBeside(const Graph &graph, ValueId ids, std::vector<ValueId> &others,
                                 std::vector<bool> &isMask) {
  InputRoles roles;
  roles.tokens = ids;
  const auto isIds = [&](const Port &port) { return port.value == ids; };
  const std::string sequence = (*std::find_if(graph.inputs.begin(), graph.inputs.end(), isIds)->shape)[1].symbol;
  for (const Port &port : graph.inputs) {
    if (port.value == ids)
      continue;
    if (isInteger(port.type) && port.shape && port.shape->size() == 2) {
      others.push_back(port.value);
      isMask.push_back((*port.shape)[1].symbol != sequence);
    } else if (!isInteger(port.type) && port.shape && port.shape->size() >= 3) {
      roles.caches.push_back(port.value);
    } else {
      return Error{graph.path,
                   "input '" + shortened(graph.values[size_t(port.value)]) +
                       "' is neither ids, a mask, positions nor a cache",
                   "export the model without it"};
    }
  }
  return roles;
}

} // namespace

Expected<std::vector<InputRoles>> rolesOf(const Graph &graph) {
  std::vector<InputRoles> out;
  const std::vector<ValueId> tokens = tokenInputs(graph);
  if (tokens.empty())
    return Error{graph.path, "no input [batch, sequence] of token ids indexes a table of embeddings",
                 "export a decoder with input_ids"};
  for (ValueId ids : tokens) {
    std::vector<ValueId> others;
    std::vector<bool> isMask;
    const Expected<InputRoles> roles = rolesBeside(graph, ids, others, isMask);
    if (!roles)
      return roles.error();
    for (size_t flips = 0; flips < (size_t(1) << std::min<size_t>(others.size(), 3)); flips++) {
      InputRoles some = *roles;
      for (size_t i = 0; i < others.size(); i++)
        (isMask[i] != bool(flips >> i & 1) ? some.masks : some.positions).push_back(others[i]);
      out.push_back(std::move(some));
    }
  }
  return out;
}

} // namespace k2c::onnx

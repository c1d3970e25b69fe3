//===- Order.cpp - nodes behind what they read --------------------------------===//
//
// A depth-first walk over the nodes in the file's order, each behind those that define what it reads: where the file is
// sorted already, every node stays in its place; one that stands too early moves just behind what it waits for, and
// what it waits for just before it. Then, from the outputs backwards, what is needed.
//
//===----------------------------------------------------------------------===//
#include "Flat.h"

namespace k2c::onnx {

namespace {

class Orderer {
public:
  explicit Orderer(FlatGraph &flat)
      : flat(flat), nodes(flat.graph.nodes), state(nodes.size(), State::Waiting), isNeeded(flat.graph.values.size()) {}

  Status run() {
    if (Status defined = checkDefined(); !defined)
      return defined;
    for (size_t node = 0; node < nodes.size(); ++node)
      if (Status placed = place(node); !placed)
        return placed;
    if (Status needed = findNeeded(); !needed)
      return needed;
    std::vector<Node> sorted;
    sorted.reserve(order.size());
    for (size_t node : order)
      (needs(nodes[node]) ? sorted : flat.graph.unused).push_back(std::move(nodes[node]));
    nodes = std::move(sorted);
    return {};
  }

private:
  enum class State : uint8_t { Waiting, Open, Placed };
  /// A node on the way to its place, and its next input to look at.
  struct Step {
    size_t node, input;
  };

  Error fail(std::string message, std::string remedy = damagedModel) const {
    return Error{flat.graph.path, std::move(message), std::move(remedy)};
  }
  std::string describe(size_t node) const { return flat.describe(static_cast<int64_t>(node)); }

  Status checkDefined() const {
    for (size_t node = 0; node < nodes.size(); ++node)
      for (ValueId value : nodes[node].inputs)
        if (value != noValue && flat.definedBy[static_cast<size_t>(value)] == FlatGraph::nobody)
          return fail(describe(node) + " reads '" + shortened(flat.name(value), maxQuoted / 3) +
                      "', which nothing defines");
    for (const Port &output : flat.graph.outputs)
      if (flat.definedBy[static_cast<size_t>(output.value)] == FlatGraph::nobody)
        return fail("output '" + shortened(flat.name(output.value)) + "' of the model is defined by nothing");
    return {};
  }

  Status place(size_t first) {
    if (state[first] != State::Waiting)
      return {};
    std::vector<Step> &path = steps;
    open(first);
    while (!path.empty()) {
      Step &step = path.back();
      const std::vector<ValueId> &inputs = nodes[step.node].inputs;
      if (step.input == inputs.size()) {
        state[step.node] = State::Placed;
        order.push_back(step.node);
        path.pop_back();
        continue;
      }
      const ValueId value = inputs[step.input++];
      const int64_t definer = value == noValue ? FlatGraph::nobody : flat.definedBy[static_cast<size_t>(value)];
      if (definer < 0 || state[static_cast<size_t>(definer)] == State::Placed)
        continue;
      if (state[static_cast<size_t>(definer)] == State::Open)
        return cycle(step.node, static_cast<size_t>(definer));
      open(static_cast<size_t>(definer));
    }
    return {};
  }

  void open(size_t node) {
    state[node] = State::Open;
    steps.push_back({node, 0});
  }

  Error cycle(size_t reader, size_t definer) const {
    if (reader == definer)
      return fail(describe(reader) + " reads its own result");
    return fail(describe(reader) + " reads a result of " + describe(definer) + ", which waits for it in turn");
  }

  bool needs(const Node &node) const {
    for (ValueId output : node.outputs)
      if (output != noValue && isNeeded[static_cast<size_t>(output)])
        return true;
    return false;
  }

  /// Marks a value; false: it is not read.
  bool need(ValueId value) {
    isNeeded[static_cast<size_t>(value)] = true;
    return flat.unreadableValues.count(value) == 0;
  }

  Error unreadable(const std::string &reader, ValueId value) const {
    return fail(reader + " '" + shortened(flat.name(value), maxQuoted / 3) + "', which is " +
                    flat.unreadableValues.at(value) + ": only tensors of numbers are read",
                "export the model without it");
  }

  Status findNeeded() {
    for (const Port &output : flat.graph.outputs)
      if (!need(output.value))
        return unreadable("the model returns", output.value);
    for (size_t i = order.size(); i-- > 0;) {
      const Node &node = nodes[order[i]];
      if (!needs(node))
        continue;
      if (const auto found = flat.unreadableNodes.find(order[i]); found != flat.unreadableNodes.end())
        return fail(describe(order[i]) + " " + found->second, "export the model without it");
      for (ValueId value : node.inputs)
        if (value != noValue && !need(value))
          return unreadable(describe(order[i]) + " reads", value);
    }
    return {};
  }

  FlatGraph &flat;
  std::vector<Node> &nodes;
  std::vector<State> state;
  std::vector<bool> isNeeded; ///< by ValueId
  std::vector<Step> steps;
  std::vector<size_t> order;
};

} // namespace

Status orderNodes(FlatGraph &flat) { return Orderer(flat).run(); }

} // namespace k2c::onnx

//===- Inline.cpp - nodes of functions in the place of their calls ------------===//
//
// A function is a list of nodes with names of its own. A call is replaced by copies of them:
//
//   function f(a) { t = Neg(a); y = Exp(t) }             Neg(x -> "call/t")
//   z = f(x), a node named "call"                   ->   Exp("call/t" -> z)
//
// Its inputs and outputs become values of the caller, every other value a new one, and attributes that refer to an
// attribute of the function take the value that the call gives, or the function's default, or are left out. An output
// that is an input, or the same value as another, is a copy (Identity).
//
// Nested calls can make any number of nodes of a small file, so every copy is counted before it is made.
//
//===----------------------------------------------------------------------===//
#include "Flat.h"
#include "base/FormatBytes.h"
#include <string_view>

namespace k2c::onnx {

namespace {

constexpr size_t maxDepth = 64;
constexpr int64_t minOpset = 13, maxOpset = 28; // of ai.onnx
constexpr ValueId unbound = -2;                 ///< a value of a function that has none in the graph yet

/// A call that is being inlined, or the graph itself.
struct Frame {
  const FunctionMessage *function = nullptr; ///< none: the graph
  const Frame *outer = nullptr;
  size_t depth = 0;
  std::string prefix; ///< of names
  std::vector<ValueId> values;
  std::map<std::string_view, const AttributeMessage *> attributes;
};

/// "com.example::Rope", with its overload if it has one.
std::string nameOf(const FunctionMessage &function) {
  std::string name = (function.domain.empty() ? "ai.onnx" : function.domain) + "::" + function.name;
  if (!function.overload.empty())
    name += ":" + function.overload;
  return shortened(name, maxOfKey);
}

std::string keyOf(const std::string &domain, const std::string &name, const std::string &overload) {
  return domain + '\0' + name + '\0' + overload;
}

/// The memory of a copy.
int64_t costOf(const AttributeMessage &attribute) {
  const Attribute &value = attribute.value;
  size_t bytes = Budget::recordBytes + attribute.name.size() + value.text.size() + value.reals.size() * sizeof(float) +
                 value.integers.size() * sizeof(int64_t);
  for (const std::string &text : value.texts)
    bytes += sizeof(text) + text.size();
  if (value.tensor)
    bytes += value.tensor->name.size() + value.tensor->shape.size() * sizeof(int64_t);
  return static_cast<int64_t>(bytes);
}

int64_t costOf(const NodeMessage &node, const std::string &prefix) {
  size_t bytes = Budget::recordBytes + prefix.size() + node.op.size() + node.domain.size() + node.overload.size() +
                 node.name.size() + (node.inputs.size() + node.outputs.size()) * sizeof(ValueId);
  for (const AttributeMessage &attribute : node.attributes)
    bytes += static_cast<size_t>(costOf(attribute));
  return static_cast<int64_t>(bytes);
}

/// Why an attribute of this type is not read.
std::string unreadable(const AttributeMessage &attribute) {
  switch (attribute.type) {
  case AttributeType::Graph:
  case AttributeType::Graphs:
    return "has a sub-graph in attribute '" + shortened(attribute.name) + "'";
  case AttributeType::SparseTensor:
  case AttributeType::SparseTensors:
    return "has a sparse tensor in attribute '" + shortened(attribute.name) + "'";
  default:
    return "has attribute '" + shortened(attribute.name) + "' of type " +
           std::to_string(static_cast<int64_t>(attribute.type)) + " of AttributeProto";
  }
}

class Inliner {
public:
  Inliner(ModelMessage &model, FlatGraph &flat, Budget &budget) : model(model), flat(flat), budget(budget) {}

  Status run() {
    for (const FunctionMessage &function : model.functions) {
      const size_t number = static_cast<size_t>(&function - model.functions.data());
      if (functions.number(keyOf(function.domain, function.name, function.overload)) != static_cast<ValueId>(number))
        return fail("function " + nameOf(function) + " is defined twice");
      if (Status checked = checkFunction(function); !checked)
        return checked;
    }
    if (Status checked = checkImports(model.imports, nullptr); !checked)
      return checked;
    flat.graph.nodes.reserve(model.graph.nodes.size());
    Frame frame;
    for (std::deque<NodeMessage> &nodes = model.graph.nodes; !nodes.empty(); nodes.pop_front())
      if (Status done = expand(std::move(nodes.front()), frame); !done)
        return done;
    return {};
  }

private:
  Error fail(std::string message, std::string remedy = damagedModel) const {
    return Error{flat.graph.path, std::move(message), std::move(remedy)};
  }

  bool take(int64_t bytes) { return budget.take(bytes); }
  Error tooLarge(const Frame &frame) const {
    return fail("function " + nameOf(*frame.function) + ": with its calls inlined the graph takes more than " +
                    formatBytes(Budget::limitBytes),
                "export the model with fewer nested functions");
  }

  /// Inputs have names of their own, which no node of it writes.
  Status checkFunction(const FunctionMessage &function) const {
    std::vector<bool> isInput(function.values.size());
    for (ValueId input : function.inputs) {
      if (input == noValue)
        continue;
      if (isInput[static_cast<size_t>(input)])
        return fail("function " + nameOf(function) + " has two inputs of one name");
      isInput[static_cast<size_t>(input)] = true;
    }
    for (const NodeMessage &node : function.nodes)
      for (ValueId output : node.outputs)
        if (output != noValue && isInput[static_cast<size_t>(output)])
          return fail("function " + nameOf(function) + " writes its input '" +
                      shortened(function.values[static_cast<size_t>(output)], maxQuoted / 3) + "'");
    return {};
  }

  /// Of a function, or of the model (null).
  Status checkImports(const Imports &imports, const FunctionMessage *function) const {
    const auto check = [&](const char *domain, int64_t least, int64_t most) -> Status {
      const auto set = imports.find(canonicalDomain(domain));
      if (set == imports.end() || (set->second >= least && set->second <= most))
        return {};
      return fail((function ? "function " + nameOf(*function) : "the model") + " imports version " +
                      std::to_string(set->second) + " of the operators of " + domain + ", " +
                      (least == most ? "" : std::to_string(least) + " to ") + std::to_string(most) +
                      (least == most ? " is read" : " are read"),
                  "convert the model with onnx.version_converter");
    };
    if (Status opset = check("ai.onnx", minOpset, maxOpset); !opset)
      return opset;
    return check("com.microsoft", 1, 1);
  }

  const Imports &importsOf(const Frame &frame) const {
    return frame.function ? frame.function->imports : model.imports;
  }

  /// The graph's value of a value of the frame.
  Expected<ValueId> valueOf(ValueId local, Frame &frame) {
    if (local == noValue || !frame.function)
      return local;
    ValueId &value = frame.values[static_cast<size_t>(local)];
    if (value == unbound) {
      std::string name = frame.prefix + frame.function->values[static_cast<size_t>(local)];
      if (!take(static_cast<int64_t>(name.size()) + Budget::recordBytes / 4))
        return tooLarge(frame);
      value = flat.add(std::move(name));
    }
    return value;
  }

  Status bindValues(std::vector<ValueId> &values, Frame &frame) {
    for (ValueId &value : values) {
      Expected<ValueId> bound = valueOf(value, frame);
      if (!bound)
        return bound.takeError();
      value = *bound;
    }
    return {};
  }

  /// Gives attributes that refer to one of the function its value, and leaves out those that have none.
  Status bindAttributes(NodeMessage &node, const Frame &frame) {
    std::vector<AttributeMessage> bound;
    bound.reserve(node.attributes.size());
    for (AttributeMessage &attribute : node.attributes) {
      if (attribute.refersTo.empty()) {
        bound.push_back(std::move(attribute));
        continue;
      }
      if (!frame.function)
        return fail("attribute '" + shortened(attribute.name) + "' of operator " + shortened(node.op, maxOfKey) +
                    " refers to an attribute of a function, but stands outside of one");
      const auto given = frame.attributes.find(attribute.refersTo);
      if (given == frame.attributes.end())
        continue;
      if (!take(costOf(*given->second)))
        return tooLarge(frame);
      attribute.type = given->second->type;
      attribute.isReadable = given->second->isReadable;
      attribute.value = given->second->value;
      attribute.refersTo.clear();
      bound.push_back(std::move(attribute));
    }
    node.attributes = std::move(bound);
    return {};
  }

  /// `node` is a copy of one of the frame's, with its numbers.
  Status expand(NodeMessage node, Frame &frame) {
    if (frame.function && !node.name.empty())
      node.name = frame.prefix + node.name;
    for (std::vector<ValueId> *values : {&node.inputs, &node.outputs})
      if (Status bound = bindValues(*values, frame); !bound)
        return bound;
    if (Status bound = bindAttributes(node, frame); !bound)
      return bound;
    if (!model.functions.empty()) {
      const ValueId called = functions.find(keyOf(node.domain, node.op, node.overload));
      if (called != noValue)
        return call(node, model.functions[static_cast<size_t>(called)], frame);
    }
    return push(std::move(node), frame);
  }

  Error recursion(const FunctionMessage &function, const Frame &frame) const {
    std::string path = nameOf(function);
    const Frame *at = &frame;
    for (; at->function != &function; at = at->outer)
      path = nameOf(*at->function) + " -> " + path;
    return fail("a function calls itself: " + shortened(nameOf(function) + " -> " + path, maxQuoted),
                "export the model without recursion");
  }

  Status checkCall(const NodeMessage &node, const FunctionMessage &function, const Frame &frame) const {
    for (const Frame *at = &frame; at->function; at = at->outer)
      if (at->function == &function)
        return recursion(function, frame);
    if (frame.depth == maxDepth)
      return fail("function " + nameOf(function) + " is called inside more than " + std::to_string(maxDepth) +
                      " other calls",
                  "inline the functions with onnx.inliner");
    if (node.inputs.size() > function.inputs.size() || node.outputs.size() > function.outputs.size())
      return fail("function " + nameOf(function) + " has " + std::to_string(function.inputs.size()) + " inputs and " +
                  std::to_string(function.outputs.size()) + " outputs, a call of it " +
                  std::to_string(node.inputs.size()) + " and " + std::to_string(node.outputs.size()));
    return checkImports(function.imports, &function);
  }

  /// A copy that an output of a function is.
  struct Copy {
    ValueId from, to;
  };

  /// Binds the inputs and outputs of a call; returns the outputs that are bound to something else already.
  Expected<std::vector<Copy>> bindCall(const NodeMessage &node, Frame &frame) {
    const FunctionMessage &function = *frame.function;
    frame.values.assign(function.values.size(), unbound);
    for (size_t i = 0; i < function.inputs.size(); ++i) {
      if (function.inputs[i] == noValue)
        continue;
      frame.values[static_cast<size_t>(function.inputs[i])] = i < node.inputs.size() ? node.inputs[i] : noValue;
    }
    std::vector<Copy> copies;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == noValue || function.outputs[i] == noValue)
        continue;
      ValueId &value = frame.values[static_cast<size_t>(function.outputs[i])];
      if (value == noValue)
        return fail("function " + nameOf(function) + " returns an input that a call of it leaves out");
      if (value == unbound)
        value = node.outputs[i];
      else
        copies.push_back({value, node.outputs[i]});
    }
    return copies;
  }

  Status call(const NodeMessage &node, const FunctionMessage &function, const Frame &outer) {
    if (Status checked = checkCall(node, function, outer); !checked)
      return checked;
    Frame frame{&function, &outer, outer.depth + 1, "", {}, {}};
    frame.prefix = (node.name.empty() ? outer.prefix + node.op : node.name) + "/";
    // Work of a call counts as memory does, though it is freed behind the call.
    if (!take(static_cast<int64_t>(frame.prefix.size() + function.values.size() * sizeof(ValueId) +
                                   function.defaults.size() * Budget::recordBytes)))
      return tooLarge(frame);
    Expected<std::vector<Copy>> copies = bindCall(node, frame);
    if (!copies)
      return copies.takeError();
    for (const AttributeMessage &attribute : node.attributes)
      if (!frame.attributes.try_emplace(attribute.name, &attribute).second)
        return fail("a call of function " + nameOf(function) + " has an attribute twice");
    for (const AttributeMessage &attribute : function.defaults)
      frame.attributes.try_emplace(attribute.name, &attribute);
    for (const NodeMessage &inner : function.nodes) {
      if (!take(costOf(inner, frame.prefix)))
        return tooLarge(frame);
      if (Status done = expand(inner, frame); !done)
        return done;
    }
    for (const Copy &copy : *copies) {
      if (!take(Budget::recordBytes))
        return tooLarge(frame);
      if (Status done = add(Node{"Identity", "", minOpset, "", {copy.from}, {copy.to}, {}}, ""); !done)
        return done;
    }
    return {};
  }

  /// Adds a node of the graph whose values and attributes are bound.
  Status push(NodeMessage message, const Frame &frame) {
    Node node;
    node.op = std::move(message.op);
    node.domain = std::move(message.domain);
    node.name = std::move(message.name);
    node.inputs = std::move(message.inputs);
    node.outputs = std::move(message.outputs);
    std::string why;
    const auto version = importsOf(frame).find(node.domain);
    if (!message.overload.empty())
      why = "has overload '" + shortened(message.overload) + "', which no function of the model has";
    else if (node.domain != "" && node.domain != "com.microsoft")
      why = "is of domain '" + shortened(node.domain) + "', and the model defines no function of that name";
    else if (version == importsOf(frame).end())
      why = "is of a domain whose operators are not imported where it stands";
    else
      node.version = version->second;
    for (AttributeMessage &attribute : message.attributes) {
      if (!attribute.isReadable)
        why = unreadable(attribute);
      if (!node.attributes.try_emplace(std::move(attribute.name), std::move(attribute.value)).second)
        return fail(describe(node, flat.graph.values) + " has an attribute twice");
    }
    if (why.empty() && node.domain.empty() && node.op == "Constant" && node.outputs.size() == 1) {
      if (std::optional<Tensor> tensor = constantOf(node))
        return flat.defineConstant(node.outputs[0], std::move(*tensor), FlatGraph::constantNode);
      why = "has not one value of numbers";
    }
    return add(std::move(node), std::move(why));
  }

  Status add(Node node, std::string why) {
    const size_t number = flat.graph.nodes.size();
    if (!why.empty())
      flat.unreadableNodes[number] = std::move(why);
    flat.graph.nodes.push_back(std::move(node));
    for (ValueId output : flat.graph.nodes.back().outputs)
      if (Status defined = flat.define(output, static_cast<int64_t>(number)); !defined)
        return defined;
    return {};
  }

  ModelMessage &model;
  FlatGraph &flat;
  Budget &budget;
  Names functions; ///< their keys, by number
};

} // namespace

Status inlineFunctions(ModelMessage &model, FlatGraph &flat, Budget &budget) {
  return Inliner(model, flat, budget).run();
}

} // namespace k2c::onnx

//===- Fold.cpp - the walk over nodes, and what lowerings share -------------------===//
//
// Nodes stand behind what they read, so that one walk is enough. A node that is not understood ends it, as nothing
// behind it can be told from another model. Values that several nodes read become leaves of their own where they are
// sums, so that formulas do not grow with the layers.
//
//===----------------------------------------------------------------------===//
#include "Fold.h"

#include "base/Utf8.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace k2c::onnx {

/// Bound of how deep a formula is: those of decoders, between leaves, are a dozen.
constexpr int32_t maxDepth = 128;

/// Bound of the parts of a sum: decoders add what some hundred experts give.
constexpr size_t maxParts = 1024;

Fold::Fold(const Graph &graph, InputRoles roles)
    : graph(graph), roles(std::move(roles)), batch(terms.size("batch")), sequence(terms.size("sequence")),
      past(this->roles.caches.empty() ? terms.number(0) : terms.size("past", 0)), values(graph.values.size()),
      consumers(graph.values.size(), 0) {
  countConsumers();
  terms.constants = [this](Leaf leaf, const std::vector<int64_t> &indices) -> std::optional<double> {
    const LeafDefinition &definition = terms.definition(leaf);
    int64_t index = 0;
    for (size_t i = 0; i < indices.size(); i++) {
      const std::optional<int64_t> size = terms.asInteger(definition.shape[i]);
      if (!size || indices[i] < 0 || indices[i] >= *size)
        return std::nullopt;
      index = index * *size + indices[i];
    }
    return constantAt(ValueId(definition.numbers[0]), index);
  };
}

/// What only passes a value on counts as those that read what it gives; who asks for a shape reads no element, nor does
/// what is made for one.
void Fold::countConsumers() {
  for (const Port &port : graph.outputs)
    consumers[size_t(port.value)]++;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node &node = graph.nodes[i];
    int32_t readers = 0;
    for (size_t k = 0; k < node.outputs.size(); k++)
      readers = std::max(readers, int32_t(readersOf(node, k)));
    if (readers == 0 || node.op == "Shape" || node.op == "Size")
      continue;
    const bool passesOn = node.op == "Identity" || node.op == "Cast" || node.op == "Dropout";
    const int32_t count = passesOn ? readers : 1;
    for (ValueId input : node.inputs)
      if (input != noValue)
        consumers[size_t(input)] = std::min(consumers[size_t(input)] + count, 1 << 20);
  }
}

const Folded *Fold::find(ValueId value) const {
  return value != noValue && values[size_t(value)] ? &*values[size_t(value)] : nullptr;
}

std::vector<Term> Fold::variables(const std::vector<Term> &shape) {
  std::vector<Term> out;
  for (size_t i = 0; i < shape.size(); i++)
    out.push_back(terms.variable(int32_t(i), shape[i]));
  return out;
}

bool Fold::isFloat(const Folded &value) const {
  return value.type == ElementType::F32 || value.type == ElementType::F16 || value.type == ElementType::BF16 ||
         value.type == ElementType::F64;
}

Status Fold::addInputs() {
  const auto is = [](const std::vector<ValueId> &list, ValueId value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  for (const Port &port : graph.inputs) {
    if (!port.shape)
      return Error{graph.path + ": input '" + shortened(graph.values[size_t(port.value)]) + "'",
                   "the file does not say its shape", "export the model with dynamic shapes that are named"};
    if (bitWidth(port.type) == 0 || port.shape->size() >= size_t(firstReduced)) // nodes that read it are refused
      continue;
    Folded folded{port.type, {}, Term{}};
    const bool isCache = is(roles.caches, port.value), isMask = is(roles.masks, port.value);
    const bool isTokens = port.value == roles.tokens || is(roles.positions, port.value);
    for (size_t i = 0; i < port.shape->size(); i++) {
      const Port::Size &size = (*port.shape)[i];
      if (i == 0 && (isCache || isMask || isTokens))
        folded.shape.push_back(batch);
      else if (i == 1 && isTokens)
        folded.shape.push_back(sequence);
      else if (i == 1 && isMask)
        folded.shape.push_back(terms.add(past, sequence));
      else if (size.size >= 0)
        folded.shape.push_back(terms.number(double(size.size)));
      else if (isCache && i + 2 == port.shape->size())
        folded.shape.push_back(past);
      else
        folded.shape.push_back(terms.size("?" + std::to_string(port.value) + "." + std::to_string(i)));
    }
    LeafDefinition definition{"input", {}, {port.value}, folded.shape, isWhole(port.type), {}, -1};
    if (port.value == roles.tokens)
      definition.min = 0;
    const Leaf leaf = terms.leafOf(std::move(definition));
    folded.element = terms.element(leaf, variables(folded.shape));
    if (isMask)
      folded.element = terms.number(1);
    else if (is(roles.positions, port.value))
      folded.element = terms.add(past, terms.variable(1, sequence));
    values[size_t(port.value)] = std::move(folded);
  }
  return Status::success();
}

Status Fold::run() {
  addConstants();
  if (Status status = addInputs(); !status)
    return status;
  for (const Node &node : graph.nodes) {
    Result results = lower(node);
    if (!results)
      return results.takeError();
    for (size_t i = 0; i < node.outputs.size() && i < results->size(); i++)
      if (node.outputs[i] != noValue && (*results)[i].type != ElementType::None)
        values[size_t(node.outputs[i])] = bounded(node, std::move((*results)[i]));
    for (size_t i = 0; i < node.outputs.size(); i++)
      if (const Folded *value = find(node.outputs[i]); value && !isSmall(value->shape))
        return refuse(node, "its result has rank " + std::to_string(value->shape.size()) + " and sizes " +
                                text(value->shape) + ", which is more than a graph of a decoder has");
    if (terms.isExhausted())
      return refuse(node, "the formulas up to here take more steps than those of a decoder");
  }
  return Status::success();
}

/// Whether a shape is of a rank and of formulas that lowerings can work with.
bool Fold::isSmall(const std::vector<Term> &shape) const {
  bool out = shape.size() < size_t(firstReduced);
  for (Term size : shape)
    out = out && terms.depth(size) <= maxDepth;
  return out;
}

/// A value whose formula is deep or long as a leaf, so that no formula grows with the number of nodes.
Folded Fold::bounded(const Node &node, Folded value) {
  const bool isBounded = terms.depth(value.element) <= maxDepth && terms.partCount(value.element) <= maxParts;
  if (isBounded || !isSmall(value.shape))
    return value;
  LeafDefinition definition;
  definition.op = "shared";
  definition.bodies = {value.element};
  return leafValue(node, value.type, value.shape, std::move(definition));
}

/// What is wrong with a value that was not folded.
std::string Fold::unread(ValueId value) const {
  const std::string quoted = "'" + shortened(graph.values[size_t(value)]) + "'";
  const auto constant = graph.constants.find(value);
  return constant != graph.constants.end() && bitWidth(constant->second.type) == 0
             ? "reads tensor " + quoted + " of type " + onnx::name(constant->second.type) +
                   ", which is not in this build"
             : "reads " + quoted + ", which no op understood gives";
}

Fold::Result Fold::lower(const Node &node) {
  const Lowering *const lowering = this->lowering(node.domain.empty() ? node.op : node.domain + ":" + node.op);
  if (!lowering)
    return refuse(node, "this op is not understood");
  for (ValueId input : node.inputs)
    if (input != noValue && !values[size_t(input)] && !(node.op == "SequenceAt" && sequences.count(input)))
      return refuse(node, unread(input));
  const bool needsAll = lowering->inputs == allInputs;
  const size_t needed = needsAll ? std::max<size_t>(node.inputs.size(), 1) : lowering->inputs;
  for (size_t i = 0; i < needed; i++)
    if (!has(node, i))
      return refuse(node, "input " + std::to_string(i) + ", which it needs, is left out");
  wrongAttribute.clear();
  Result out = (this->*lowering->function)(node);
  if (out && !wrongAttribute.empty())
    return refuse(node, wrongAttribute);
  return out;
}

Term Fold::at(const Folded &value, const std::vector<Term> &indices) {
  bool isSame = indices.size() == value.shape.size();
  for (size_t i = 0; isSame && i < indices.size(); i++)
    isSame = indices[i] == terms.variable(int32_t(i), value.shape[i]);
  return isSame ? value.element : terms.substitute(value.element, indices);
}

std::optional<std::vector<Term>> Fold::broadcast(const std::vector<std::vector<Term>> &shapes) {
  size_t rank = 0;
  for (const std::vector<Term> &shape : shapes)
    rank = std::max(rank, shape.size());
  std::vector<Term> out(rank, terms.number(1));
  for (const std::vector<Term> &shape : shapes)
    for (size_t i = 0; i < shape.size(); i++) {
      Term &size = out[rank - shape.size() + i];
      if (terms.asInteger(size) == 1)
        size = shape[i];
      else if (size != shape[i] && terms.asInteger(shape[i]) != 1)
        return std::nullopt;
    }
  return out;
}

Term Fold::spread(const Folded &value, const std::vector<Term> &shape) {
  std::vector<Term> indices;
  const size_t behind = shape.size() - value.shape.size();
  for (size_t i = 0; i < value.shape.size(); i++)
    indices.push_back(terms.asInteger(value.shape[i]) == 1 ? terms.number(0)
                                                           : terms.variable(int32_t(behind + i), shape[behind + i]));
  return at(value, indices);
}

Term Fold::total(const std::vector<Term> &shape, size_t begin, size_t end) {
  Term out = terms.number(1);
  for (size_t i = begin; i < end; i++)
    out = terms.multiply(out, shape[i]);
  return out;
}

double Fold::sample(Term size) {
  const Term numbers = terms.rewrite(size, [&](Term inner) -> std::optional<Term> {
    if (terms.kind(inner) == TermKind::Size)
      return terms.number(inner == batch ? 100003 : inner == past ? 1000003 : 10007 + 2 * terms.tag(inner));
    return std::nullopt;
  });
  return terms.isNumber(numbers) ? terms.number(numbers) : -1;
}

std::optional<std::vector<Term>> Fold::reindex(const std::vector<Term> &from, const std::vector<Term> &to) {
  std::vector<Term> indices;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    const size_t beginFrom = i, beginTo = j;
    Term ofFrom = i < from.size() ? from[i++] : terms.number(1), ofTo = j < to.size() ? to[j++] : terms.number(1);
    while (ofFrom != ofTo) {
      const bool extendsFrom = sample(ofFrom) < sample(ofTo);
      if (extendsFrom ? i == from.size() : j == to.size())
        return std::nullopt;
      Term &shorter = extendsFrom ? ofFrom : ofTo;
      shorter = terms.multiply(shorter, extendsFrom ? from[i++] : to[j++]);
    }
    Term flat = terms.number(0);
    for (size_t k = beginTo; k < j; k++)
      flat = terms.add(terms.multiply(flat, to[k]), terms.variable(int32_t(k), to[k]));
    std::vector<Term> group(i - beginFrom);
    for (size_t k = i; k-- > beginFrom;) {
      group[k - beginFrom] = k == beginFrom ? flat : terms.modulo(flat, from[k]);
      flat = terms.floorDivide(flat, from[k]);
    }
    indices.insert(indices.end(), group.begin(), group.end());
  }
  return indices;
}

Folded Fold::leafValue(const Node &node, ElementType type, std::vector<Term> shape, LeafDefinition definition) {
  definition.shape = shape;
  definition.isInteger = isWhole(type);
  definition.node = int32_t(&node - graph.nodes.data());
  const Leaf leaf = terms.leafOf(std::move(definition));
  return Folded{type, shape, terms.element(leaf, variables(shape))};
}

} // namespace k2c::onnx

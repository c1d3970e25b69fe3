//===- FoldRead.cpp - operands and attributes of a node, and what is wrong with it ----===//
#include "Fold.h"

#include "base/Utf8.h"
#include <cmath>

namespace k2c::onnx {

std::string Fold::place(const Node &node) const {
  const std::string domain = node.domain.empty() ? "ai.onnx" : node.domain;
  return graph.path + ": node '" + shortened(node.name) + "' (" + shortened(node.op) + " of " + shortened(domain) +
         " " + std::to_string(node.version) + ")";
}

Error Fold::refuse(const Node &node, const std::string &message) const {
  return Error{place(node), message, "export the model with another exporter or opset; docs/Onnx.md says what is read"};
}

std::string Fold::text(const std::vector<Term> &shape) const {
  std::string out;
  for (Term size : shape)
    out += (out.empty() ? "" : ", ") + terms.text(size);
  return "[" + out + "]";
}

int64_t Fold::readersOf(const Node &node, size_t output) const {
  const ValueId value = output < node.outputs.size() ? node.outputs[output] : noValue;
  return value == noValue ? 0 : consumers[size_t(value)];
}

bool Fold::has(const Node &node, size_t input) const {
  return input < node.inputs.size() && node.inputs[input] != noValue;
}

const Attribute *Fold::attribute(const Node &node, const char *name, Attribute::Kind kind) const {
  const auto found = node.attributes.find(name);
  if (found == node.attributes.end())
    return nullptr;
  if (found->second.kind == kind)
    return &found->second;
  wrongAttribute = std::string("attribute '") + name + "' is of another type than the op's";
  return nullptr;
}

int64_t Fold::integer(const Node &node, const char *name, int64_t otherwise) const {
  const Attribute *const found = attribute(node, name, Attribute::Kind::Int);
  return found ? found->integer : otherwise;
}

bool Fold::flag(const Node &node, const char *name, bool otherwise) const {
  const int64_t value = integer(node, name, otherwise);
  if (value != 0 && value != 1)
    wrongAttribute = std::string("attribute '") + name + "' is " + std::to_string(value) + ", neither 0 nor 1";
  return value != 0;
}

double Fold::real(const Node &node, const char *name, double otherwise) const {
  const Attribute *const found = attribute(node, name, Attribute::Kind::Float);
  return found ? double(found->real) : otherwise;
}

std::string Fold::word(const Node &node, const char *name, const char *otherwise) const {
  const Attribute *const found = attribute(node, name, Attribute::Kind::String);
  return found ? found->text : otherwise;
}

std::optional<std::vector<int64_t>> Fold::integers(const Node &node, const char *name) const {
  const Attribute *const found = attribute(node, name, Attribute::Kind::Ints);
  return found ? std::optional(found->integers) : std::nullopt;
}

Expected<int64_t> Fold::axisOf(const Node &node, int64_t otherwise, size_t rank) const {
  const int64_t axis = integer(node, "axis", otherwise);
  if (axis < -int64_t(rank) || axis >= int64_t(rank))
    return refuse(node, "axis " + std::to_string(axis) + " of a tensor of rank " + std::to_string(rank));
  return axis < 0 ? axis + int64_t(rank) : axis;
}

std::optional<std::vector<Term>> Fold::list(const Folded &value) {
  if (value.shape.empty())
    return std::vector<Term>{value.element};
  const std::optional<int64_t> count = terms.asInteger(value.shape[0]);
  if (value.shape.size() != 1 || !count || *count > 4096)
    return std::nullopt;
  std::vector<Term> out;
  for (int64_t i = 0; i < *count; i++)
    out.push_back(at(value, {terms.number(double(i))}));
  return out;
}

std::optional<std::vector<int64_t>> Fold::numbers(const Folded &value) {
  const std::optional<std::vector<Term>> elements = list(value);
  std::vector<int64_t> out;
  for (size_t i = 0; elements && i < elements->size(); i++) {
    const double number = terms.isNumber((*elements)[i]) ? terms.number((*elements)[i]) : 0.5;
    if (number != std::floor(number))
      return std::nullopt;
    out.push_back(number >= 9.2e18 ? INT64_MAX : number <= -9.2e18 ? INT64_MIN : int64_t(number));
  }
  return elements ? std::optional(out) : std::nullopt;
}

Expected<std::optional<std::vector<int64_t>>> Fold::axes(const Node &node, size_t input, int64_t rank) {
  std::optional<std::vector<int64_t>> out = integers(node, "axes");
  if (!out && has(node, input)) {
    out = numbers(in(node, input));
    if (!out)
      return refuse(node, "its axes are not constant");
  }
  if (!out)
    return out;
  std::vector<bool> seen(size_t(rank), false);
  for (int64_t &axis : *out) {
    if (axis < -rank || axis >= rank)
      return refuse(node, "axis " + std::to_string(axis) + " of a tensor of rank " + std::to_string(rank));
    axis += axis < 0 ? rank : 0;
    if (seen[size_t(axis)])
      return refuse(node, "axis " + std::to_string(axis) + " is given twice");
    seen[size_t(axis)] = true;
  }
  return out;
}

} // namespace k2c::onnx

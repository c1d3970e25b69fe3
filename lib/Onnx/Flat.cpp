//===- Flat.cpp - the graph while it is made ----------------------------------===//
#include "Flat.h"
#include <cstring>

namespace k2c::onnx {

ValueId FlatGraph::add(std::string name) {
  graph.values.push_back(std::move(name));
  definedBy.push_back(nobody);
  return static_cast<ValueId>(graph.values.size() - 1);
}

std::string FlatGraph::describe(int64_t definer, size_t most) const {
  switch (definer) {
  case input:
    return "an input of the model";
  case initializer:
    return "an initializer";
  case constantNode:
    return "a Constant node";
  default:
    return onnx::describe(graph.nodes[static_cast<size_t>(definer)], graph.values, most);
  }
}

Status FlatGraph::define(ValueId value, int64_t definer) {
  if (value == noValue)
    return {};
  int64_t &known = definedBy[static_cast<size_t>(value)];
  constexpr size_t third = maxQuoted / 3;
  if (known != nobody)
    return Error{graph.path,
                 "value '" + shortened(name(value), third) + "' is defined twice, by " + describe(known, third) +
                     " and by " + describe(definer, third),
                 damagedModel};
  known = definer;
  return {};
}

Status FlatGraph::defineConstant(ValueId value, Tensor tensor, int64_t definer) {
  if (Status defined = define(value, definer); !defined)
    return defined;
  if (value == noValue)
    return {};
  tensor.name = name(value);
  if (bitWidth(tensor.type) == 0)
    unreadableValues[value] = "a tensor of " + onnx::name(tensor.type);
  else
    graph.constants.emplace(value, std::move(tensor));
  return {};
}

namespace {

/// Of little-endian bytes, as they lie in memory here.
template <class T> Tensor tensorOf(ElementType type, std::vector<int64_t> shape, const T *values, size_t count) {
  Tensor tensor;
  tensor.type = type;
  tensor.shape = std::move(shape);
  tensor.bytes = std::make_shared<const std::string>(reinterpret_cast<const char *>(values), count * sizeof(T));
  return tensor;
}

template <class T> Tensor listOf(ElementType type, const std::vector<T> &values) {
  return tensorOf(type, {static_cast<int64_t>(values.size())}, values.data(), values.size());
}

} // namespace

std::optional<Tensor> constantOf(const Node &node) {
  if (node.attributes.size() != 1)
    return std::nullopt;
  const auto &[name, value] = *node.attributes.begin();
  using Kind = Attribute::Kind;
  if (name == "value" && value.kind == Kind::Tensor && value.tensor)
    return *value.tensor;
  if (name == "value_float" && value.kind == Kind::Float)
    return tensorOf(ElementType::F32, {}, &value.real, 1);
  if (name == "value_int" && value.kind == Kind::Int)
    return tensorOf(ElementType::I64, {}, &value.integer, 1);
  if (name == "value_floats" && value.kind == Kind::Floats)
    return listOf(ElementType::F32, value.reals);
  if (name == "value_ints" && value.kind == Kind::Ints)
    return listOf(ElementType::I64, value.integers);
  return std::nullopt;
}

} // namespace k2c::onnx

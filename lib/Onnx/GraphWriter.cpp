//===- GraphWriter.cpp - a graph, node by node, as the bytes of a file ------------===//
#include "GraphWriter.h"

#include "Fields.h"
#include "k2c/Support/Join.h"
#include <cstdio>

namespace k2c::onnx {

namespace {

/// IR version 11 is that of ai.onnx 23, the first that has norms, rotations and attention as ops.
constexpr int64_t irVersion = 11, standardOps = 23, microsoftOps = 1;

Message tensorHead(const std::string &name, ElementType type, const std::vector<int64_t> &shape) {
  Message tensor;
  for (int64_t size : shape)
    tensor.integer(TensorFields::shape, size);
  tensor.integer(TensorFields::type, int64_t(type)).text(TensorFields::name, name);
  return tensor;
}

template <class Value> std::string bytesOf(const std::vector<Value> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(Value)};
}

Message operatorSet(const std::string &domain, int64_t version) {
  Message set;
  set.text(OperatorSetFields::domain, domain).integer(OperatorSetFields::version, version);
  return set;
}

Message attributeOf(const std::string &name, const std::variant<int64_t, double, const char *> &value) {
  Message attribute;
  attribute.text(AttributeFields::name, name);
  AttributeType type = AttributeType::Int;
  if (const int64_t *const integer = std::get_if<int64_t>(&value)) {
    attribute.integer(AttributeFields::integer, *integer);
  } else if (const double *const real = std::get_if<double>(&value)) {
    attribute.real(AttributeFields::real, float(*real));
    type = AttributeType::Float;
  } else {
    attribute.text(AttributeFields::text, std::get<const char *>(value));
    type = AttributeType::String;
  }
  attribute.integer(AttributeFields::type, int64_t(type));
  return attribute;
}

/// A ValueInfoProto.
Message port(const std::string &name, ElementType type, const std::vector<Port::Size> &shape) {
  Message sizes;
  for (const Port::Size &size : shape) {
    Message one;
    if (size.size >= 0)
      one.integer(SizeFields::number, size.size);
    else
      one.text(SizeFields::symbol, size.symbol);
    sizes.message(ShapeFields::size, one);
  }
  Message tensor, kind, info;
  tensor.integer(TensorTypeFields::element, int64_t(type)).message(TensorTypeFields::shape, sizes);
  kind.message(TypeFields::tensor, tensor);
  info.text(ValueInfoFields::name, name).message(ValueInfoFields::type, kind);
  return info;
}

} // namespace

void GraphWriter::nodes(const std::string &op, const std::string &name, const Names &inputs, const Names &outputs,
                        const Attributes &attributes, const std::string &domain) {
  Message node;
  for (const std::string &input : inputs)
    node.text(NodeFields::input, input);
  for (const std::string &output : outputs)
    node.text(NodeFields::output, output);
  node.text(NodeFields::name, name).text(NodeFields::op, op);
  for (const auto &[key, value] : attributes)
    node.message(NodeFields::attribute, attributeOf(key, value));
  if (!domain.empty())
    node.text(NodeFields::domain, domain);
  graphNodes.message(GraphFields::node, node);
}

std::string GraphWriter::constant(const std::string &name, ElementType type, const std::vector<int64_t> &shape,
                                  const std::string &bytes) {
  if (constants.insert(name).second) {
    Message tensor = tensorHead(name, type, shape);
    tensor.text(TensorFields::rawData, bytes);
    initializers.message(GraphFields::initializer, tensor);
  }
  return name;
}

std::string GraphWriter::list(const std::vector<int64_t> &values) {
  return constant("constants." + shapeText(values), ElementType::I64, {int64_t(values.size())}, bytesOf(values));
}

std::string GraphWriter::integer(int64_t value) {
  return constant("constants." + std::to_string(value), ElementType::I64, {}, bytesOf(std::vector<int64_t>{value}));
}

std::string GraphWriter::real(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "constants.real.%.9g", double(value));
  return constant(text, ElementType::F32, {}, bytesOf(std::vector<float>{value}));
}

std::string GraphWriter::reals(const std::string &name, const std::vector<float> &values) {
  return constant(name, ElementType::F32, {int64_t(values.size())}, bytesOf(values));
}

void GraphWriter::external(const std::string &name, const std::vector<int64_t> &shape, int64_t offset) {
  int64_t bytes = sizeof(float);
  for (int64_t size : shape)
    bytes *= size;
  Message tensor = tensorHead(name, ElementType::F32, shape);
  const std::pair<const char *, std::string> place[] = {
      {"location", dataFileName}, {"offset", std::to_string(offset)}, {"length", std::to_string(bytes)}};
  for (const auto &[key, value] : place) {
    Message entry;
    entry.text(EntryFields::key, key).text(EntryFields::value, value);
    tensor.message(TensorFields::externalData, entry);
  }
  tensor.integer(TensorFields::location, TensorFields::external);
  initializers.message(GraphFields::initializer, tensor);
}

void GraphWriter::input(const std::string &name, ElementType type, const std::vector<Port::Size> &shape) {
  inputs.message(GraphFields::input, port(name, type, shape));
}

void GraphWriter::output(const std::string &name, ElementType type, const std::vector<Port::Size> &shape) {
  outputs.message(GraphFields::output, port(name, type, shape));
}

std::string GraphWriter::model(const std::string &version) const {
  Message named, out;
  named.text(GraphFields::name, "decoder");
  out.integer(ModelFields::irVersion, irVersion)
      .text(ModelFields::producerName, "k2c")
      .text(ModelFields::producerVersion, version)
      .message(ModelFields::opsetImport, operatorSet("", standardOps))
      .message(ModelFields::opsetImport, operatorSet("com.microsoft", microsoftOps))
      .text(ModelFields::graph,
            graphNodes.bytes() + named.bytes() + initializers.bytes() + inputs.bytes() + outputs.bytes());
  return out.bytes();
}

} // namespace k2c::onnx

//===- ProtoWriter.h - ONNX files by hand -------------------------------------===//
//
// Bytes of protobuf messages, field by field, so that tests write what no exporter would:
//
//   model({node("Neg", {"x"}, {"y"})}, {"x"}, {"y"})
//
//===----------------------------------------------------------------------===//
#ifndef K2C_UNIT_ONNX_PROTOWRITER_H
#define K2C_UNIT_ONNX_PROTOWRITER_H

#include "Fields.h"
#include "Graph.h"
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

namespace k2c::onnx::test {

using Strings = std::vector<std::string>;

inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7)
    bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

inline std::string tag(uint32_t number, uint32_t wireType) { return varint(uint64_t(number) << 3 | wireType); }

/// A field of an integer.
inline std::string integer(uint32_t number, int64_t value) {
  return tag(number, 0) + varint(static_cast<uint64_t>(value));
}

/// A field of text, bytes or a message.
inline std::string field(uint32_t number, const std::string &bytes) {
  return tag(number, 2) + varint(bytes.size()) + bytes;
}

/// The bytes of a number, as they lie in memory.
template <class T> std::string raw(T value) { return {reinterpret_cast<const char *>(&value), sizeof(value)}; }

template <class T> std::string rawList(std::initializer_list<T> values) {
  std::string bytes;
  for (T value : values)
    bytes += raw(value);
  return bytes;
}

inline std::string join(const Strings &parts) {
  std::string all;
  for (const std::string &part : parts)
    all += part;
  return all;
}

inline std::string varints(std::initializer_list<int64_t> values) {
  std::string bytes;
  for (int64_t value : values)
    bytes += varint(static_cast<uint64_t>(value));
  return bytes;
}

/// The content of a NodeProto.
inline std::string node(const std::string &op, const Strings &inputs, const Strings &outputs,
                        const std::string &more = "") {
  std::string bytes;
  for (const std::string &input : inputs)
    bytes += field(NodeFields::input, input);
  for (const std::string &output : outputs)
    bytes += field(NodeFields::output, output);
  return bytes + field(NodeFields::op, op) + more;
}

inline std::string named(const std::string &name) { return field(NodeFields::name, name); }
inline std::string domain(const std::string &name) { return field(NodeFields::domain, name); }

/// An attribute field of a NodeProto; `value` is the fields of its value.
inline std::string attribute(const std::string &name, AttributeType type, const std::string &value) {
  return field(NodeFields::attribute,
               field(AttributeFields::name, name) + value + integer(AttributeFields::type, static_cast<int64_t>(type)));
}
inline std::string intAttribute(const std::string &name, int64_t value) {
  return attribute(name, AttributeType::Int, integer(AttributeFields::integer, value));
}
inline std::string reference(const std::string &name, const std::string &of) {
  return attribute(name, AttributeType::Int, field(AttributeFields::refersTo, of));
}

/// The content of a TensorProto; `data` is the fields of its elements.
inline std::string tensor(const std::string &name, ElementType type, const std::vector<int64_t> &shape,
                          const std::string &data) {
  std::string bytes;
  for (int64_t size : shape)
    bytes += integer(TensorFields::shape, size);
  return bytes + integer(TensorFields::type, static_cast<int64_t>(type)) + field(TensorFields::name, name) + data;
}

inline std::string rawData(const std::string &bytes) { return field(TensorFields::rawData, bytes); }

inline std::string entry(const std::string &key, const std::string &value) {
  return field(TensorFields::externalData, field(EntryFields::key, key) + field(EntryFields::value, value));
}

/// The data of a tensor in another file.
inline std::string externalData(const std::string &location, const std::string &offset, const std::string &length) {
  return entry("location", location) + entry("offset", offset) + entry("length", length) +
         integer(TensorFields::location, TensorFields::external);
}

/// The content of a ValueInfoProto of FLOAT and no shape.
inline std::string port(const std::string &name) {
  return field(ValueInfoFields::name, name) +
         field(ValueInfoFields::type, field(TypeFields::tensor, integer(TensorTypeFields::element, 1)));
}

inline std::string import(const std::string &domain, int64_t version) {
  return field(OperatorSetFields::domain, domain) + integer(OperatorSetFields::version, version);
}

/// The content of a GraphProto; `more` are fields of it.
inline std::string graph(const Strings &nodes, const Strings &inputs, const Strings &outputs,
                         const std::string &more = "") {
  std::string bytes;
  for (const std::string &content : nodes)
    bytes += field(GraphFields::node, content);
  for (const std::string &input : inputs)
    bytes += field(GraphFields::input, port(input));
  for (const std::string &output : outputs)
    bytes += field(GraphFields::output, port(output));
  return bytes + more;
}

inline std::string initializer(const std::string &content) { return field(GraphFields::initializer, content); }

/// A ModelProto of IR version 10 with operators of ai.onnx 18; `more` are fields of it.
inline std::string modelOf(const std::string &graphContent, const std::string &more = "") {
  return integer(ModelFields::irVersion, 10) + field(ModelFields::opsetImport, import("", 18)) +
         field(ModelFields::graph, graphContent) + more;
}

/// A model of nodes; `more` are fields of its graph.
inline std::string model(const Strings &nodes, const Strings &inputs, const Strings &outputs,
                         const std::string &more = "") {
  return modelOf(graph(nodes, inputs, outputs, more));
}

/// A field of a ModelProto: a function of domain "f"; `more` are fields of it.
inline std::string function(const std::string &name, const Strings &inputs, const Strings &outputs,
                            const Strings &nodes, const std::string &more = "") {
  std::string bytes = field(FunctionFields::name, name) + field(FunctionFields::domain, "f") +
                      field(FunctionFields::opsetImport, import("", 18));
  for (const std::string &input : inputs)
    bytes += field(FunctionFields::input, input);
  for (const std::string &output : outputs)
    bytes += field(FunctionFields::output, output);
  for (const std::string &content : nodes)
    bytes += field(FunctionFields::node, content);
  return field(ModelFields::functions, bytes + more);
}

/// A call of a function of domain "f".
inline std::string call(const std::string &name, const Strings &inputs, const Strings &outputs,
                        const std::string &more = "") {
  return node(name, inputs, outputs, domain("f") + more);
}

} // namespace k2c::onnx::test

#endif // K2C_UNIT_ONNX_PROTOWRITER_H

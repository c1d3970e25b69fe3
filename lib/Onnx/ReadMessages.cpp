//===- ReadMessages.cpp - the bytes of a model to Messages.h ------------------===//
//
// One loop over the fields of each message. Whatever a file repeats is added: that is what protobuf means by a message
// that comes in two parts. Scalars that come twice have their last value. Each record is counted against the budget
// before it is made, as an empty one is two bytes of the file.
//
//===----------------------------------------------------------------------===//
#include "Messages.h"
#include <algorithm>

namespace k2c::onnx {

std::string canonicalDomain(const std::string &domain) { return domain == "ai.onnx" ? "" : domain; }

namespace {

class ModelReader {
public:
  ModelReader(Wire &wire, ExternalData &external) : wire(wire), external(external) {}

  ModelMessage read() {
    Names values;
    while (wire.next())
      switch (wire.field()) {
      case ModelFields::irVersion:
        model.irVersion = wire.integer();
        break;
      case ModelFields::producerName:
        model.producerName = wire.text();
        break;
      case ModelFields::producerVersion:
        model.producerVersion = wire.text();
        break;
      case ModelFields::graph:
        wire.message("GraphProto", [&] { readGraph(values); });
        break;
      case ModelFields::opsetImport:
        wire.message("OperatorSetIdProto", [&] { readImport(model.imports); });
        break;
      case ModelFields::trainingInfo:
        model.hasTraining = true;
        wire.skip();
        break;
      case ModelFields::functions:
        wire.message("FunctionProto", [&] { readFunction(); });
        break;
      default:
        wire.skip();
      }
    model.graph.values = values.take();
    return std::move(model);
  }

private:
  void readImport(Imports &imports) {
    std::string domain;
    int64_t version = 0;
    while (wire.next())
      switch (wire.field()) {
      case OperatorSetFields::domain:
        domain = canonicalDomain(wire.text());
        break;
      case OperatorSetFields::version:
        version = wire.integer();
        break;
      default:
        wire.skip();
      }
    if (!wire.take(Budget::recordBytes))
      return;
    int64_t &known = imports[domain];
    known = std::max(known, version); // of several the highest counts
  }

  void readGraph(Names &values) {
    GraphMessage &graph = model.graph;
    while (wire.next())
      switch (wire.field()) {
      case GraphFields::node:
        graph.nodes.push_back(readNode(values));
        break;
      case GraphFields::initializer:
        wire.message("TensorProto", [&] { readInitializer(values); });
        break;
      case GraphFields::sparseInitializer:
        wire.message("SparseTensorProto", [&] { readSparse(values); });
        break;
      case GraphFields::input:
        wire.message("ValueInfoProto", [&] { readPort(values, graph.inputs); });
        break;
      case GraphFields::output:
        wire.message("ValueInfoProto", [&] { readPort(values, graph.outputs); });
        break;
      default:
        wire.skip();
      }
  }

  void readInitializer(Names &values) {
    if (!wire.take(Budget::recordBytes))
      return;
    Tensor tensor = readTensorMessage(wire, external);
    if (wire.failed())
      return;
    const ValueId value = values.number(tensor.name);
    model.graph.initializers.push_back({value, std::move(tensor)});
  }

  /// Of a sparse tensor the name alone, which stands in its values.
  void readSparse(Names &values) {
    if (!wire.take(Budget::recordBytes))
      return;
    while (wire.next()) {
      if (wire.field() != SparseTensorFields::values) {
        wire.skip();
        continue;
      }
      wire.message("TensorProto", [&] {
        while (wire.next())
          if (wire.field() == TensorFields::name)
            model.graph.sparse.push_back(values.read(wire));
          else
            wire.skip();
      });
    }
  }

  void readPort(Names &values, std::vector<PortMessage> &ports) {
    if (wire.take(Budget::recordBytes))
      ports.push_back(readPortMessage(wire, values));
  }

  NodeMessage readNode(Names &values) {
    NodeMessage node;
    if (wire.take(Budget::recordBytes))
      wire.message("NodeProto", [&] { readNodeFields(node, values); });
    return node;
  }

  void readNodeFields(NodeMessage &node, Names &values) {
    while (wire.next())
      switch (wire.field()) {
      case NodeFields::input:
        node.inputs.push_back(values.read(wire));
        break;
      case NodeFields::output:
        node.outputs.push_back(values.read(wire));
        break;
      case NodeFields::name:
        node.name = wire.text();
        break;
      case NodeFields::op:
        node.op = wire.text();
        break;
      case NodeFields::domain:
        node.domain = canonicalDomain(wire.text());
        break;
      case NodeFields::overload:
        node.overload = wire.text();
        break;
      case NodeFields::attribute:
        readAttribute(node.attributes);
        break;
      default:
        wire.skip();
      }
  }

  void readAttribute(std::vector<AttributeMessage> &attributes) {
    if (wire.take(Budget::recordBytes))
      wire.message("AttributeProto", [&] { attributes.push_back(readAttributeMessage(wire, external)); });
  }

  void readFunction() {
    if (!wire.take(Budget::recordBytes))
      return;
    FunctionMessage function;
    Names values;
    while (wire.next())
      switch (wire.field()) {
      case FunctionFields::name:
        function.name = wire.text();
        break;
      case FunctionFields::domain:
        function.domain = canonicalDomain(wire.text());
        break;
      case FunctionFields::overload:
        function.overload = wire.text();
        break;
      case FunctionFields::input:
        function.inputs.push_back(values.read(wire));
        break;
      case FunctionFields::output:
        function.outputs.push_back(values.read(wire));
        break;
      case FunctionFields::node:
        function.nodes.push_back(readNode(values));
        break;
      case FunctionFields::opsetImport:
        wire.message("OperatorSetIdProto", [&] { readImport(function.imports); });
        break;
      case FunctionFields::attributeDefault:
        readAttribute(function.defaults);
        break;
      default:
        wire.skip();
      }
    function.values = values.take();
    model.functions.push_back(std::move(function));
  }

  Wire &wire;
  ExternalData &external;
  ModelMessage model;
};

} // namespace

ModelMessage readModelMessage(Wire &wire, ExternalData &external) { return ModelReader(wire, external).read(); }

} // namespace k2c::onnx

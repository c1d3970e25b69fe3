//===- Messages.h - a model as its messages say it ----------------------------===//
//
// What lies between the bytes and the graph: functions are not yet inlined, nodes stand as in the file, and nothing is
// checked that takes more than one message. The names of values are numbers of the graph or function that has them.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_ONNX_MESSAGES_H
#define K2C_LIB_ONNX_MESSAGES_H

#include "ExternalData.h"
#include "Fields.h"
#include "Graph.h"
#include "Names.h"
#include "Wire.h"
#include <deque>
#include <map>
#include <string>
#include <vector>

namespace k2c::onnx {

/// Versions of operator sets by domain; "" is ai.onnx.
using Imports = std::map<std::string, int64_t>;

struct AttributeMessage {
  std::string name;
  std::string refersTo; ///< an attribute of the function around it; "": it has a value
  AttributeType type = AttributeType::None;
  bool isReadable = false; ///< `type` is one that Attribute has
  Attribute value;
};

struct NodeMessage {
  std::string op, domain, overload, name;
  std::vector<ValueId> inputs, outputs;
  std::vector<AttributeMessage> attributes;
};

struct FunctionMessage {
  std::string name, domain, overload;
  std::vector<std::string> values; ///< names, by number
  std::vector<ValueId> inputs, outputs;
  std::vector<AttributeMessage> defaults;
  std::vector<NodeMessage> nodes;
  Imports imports;
};

/// An initializer, with its tensor.
struct InitializerMessage {
  ValueId value = noValue;
  Tensor tensor;
};

struct PortMessage {
  Port port;
  std::string otherType; ///< "sequence" and the like; "": a tensor
};

struct GraphMessage {
  std::vector<std::string> values; ///< names, by number
  std::deque<NodeMessage> nodes;   ///< taken from the front, which frees them
  std::vector<InitializerMessage> initializers;
  std::vector<ValueId> sparse; ///< initializers that are sparse
  std::vector<PortMessage> inputs, outputs;
};

struct ModelMessage {
  int64_t irVersion = 0;
  std::string producerName, producerVersion;
  bool hasTraining = false;
  Imports imports;
  GraphMessage graph;
  std::vector<FunctionMessage> functions;
};

/// Reads a model to the end of `wire`, or to its failure. Opens the files of external data.
ModelMessage readModelMessage(Wire &wire, ExternalData &external);

/// Reads the fields of a TensorProto, with its place among `external`.
Tensor readTensorMessage(Wire &wire, ExternalData &external);

/// Reads the fields of an AttributeProto.
AttributeMessage readAttributeMessage(Wire &wire, ExternalData &external);

/// Reads the fields of a ValueInfoProto.
PortMessage readPortMessage(Wire &wire, Names &names);

/// "ai.onnx" is "".
std::string canonicalDomain(const std::string &domain);

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_MESSAGES_H

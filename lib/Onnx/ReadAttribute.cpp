//===- ReadAttribute.cpp - AttributeProto and ValueInfoProto ------------------===//
//
// An attribute says its type and has one field for each kind of value; all that are there are read, and the type says
// later which counts. Sub-graphs are skipped unread, so that no message lies deeper than Fields.h knows.
//
// A ValueInfoProto is a name and a type. A type is that of a tensor, or else something of which the kind alone is kept.
//
//===----------------------------------------------------------------------===//
#include "Messages.h"

namespace k2c::onnx {

namespace {

void readValue(Wire &wire, ExternalData &external, AttributeMessage &attribute) {
  Attribute &value = attribute.value;
  switch (wire.field()) {
  case AttributeFields::name:
    attribute.name = wire.text();
    return;
  case AttributeFields::refersTo:
    attribute.refersTo = wire.text();
    return;
  case AttributeFields::type:
    attribute.type = static_cast<AttributeType>(wire.integer());
    return;
  case AttributeFields::real:
    value.real = wire.real();
    return;
  case AttributeFields::integer:
    value.integer = wire.integer();
    return;
  case AttributeFields::text:
    value.text = wire.bytes();
    return;
  case AttributeFields::tensor:
    return wire.message("TensorProto", [&] { value.tensor = readTensorMessage(wire, external); });
  case AttributeFields::reals:
    return wire.reals([&](float real) {
      if (wire.take(sizeof(real)))
        value.reals.push_back(real);
    });
  case AttributeFields::integers:
    return wire.integers([&](int64_t integer) {
      if (wire.take(sizeof(integer)))
        value.integers.push_back(integer);
    });
  case AttributeFields::texts:
    if (wire.take(sizeof(std::string)))
      value.texts.push_back(wire.bytes());
    return;
  default:
    return wire.skip();
  }
}

/// Kinds that Attribute has; others are refused where they are used.
std::optional<Attribute::Kind> kindOf(AttributeType type) {
  switch (type) {
  case AttributeType::Float:
    return Attribute::Kind::Float;
  case AttributeType::Int:
    return Attribute::Kind::Int;
  case AttributeType::String:
    return Attribute::Kind::String;
  case AttributeType::Tensor:
    return Attribute::Kind::Tensor;
  case AttributeType::Floats:
    return Attribute::Kind::Floats;
  case AttributeType::Ints:
    return Attribute::Kind::Ints;
  case AttributeType::Strings:
    return Attribute::Kind::Strings;
  default:
    return std::nullopt;
  }
}

Port::Size readSize(Wire &wire) {
  Port::Size size;
  while (wire.next())
    switch (wire.field()) {
    case SizeFields::number:
      size.size = wire.integer();
      break;
    case SizeFields::symbol:
      size.symbol = wire.text();
      break;
    default:
      wire.skip();
    }
  return size;
}

void readShape(Wire &wire, std::vector<Port::Size> &shape) {
  while (wire.next())
    if (wire.field() == ShapeFields::size && wire.take(sizeof(Port::Size)))
      wire.message("Dimension", [&] { shape.push_back(readSize(wire)); });
    else
      wire.skip();
}

void readTensorType(Wire &wire, Port &port) {
  while (wire.next())
    switch (wire.field()) {
    case TensorTypeFields::element:
      port.type = static_cast<ElementType>(wire.integer());
      break;
    case TensorTypeFields::shape:
      port.shape.emplace();
      wire.message("TensorShapeProto", [&] { readShape(wire, *port.shape); });
      break;
    default:
      wire.skip();
    }
}

void readType(Wire &wire, PortMessage &port) {
  const auto other = [&](const char *kind) {
    port.otherType = kind;
    wire.skip();
  };
  while (wire.next())
    switch (wire.field()) {
    case TypeFields::tensor:
      wire.message("TypeProto.Tensor", [&] { readTensorType(wire, port.port); });
      break;
    case TypeFields::sequence:
      other("sequence");
      break;
    case TypeFields::map:
      other("map");
      break;
    case TypeFields::opaque:
      other("opaque value");
      break;
    case TypeFields::sparseTensor:
      other("sparse tensor");
      break;
    case TypeFields::optional:
      other("optional value");
      break;
    default:
      wire.skip();
    }
}

} // namespace

AttributeMessage readAttributeMessage(Wire &wire, ExternalData &external) {
  AttributeMessage attribute;
  while (wire.next())
    readValue(wire, external, attribute);
  const std::optional<Attribute::Kind> kind = kindOf(attribute.type);
  attribute.isReadable = kind.has_value();
  attribute.value.kind = kind.value_or(Attribute::Kind::Int);
  return attribute;
}

PortMessage readPortMessage(Wire &wire, Names &names) {
  PortMessage port;
  while (wire.next())
    switch (wire.field()) {
    case ValueInfoFields::name:
      port.port.value = names.read(wire);
      break;
    case ValueInfoFields::type:
      wire.message("TypeProto", [&] { readType(wire, port); });
      break;
    default:
      wire.skip();
    }
  return port;
}

} // namespace k2c::onnx

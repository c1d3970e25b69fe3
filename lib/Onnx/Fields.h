//===- Fields.h - the numbers of ONNX's fields --------------------------------===//
//
// What onnx.proto (IR version 14) calls field 7 of which message: of the messages and fields that are read or written,
// and no others. Fields that stand nowhere here are skipped.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_ONNX_FIELDS_H
#define K2C_LIB_ONNX_FIELDS_H

#include <cstdint>

namespace k2c::onnx {

struct ModelFields {
  enum : uint32_t {
    irVersion = 1,
    producerName = 2,
    producerVersion = 3,
    graph = 7,
    opsetImport = 8,
    trainingInfo = 20,
    functions = 25
  };
};

struct OperatorSetFields {
  enum : uint32_t { domain = 1, version = 2 };
};

struct GraphFields {
  enum : uint32_t { node = 1, name = 2, initializer = 5, input = 11, output = 12, sparseInitializer = 15 };
};

struct NodeFields {
  enum : uint32_t { input = 1, output = 2, name = 3, op = 4, attribute = 5, domain = 7, overload = 8 };
};

struct FunctionFields {
  enum : uint32_t {
    name = 1,
    input = 4,
    output = 5,
    node = 7,
    opsetImport = 9,
    domain = 10,
    attributeDefault = 11,
    overload = 13
  };
};

struct AttributeFields {
  enum : uint32_t {
    name = 1,
    real = 2,
    integer = 3,
    text = 4,
    tensor = 5,
    reals = 7,
    integers = 8,
    texts = 9,
    type = 20,
    refersTo = 21
  };
};

/// AttributeProto.AttributeType.
enum class AttributeType : int64_t {
  None = 0,
  Float = 1,
  Int = 2,
  String = 3,
  Tensor = 4,
  Graph = 5,
  Floats = 6,
  Ints = 7,
  Strings = 8,
  Tensors = 9,
  Graphs = 10,
  SparseTensor = 11,
  SparseTensors = 12,
  TypeProto = 13,
  TypeProtos = 14
};

struct TensorFields {
  enum : uint32_t {
    shape = 1,
    type = 2,
    segment = 3,
    floatData = 4,
    int32Data = 5,
    stringData = 6,
    int64Data = 7,
    name = 8,
    rawData = 9,
    doubleData = 10,
    uint64Data = 11,
    externalData = 13,
    location = 14
  };
  /// The value of `location` of tensors that lie in another file.
  static constexpr int64_t external = 1;
};

struct SparseTensorFields {
  enum : uint32_t { values = 1 };
};

struct EntryFields {
  enum : uint32_t { key = 1, value = 2 };
};

struct ValueInfoFields {
  enum : uint32_t { name = 1, type = 2 };
};

/// Of the kinds of type a tensor's is read; of the others the field's number says which it is.
struct TypeFields {
  enum : uint32_t { tensor = 1, sequence = 4, map = 5, opaque = 7, sparseTensor = 8, optional = 9 };
};

struct TensorTypeFields {
  enum : uint32_t { element = 1, shape = 2 };
};

struct ShapeFields {
  enum : uint32_t { size = 1 };
};

struct SizeFields {
  enum : uint32_t { number = 1, symbol = 2 };
};

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_FIELDS_H

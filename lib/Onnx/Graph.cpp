//===- Graph.cpp - an ONNX file as data ---------------------------------------===//
#include "Graph.h"
#include "base/FormatBytes.h"

namespace k2c::onnx {

namespace {

/// TensorProto.DataType, by number.
constexpr struct {
  const char *name;
  int64_t bits; ///< 0: not read
} elementTypes[] = {
    {"UNDEFINED", 0},      {"FLOAT", 32},    {"UINT8", 8},        {"INT8", 8},           {"UINT16", 16},
    {"INT16", 16},         {"INT32", 32},    {"INT64", 64},       {"STRING", 0},         {"BOOL", 8},
    {"FLOAT16", 16},       {"DOUBLE", 64},   {"UINT32", 32},      {"UINT64", 64},        {"COMPLEX64", 0},
    {"COMPLEX128", 0},     {"BFLOAT16", 16}, {"FLOAT8E4M3FN", 8}, {"FLOAT8E4M3FNUZ", 8}, {"FLOAT8E5M2", 8},
    {"FLOAT8E5M2FNUZ", 8}, {"UINT4", 4},     {"INT4", 4},         {"FLOAT4E2M1", 0},     {"FLOAT8E8M0", 0},
    {"UINT2", 0},          {"INT2", 0},      {"FLOAT6E2M3", 0},   {"FLOAT6E3M2", 0}};

bool isKnown(ElementType type) { return type >= ElementType::None && size_t(type) < std::size(elementTypes); }

} // namespace

int64_t bitWidth(ElementType type) { return isKnown(type) ? elementTypes[size_t(type)].bits : 0; }

std::string name(ElementType type) {
  return isKnown(type) ? elementTypes[size_t(type)].name : "type " + std::to_string(int32_t(type));
}

int64_t Tensor::elements() const {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

int64_t Tensor::byteSize() const {
  const int64_t width = bitWidth(type);
  return width < 8 ? (elements() * width + 7) / 8 : elements() * (width / 8);
}

std::string describe(const Node &node, const std::vector<std::string> &values, size_t most) {
  const std::string op = shortened(node.op, most / 3);
  const size_t ofName = most - most / 3;
  if (!node.name.empty())
    return "node '" + shortened(node.name, ofName) + "' (" + op + ")";
  for (ValueId output : node.outputs)
    if (output != noValue)
      return "the " + op + " node of '" + shortened(values[static_cast<size_t>(output)], ofName) + "'";
  return "a node without name and outputs (" + op + ")";
}

Status Files::read(int64_t file, int64_t offset, void *out, int64_t count) const {
  const File &source = files[static_cast<size_t>(file)];
  const BytesRead read = readAt(source.descriptor.number, offset, out, count);
  if (read.error)
    return systemError(source.path, "cannot read", read.error);
  if (read.count < count)
    return Error{source.path,
                 "ends at byte " + std::to_string(offset + read.count) + ", " + std::to_string(offset + count) +
                     " are needed",
                 "the file was changed while it was read"};
  return {};
}

Expected<std::string> readTensor(const Graph &graph, const Tensor &tensor, int64_t limit) {
  const int64_t bytes = tensor.byteSize();
  if (bytes > limit)
    return Error{graph.path,
                 "constant '" + shortened(tensor.name) + "' has " + formatBytes(bytes) + ", at most " +
                     formatBytes(limit) + " are read",
                 ""};
  if (tensor.file < 0)
    return *tensor.bytes;
  std::string text(static_cast<size_t>(bytes), '\0');
  if (Status read = graph.files->read(tensor.file, tensor.offset, text.data(), bytes); !read)
    return read.takeError();
  return text;
}

} // namespace k2c::onnx

//===- Graph.h - an ONNX file as data -----------------------------------------===//
//
// What Read.cpp makes of a file: one flat graph in which model-local functions are inlined, nodes stand behind what
// they read, and every tensor's bytes are a place in a file. Values are numbers; names are kept for messages only.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_ONNX_GRAPH_H
#define K2C_LIB_ONNX_GRAPH_H

#include "base/Error.h"
#include "base/File.h"
#include "base/Utf8.h"
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace k2c::onnx {

/// What to do about a model that contradicts itself.
constexpr char damagedModel[] = "the model is damaged: export or copy it again";

/// Element types, by TensorProto's numbers.
enum class ElementType : int32_t {
  None = 0,
  F32 = 1,
  U8 = 2,
  I8 = 3,
  U16 = 4,
  I16 = 5,
  I32 = 6,
  I64 = 7,
  String = 8,
  Bool = 9,
  F16 = 10,
  F64 = 11,
  U32 = 12,
  U64 = 13,
  BF16 = 16,
  F8E4M3 = 17,
  F8E4M3Z = 18, ///< FNUZ: one zero, no infinities
  F8E5M2 = 19,
  F8E5M2Z = 20,
  U4 = 21,
  I4 = 22
};

/// Bits of one element; 0: of a type that is not read. 4-bit elements lie two in a byte, the first in the low half.
int64_t bitWidth(ElementType type);
/// As in onnx's own documents: "FLOAT16".
std::string name(ElementType type);

/// The files that a model's tensors lie in, open; tensors share them.
class Files {
public:
  /// Number 0: the .onnx file itself.
  struct File {
    std::string path; ///< as opened, for messages
    std::string name; ///< in the model's folder
    int64_t bytes = 0;
    Descriptor descriptor;
  };
  std::vector<File> files;

  /// Reads bytes [offset, offset + count) of a file. Error: it cannot be read or ends before. Callable from any thread.
  Status read(int64_t file, int64_t offset, void *out, int64_t count) const;
};

/// A constant tensor, row-major.
struct Tensor {
  std::string name;
  ElementType type = ElementType::None;
  std::vector<int64_t> shape;               ///< none negative; elements fit in 2^63
  int64_t file = -1;                        ///< of Files; -1: the bytes are in `bytes`
  int64_t offset = 0;                       ///< in the file
  std::shared_ptr<const std::string> bytes; ///< little-endian, packed as in raw_data; of typed fields, decoded

  int64_t elements() const;
  /// Bytes as they are stored.
  int64_t byteSize() const;
};

struct Attribute {
  enum class Kind { Float, Int, String, Tensor, Floats, Ints, Strings } kind = Kind::Int;
  float real = 0;
  int64_t integer = 0;
  std::string text;
  std::optional<Tensor> tensor;
  std::vector<float> reals;
  std::vector<int64_t> integers;
  std::vector<std::string> texts;
};

/// A value's number in its graph; none: an optional input or output that is left out.
using ValueId = int32_t;
constexpr ValueId noValue = -1;

struct Node {
  std::string op;
  std::string domain;  ///< "": ai.onnx
  int64_t version = 0; ///< of the operator set of its domain that the model imports
  std::string name;    ///< as in the file; behind the names of the calls that it was inlined from, with '/'
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::map<std::string, Attribute> attributes;
};

/// An input or output of the model.
struct Port {
  ValueId value = noValue;
  ElementType type = ElementType::None;
  /// A size, a symbol, or "" where the file says nothing.
  struct Size {
    int64_t size = -1; ///< negative: not a number
    std::string symbol;
  };
  std::optional<std::vector<Size>> shape; ///< none: the file says none
};

/// For messages, which quote at most `most` bytes of it: "node 'layers.0/Add' (Add)". A node without a name is that of
/// its first output.
std::string describe(const Node &node, const std::vector<std::string> &values, size_t most = maxQuoted / 2);

struct Graph {
  std::string path; ///< of the .onnx file
  int64_t irVersion = 0;
  std::string producer; ///< name and version
  std::shared_ptr<const Files> files;
  std::vector<std::string> values;               ///< names, by ValueId
  std::vector<Node> nodes;                       ///< each behind what it reads
  std::vector<Node> unused;                      ///< nodes that no output depends on
  std::unordered_map<ValueId, Tensor> constants; ///< initializers and Constant nodes
  std::vector<Port> inputs;                      ///< those that are no initializers
  std::vector<Port> outputs;
};

/// Reads `path`, a .onnx file: IR versions 3 to 14, opsets 13 to 28 of ai.onnx, com.microsoft 1. Model-local functions
/// are inlined, and count before operators of their name; Constant nodes are constants; nodes that no output depends on
/// stand apart; external data is opened below the model's folder alone. The file is hostile input. Errors name the
/// file and the node, tensor or byte.
Expected<Graph> readGraph(const std::string &path);

/// Reads all bytes of a constant, as they are stored. Error: it has more than `limit`, or the file cannot be read.
Expected<std::string> readTensor(const Graph &graph, const Tensor &tensor, int64_t limit);

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_GRAPH_H

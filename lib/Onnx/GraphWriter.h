//===- GraphWriter.h - a graph, node by node, as the bytes of a file --------------===//
//
// Every value has the name of the node that it comes from:
//
//   const std::string sum = graph.node("Add", "layers.0.sum", {"x", "y"});
//
// Small constants lie in the file itself, equal ones once; weights lie in another file, of which the graph has places.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_ONNX_GRAPHWRITER_H
#define K2C_LIB_ONNX_GRAPHWRITER_H

#include "Graph.h"
#include "Message.h"
#include <set>
#include <utility>
#include <variant>

namespace k2c::onnx {

/// The file beside model.onnx that weights lie in.
inline constexpr const char *dataFileName = "model.onnx.data";

/// Writes a model of ai.onnx 23 and com.microsoft 1.
class GraphWriter {
public:
  using Names = std::vector<std::string>;
  using Attributes = std::vector<std::pair<const char *, std::variant<int64_t, double, const char *>>>;

  /// A node of one output of that name, which is returned. An input "" is left out.
  std::string node(const std::string &op, const std::string &name, const Names &inputs,
                   const Attributes &attributes = {}, const std::string &domain = "") {
    nodes(op, name, inputs, {name}, attributes, domain);
    return name;
  }
  /// A node of several outputs.
  void nodes(const std::string &op, const std::string &name, const Names &inputs, const Names &outputs,
             const Attributes &attributes = {}, const std::string &domain = "");

  /// Names of constants: [n] or a single one of INT64, a single one of FLOAT, [n] of FLOAT by a name of its own.
  std::string list(const std::vector<int64_t> &values);
  std::string integer(int64_t value);
  std::string real(float value);
  std::string reals(const std::string &name, const std::vector<float> &values);
  /// A constant of FLOAT that lies in dataFileName.
  void external(const std::string &name, const std::vector<int64_t> &shape, int64_t offset);

  void input(const std::string &name, ElementType type, const std::vector<Port::Size> &shape);
  void output(const std::string &name, ElementType type, const std::vector<Port::Size> &shape);

  /// The bytes of the .onnx file; `version` is that of this program.
  std::string model(const std::string &version) const;

private:
  std::string constant(const std::string &name, ElementType type, const std::vector<int64_t> &shape,
                       const std::string &bytes);

  Message graphNodes, initializers, inputs, outputs;
  std::set<std::string> constants; ///< names
};

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_GRAPHWRITER_H

//===- DecoderWriter.h - a model as a graph that runtimes run ---------------------===//
//
// A layer is written op by op of k2c/Model/Layers.h, whose list the frontend compiles from, too. A value of the graph
// has rows [batch, sequence, elements]: heads of a row lie one behind another, so reshapes of rows are no nodes.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_ONNX_DECODERWRITER_H
#define K2C_LIB_ONNX_DECODERWRITER_H

#include "DataFile.h"
#include "GraphWriter.h"
#include "k2c/Model/Layers.h"

namespace k2c::onnx {

/// Whether layers of experts are a MoE node, which scores by a softmax, chooses the best and may make their weights sum
/// to 1; other routers and the experts that they choose are nodes.
bool isMoeNode(const MoeSpec &moe);

/// Whether attentions are GroupQueryAttention nodes, which keep keys and values, turn them and mask by themselves. Of
/// ONNX Runtime's kernels for processors they need heads of 16 elements or a multiple; its tables have a row for each
/// position, which have to be few enough.
bool areGroupQueryNodes(const ModelSpec &spec);

/// Tokens of the longest sequence: those that the model is for, and the formulas of its angles.
int64_t longestSequence(const ModelSpec &spec);

/// Writes one decoder. What its graph cannot say was refused before (Export.cpp).
class DecoderWriter {
public:
  DecoderWriter(const ModelSpec &spec, GraphWriter &graph, DataFile &data)
      : spec(spec), graph(graph), data(data), isGrouped(areGroupQueryNodes(spec)) {}

  void write();

private:
  using Names = GraphWriter::Names;
  /// What an op leaves: one value, or several that the ops behind it take together.
  struct Value {
    Names names;
    std::vector<int64_t> row; ///< its dimensions
    bool isTurned = false;    ///< of queries and keys: by the attention that reads them
  };

  void writeInputs();
  void writeOutputs();
  void writeLengths();
  void writeMask();
  void writeAngles();
  void writeLayer(int64_t layer, const LayerKind &kind);
  std::vector<Value> lower(const LayerOp &op, const std::vector<Value> &in);

  /// "layers.3.", before the names of a layer's values.
  std::string own(const std::string &role) const { return scope + role; }
  /// A name that no other value has.
  std::string fresh(const std::string &role);
  std::string onnx(const std::string &op, const std::string &role, const Names &inputs,
                   const GraphWriter::Attributes &attributes = {}) {
    return graph.node(op, fresh(role), inputs, attributes);
  }
  std::string reshaped(const std::string &role, const std::string &x, const std::vector<int64_t> &shape) {
    return onnx("Reshape", role, {x, graph.list(shape)});
  }
  /// The last of `sizes.size()` dimensions in parts.
  Names split(const std::string &role, const std::string &x, int64_t axis, const std::vector<int64_t> &sizes);
  /// A name of a tensor of weights that is planned once.
  std::string weights(const std::string &name, DataTensor tensor);
  /// A tensor of the checkpoint as it is.
  std::string vectorOf(const WeightFamily &family, size_t alternative = 0);
  std::string linear(const std::string &x, const WeightFamily &family, size_t alternative);

  // In DecoderAttention.cpp.
  Value rotary(const LayerOp &op, const Value &x);
  std::string turned(const std::string &role, const std::string &x, int64_t heads, int64_t width);
  Value attention(const LayerOp &op, const Value &query, const Value &view);
  Value groupQuery(const LayerOp &op, const Value &query, const Value &view);
  Value standardAttention(const LayerOp &op, const std::string &query, const std::string &key, const std::string &value,
                          int64_t keyHeads);
  Value latentAttention(const LayerOp &op, const Value &query, const Value &view);
  Names tables(const std::string &rope);

  // In DecoderExperts.cpp.
  std::vector<Value> routing(const LayerOp &op, const Value &logits);
  std::string withoutOtherGroups(const std::string &choice);
  Value experts(const LayerOp &op, const std::vector<Value> &in);
  Names expertWeights(const LayerOp &op, DataTensor::Order order);
  std::string moeNode(const LayerOp &op, const std::string &x, const std::string &logits);
  std::string chosenExperts(const LayerOp &op, const std::string &x, const std::string &ids,
                            const std::string &factors);
  std::string gated(const std::string &gate, const std::string &up);

  const ModelSpec &spec;
  GraphWriter &graph;
  DataFile &data;
  const bool isGrouped;
  int64_t layer = 0;
  LayerKind kind;
  std::string scope;                   ///< before the names of values
  std::string stream = "embedding";    ///< the residual stream behind the last layer
  std::map<std::string, int> counts;   ///< of names that were asked for
  std::set<std::string> planned;       ///< tensors
  std::map<std::string, Names> angles; ///< cosines and sines of the step's positions, by rope
};

} // namespace k2c::onnx

#endif // K2C_LIB_ONNX_DECODERWRITER_H

//===- TinyDecoder.h - small decoders whose parts can be replaced ---------------===//
//
// A decoder as exporters write it, of primitive ops: RMS norms, rotary embeddings of frequencies, attention with
// caches, gated MLPs or experts. Every value on its way has a name, and a change gives another one in its place:
//
//   TinyDecoder tiny;
//   tiny.changes["1.scores"] = [](TinyDecoder &of, ValueId scores) { return of.op("Neg", {scores}); };
//   EXPECT_EQ(failure(tiny), "..");
//
//===----------------------------------------------------------------------===//
#ifndef K2C_UNIT_ONNX_TINYDECODER_H
#define K2C_UNIT_ONNX_TINYDECODER_H

#include "GraphBuilder.h"
#include "ImportGraph.h"
#include <functional>
#include <gtest/gtest.h>
#include <map>

namespace k2c::onnx::test {

/// What a tiny decoder is made of.
struct TinyOptions {
  int64_t layers = 2, hidden = 8, vocab = 11, inter = 6;
  int64_t heads = 4, kvHeads = 2, width = 4; ///< of attention
  int64_t window = 0;                        ///< 0: none
  bool hasPast = true;
  bool isTurned = true;
  double theta = 10000;

  int64_t experts = 0; ///< 0: a gated MLP
  int64_t topK = 2, groups = 1, topGroups = 1;
  bool isSigmoid = false;     ///< scores of experts; else a softmax
  bool hasChoiceBias = false; ///< that chooses experts alone
  bool normalizes = true;     ///< weights of a token sum to 1
  bool runsAll = false;       ///< every expert, each times its weight or 0; else those chosen, gathered
  bool hasShared = false;     ///< an expert of all tokens

  bool isLatent = false; ///< attention; kvHeads is not read
  bool hasQueryLatent = false;
  int64_t latent = 6, queryLatent = 5, nope = 4, rope = 4, value = 3;
};

class TinyDecoder {
public:
  using Change = std::function<ValueId(TinyDecoder &of, ValueId value)>;

  TinyDecoder() = default;
  explicit TinyDecoder(const TinyOptions &options) : options(options) {}

  /// The graph with its changes; a change of a part that there is not fails the test.
  Graph build();

  // For changes.
  /// A value by its name: "0.query".
  ValueId operator[](const std::string &name) const { return values.at(name); }
  ValueId op(const std::string &op, std::vector<ValueId> inputs, const GraphBuilder::Attributes &attributes = {}) {
    return graph.node(op, std::move(inputs), attributes);
  }
  ValueId times(ValueId value, double factor) { return op("Mul", {value, graph.number(factor)}); }
  ValueId plus(ValueId value, double number) { return op("Add", {value, graph.number(number)}); }
  /// Elements [begin, end) of an axis.
  ValueId cut(ValueId value, int64_t axis, int64_t begin, int64_t end);
  ValueId reshaped(ValueId value, const std::vector<int64_t> &shape) {
    return op("Reshape", {value, graph.list(shape)});
  }
  ValueId unsqueezed(ValueId value, const std::vector<int64_t> &axes) {
    return op("Unsqueeze", {value, graph.list(axes)});
  }
  /// A weight of numbers that follow from its name.
  ValueId weight(const std::string &name, const std::vector<int64_t> &shape, ElementType type = ElementType::F32);
  /// A linear layer: rows times the weight `name`, [depth, columns].
  ValueId linear(const std::string &name, ValueId rows, int64_t depth, int64_t columns) {
    return op("MatMul", {rows, weight(name, {depth, columns})});
  }
  ValueId norm(const std::string &name, ValueId rows, int64_t size, double eps = 1e-6);
  /// [batch, heads, sequence, dims] turned by positions times theta ^ (-2 i / dims).
  ValueId turned(ValueId rows, int64_t dims, double theta);

  TinyOptions options;
  std::map<std::string, Change> changes;
  GraphBuilder graph;

private:
  /// Gives a value its name, or what a change has in its place.
  ValueId part(const std::string &name, ValueId value);
  void addLayer(int64_t layer);
  ValueId attention(const std::string &prefix, ValueId rows);
  ValueId latentAttention(const std::string &prefix, ValueId rows);
  ValueId attended(const std::string &prefix, ValueId query, ValueId keys, ValueId values, double scale);
  ValueId mask(const std::string &prefix, ValueId keys);
  ValueId inHeads(ValueId rows, int64_t heads, int64_t width);
  /// Past rows and those of the step.
  ValueId withPast(const std::string &prefix, const std::string &what, ValueId rows, int64_t heads, int64_t width);
  ValueId mlp(const std::string &prefix, ValueId rows);
  ValueId router(const std::string &prefix, ValueId rows);
  ValueId choice(const std::string &prefix, ValueId scores);
  ValueId experts(const std::string &prefix, ValueId rows);
  ValueId gathered(const std::string &prefix, ValueId rows);
  ValueId all(const std::string &prefix, ValueId rows);

  std::map<std::string, ValueId> values;
  ValueId stream = noValue, ids = noValue, positions = noValue;
};

/// The numbers of a weight, by its name.
std::vector<double> sampled(const std::string &name, int64_t count);

/// What a graph is imported as; fails the test where it is refused.
struct Imported {
  explicit Imported(TinyDecoder tiny);
  /// The numbers of a tensor of the model.
  std::vector<double> tensor(const std::string &name) const;
  const GqaSpec &attention() const { return std::get<GqaSpec>(model.spec.attentions.at("attention")); }

  Graph graph;
  ImportedGraph model;
};

/// The numbers of a weight [rows, columns] by its name, columns first, as checkpoints store them.
std::vector<double> transposed(const std::string &name, int64_t rows, int64_t columns);

/// Why a decoder is refused: "message (remedy)"; "" where it is not.
std::string failure(TinyDecoder tiny);
/// The same of a decoder with one change.
std::string failure(const TinyOptions &options, const std::string &part, TinyDecoder::Change change);

} // namespace k2c::onnx::test

#endif // K2C_UNIT_ONNX_TINYDECODER_H

//===- DecoderAttention.cpp - attentions of a graph that is written ---------------===//
//
// com.microsoft's GroupQueryAttention where its kernel takes the model: it turns queries and keys by tables, keeps and
// masks them, and its runtimes have a kernel for each device. Else ai.onnx's Attention with a mask of the graph, behind
// RotaryEmbedding with angles of the graph, which takes heads of any width. Latent attention is that, too: the latent
// becomes keys and values of all heads, which the cache holds.
//
//===----------------------------------------------------------------------===//
#include "DecoderWriter.h"

#include "k2c/Model/Rope.h"
#include <algorithm>

namespace k2c::onnx {

namespace {

/// Bytes of tables beyond which angles are computed in the graph.
constexpr int64_t maxTableBytes = int64_t(64) << 20;
/// Elements of a head, of which ONNX Runtime's kernel of GroupQueryAttention wants a multiple.
constexpr int64_t headMultiple = 16;
/// Of what is added to scores of keys that a query does not see: the lowest float32, so that a row of padding, which
/// sees none, is no division by 0.
constexpr float unseen = -0x1.fffffep+127f;

} // namespace

int64_t longestSequence(const ModelSpec &spec) {
  int64_t longest = spec.maxPosition;
  for (const auto &[name, rope] : spec.ropes)
    if (rope.maxContext > 0)
      longest = std::min(longest, rope.maxContext);
  return longest;
}

bool areGroupQueryNodes(const ModelSpec &spec) {
  for (const auto &[name, attention] : spec.attentions) {
    const GqaSpec *const gqa = std::get_if<GqaSpec>(&attention);
    if (!gqa || gqa->headDim % headMultiple != 0)
      return false;
  }
  for (const auto &[name, rope] : spec.ropes)
    if (rope.dims % headMultiple != 0 || longestSequence(spec) > maxTableBytes / (rope.dims * int64_t(sizeof(float))))
      return false;
  return true;
}

/// How long sequences are: for GroupQueryAttention of each row of the batch, for other nodes where a step begins.
void DecoderWriter::writeLengths() {
  const std::string total =
      graph.node("Gather", "total_length", {graph.node("Shape", "mask_shape", {"attention_mask"}), graph.integer(1)});
  if (isGrouped) {
    const std::string count =
        graph.node("ReduceSum", "lengths", {"attention_mask", graph.list({1})}, {{"keepdims", int64_t(0)}});
    const int64_t type = int64_t(ElementType::I32);
    graph.node("Cast", "last_positions", {graph.node("Sub", "lengths_less_one", {count, graph.integer(1)})},
               {{"to", type}});
    graph.node("Cast", "total_length_int32", {total}, {{"to", type}});
    return;
  }
  const std::string step =
      graph.node("Gather", "step_length", {graph.node("Shape", "ids_shape", {"input_ids"}), graph.integer(1)});
  graph.node("Sub", "past_length", {total, step});
}

/// What is added to scores, [batch, 1, sequence, total]: 0 where a key is no padding and not behind its query.
void DecoderWriter::writeMask() {
  const std::string one = graph.integer(1);
  const std::string keys = graph.node("Range", "keys", {graph.integer(0), "total_length", one});
  const std::string queries = graph.node("Range", "queries", {"past_length", "total_length", one});
  const std::string before =
      graph.node("LessOrEqual", "is_before", {keys, graph.node("Unsqueeze", "query_rows", {queries, graph.list({1})})});
  const std::string tokens = graph.node("Cast", "is_token", {"attention_mask"}, {{"to", int64_t(ElementType::Bool)}});
  const std::string seen =
      graph.node("And", "is_seen", {before, graph.node("Unsqueeze", "token_columns", {tokens, graph.list({1, 2})})});
  graph.node("Where", "mask", {seen, graph.real(0), graph.real(unseen)});
}

/// Cosines and sines of the step's tokens, [batch, sequence, pairs], of each rotary embedding.
void DecoderWriter::writeAngles() {
  const std::string positions = graph.node("Cast", "positions", {"position_ids"}, {{"to", int64_t(ElementType::F32)}});
  const std::string rows = graph.node("Unsqueeze", "position_rows", {positions, graph.list({2})});
  for (const std::string &name : ropesOfLayers(spec)) {
    const RopeSpec &rope = spec.ropes.at(name);
    const std::string frequencies = graph.reals(name + ".frequencies", ropeInverseFrequencies(rope));
    const std::string angle = graph.node("Mul", name + ".angles", {rows, frequencies});
    for (const char *function : {"Cos", "Sin"}) {
      const std::string value = graph.node(function, name + "." + function, {angle});
      angles[name].push_back(rope.cosSinScale == 1
                                 ? value
                                 : graph.node("Mul", value + ".scaled", {value, graph.real(float(rope.cosSinScale))}));
    }
  }
}

/// Tables of all positions that GroupQueryAttention reads.
DecoderWriter::Names DecoderWriter::tables(const std::string &name) {
  const RopeSpec &rope = spec.ropes.at(name);
  const std::vector<int64_t> shape = {longestSequence(spec), rope.dims / 2};
  return {weights(name + ".cos_cache", {DataTensor::Order::Cosines, shape, {}, rope}),
          weights(name + ".sin_cache", {DataTensor::Order::Sines, shape, {}, rope})};
}

/// Heads [batch, sequence, heads * width], whose first elements are turned.
std::string DecoderWriter::turned(const std::string &role, const std::string &x, int64_t heads, int64_t width) {
  const RopeSpec &rope = spec.ropes.at(kind.rope);
  GraphWriter::Attributes attributes = {{"num_heads", heads},
                                        {"interleaved", int64_t(rope.pairs == RopePairs::Interleaved)}};
  if (rope.dims < width)
    attributes.push_back({"rotary_embedding_dim", rope.dims});
  const Names &of = angles.at(kind.rope);
  return onnx("RotaryEmbedding", role, {x, of[0], of[1]}, attributes);
}

DecoderWriter::Value DecoderWriter::rotary(const LayerOp &op, const Value &x) {
  if (isGrouped)
    return {x.names, x.row, true};
  const int64_t heads = x.row.size() == 2 ? x.row[0] : 1, width = x.row.back();
  if (op.first == 0)
    return {{turned("rotary", x.names[0], heads, width)}, x.row};
  const std::string apart = reshaped("query.heads", x.names[0], {0, 0, heads, width});
  const Names parts = split("query.parts", apart, -1, {op.first, width - op.first});
  const std::string rows = reshaped("query.rows", parts[1], {0, 0, heads * (width - op.first)});
  const std::string both = turned("query.rotary", rows, heads, width - op.first);
  const std::string back = reshaped("query.turned", both, {0, 0, heads, width - op.first});
  const std::string whole = onnx("Concat", "query.whole", {parts[0], back}, {{"axis", int64_t(-1)}});
  return {{reshaped("query", whole, {0, 0, heads * width})}, x.row};
}

DecoderWriter::Value DecoderWriter::attention(const LayerOp &op, const Value &query, const Value &view) {
  return isGrouped ? groupQuery(op, query, view)
                   : standardAttention(op, query.names[0], view.names[0], view.names[1], view.row[0]);
}

DecoderWriter::Value DecoderWriter::groupQuery(const LayerOp &op, const Value &query, const Value &view) {
  const std::string number = std::to_string(layer), name = fresh("attention");
  Names inputs = {query.names[0],
                  view.names[0],
                  view.names[1],
                  "past_key_values." + number + ".key",
                  "past_key_values." + number + ".value",
                  "last_positions",
                  "total_length_int32"};
  GraphWriter::Attributes attributes = {
      {"num_heads", op.results[0][0]}, {"kv_num_heads", view.row[0]}, {"scale", spec.softmaxScale(kind)}};
  if (query.isTurned) {
    const RopeSpec &rope = spec.ropes.at(kind.rope);
    const Names of = tables(kind.rope);
    inputs.insert(inputs.end(), of.begin(), of.end());
    attributes.push_back({"do_rotary", int64_t(1)});
    attributes.push_back({"rotary_interleaved", int64_t(rope.pairs == RopePairs::Interleaved)});
  }
  graph.nodes("GroupQueryAttention", name, inputs, {name, "present." + number + ".key", "present." + number + ".value"},
              attributes, "com.microsoft");
  return {{name}, op.results[0]};
}

DecoderWriter::Value DecoderWriter::standardAttention(const LayerOp &op, const std::string &query,
                                                      const std::string &key, const std::string &value,
                                                      int64_t keyHeads) {
  const std::string number = std::to_string(layer), name = fresh("attention");
  graph.nodes("Attention", name,
              {query, key, value, "mask", "past_key_values." + number + ".key", "past_key_values." + number + ".value"},
              {name, "present." + number + ".key", "present." + number + ".value"},
              {{"q_num_heads", op.results[0][0]}, {"kv_num_heads", keyHeads}, {"scale", spec.softmaxScale(kind)}});
  return {{name}, op.results[0]};
}

/// The latent becomes keys and values of all heads; each key gets the rotated part that all share.
DecoderWriter::Value DecoderWriter::latentAttention(const LayerOp &op, const Value &query, const Value &view) {
  const MlaSpec &mla = *spec.latentAttention();
  const std::string both = linear(view.names[0], *spec.find(op.weights[0]), 0);
  const std::string apart = reshaped("kv.heads", both, {0, 0, mla.heads, mla.nope + mla.value});
  const Names parts = split("kv.parts", apart, -1, {mla.nope, mla.value});
  const std::string row = reshaped("key.shared", view.names[1], {0, 0, 1, mla.rope});
  const std::string shared = onnx("Expand", "key.turned", {row, graph.list({1, 1, mla.heads, 1})});
  const std::string whole = onnx("Concat", "key.whole", {parts[0], shared}, {{"axis", int64_t(-1)}});
  return standardAttention(op, query.names[0], reshaped("key", whole, {0, 0, mla.heads * (mla.nope + mla.rope)}),
                           reshaped("value", parts[1], {0, 0, mla.heads * mla.value}), mla.heads);
}

} // namespace k2c::onnx

//===- DecoderWriter.cpp - a model as a graph that runtimes run -------------------===//
//
//   ids -> rows of the embedding -> layers -> norm -> logits
//
// Inputs and outputs are those of onnxruntime-genai: ids, a mask that is 0 at padding, keys and values of past tokens
// for each layer. A model whose attentions turn their queries and keys by nodes of the graph also gets positions.
//
//===----------------------------------------------------------------------===//
#include "DecoderWriter.h"

namespace k2c::onnx {

namespace {

constexpr const char *batchSize = "batch_size", *sequenceLength = "sequence_length",
                     *pastLength = "past_sequence_length", *totalLength = "total_sequence_length";

Port::Size symbol(const char *name) { return {-1, name}; }
Port::Size number(int64_t size) { return {size, ""}; }

} // namespace

std::string DecoderWriter::fresh(const std::string &role) {
  const std::string name = own(role);
  const int before = counts[name]++;
  return before == 0 ? name : name + "." + std::to_string(before + 1);
}

DecoderWriter::Names DecoderWriter::split(const std::string &role, const std::string &x, int64_t axis,
                                          const std::vector<int64_t> &sizes) {
  const std::string name = fresh(role);
  Names parts;
  for (size_t i = 0; i < sizes.size(); i++)
    parts.push_back(name + "." + std::to_string(i));
  graph.nodes("Split", name, {x, graph.list(sizes)}, parts, {{"axis", axis}});
  return parts;
}

std::string DecoderWriter::weights(const std::string &name, DataTensor tensor) {
  if (planned.insert(name).second) {
    const std::vector<int64_t> shape = tensor.shape;
    graph.external(name, shape, data.add(std::move(tensor)));
  }
  return name;
}

std::string DecoderWriter::vectorOf(const WeightFamily &family, size_t alternative) {
  const std::string name = family.tensorName(layer, 0, alternative);
  return weights(name, {DataTensor::Order::AsStored, family.shape, {name}});
}

/// x W, with a bias where there is one.
std::string DecoderWriter::linear(const std::string &x, const WeightFamily &family, size_t alternative) {
  const std::string tensor = family.tensorName(layer, 0, alternative);
  const std::string role = family.alternatives.empty() ? family.id : family.id + "." + family.alternatives[alternative];
  const std::string y =
      onnx("MatMul", role,
           {x, weights(tensor, {DataTensor::Order::Transposed, {family.shape[1], family.shape[0]}, {tensor}})});
  const WeightFamily *const bias = spec.find(family.id + "_bias");
  return bias ? onnx("Add", role + ".biased", {y, vectorOf(*bias, alternative)}) : y;
}

void DecoderWriter::writeInputs() {
  const std::vector<Port::Size> rows = {symbol(batchSize), symbol(sequenceLength)};
  graph.input("input_ids", ElementType::I64, rows);
  graph.input("attention_mask", ElementType::I64, {symbol(batchSize), symbol(totalLength)});
  if (!isGrouped)
    graph.input("position_ids", ElementType::I64, rows);
  for (const auto &[kind, range] : spec.layersByKind()) {
    const AttentionSizes sizes = attentionSizes(spec.attentions.at(kind.attention));
    for (int64_t layer = range.begin; layer < range.end; layer++)
      for (const auto &[what, width] : {std::pair("key", sizes.key), std::pair("value", sizes.value)})
        graph.input("past_key_values." + std::to_string(layer) + "." + what, ElementType::F32,
                    {symbol(batchSize), number(sizes.keyHeads), symbol(pastLength), number(width)});
  }
}

void DecoderWriter::writeOutputs() {
  graph.output("logits", ElementType::F32, {symbol(batchSize), symbol(sequenceLength), number(spec.vocab)});
  for (const auto &[kind, range] : spec.layersByKind()) {
    const AttentionSizes sizes = attentionSizes(spec.attentions.at(kind.attention));
    for (int64_t layer = range.begin; layer < range.end; layer++)
      for (const auto &[what, width] : {std::pair("key", sizes.key), std::pair("value", sizes.value)})
        graph.output("present." + std::to_string(layer) + "." + what, ElementType::F32,
                     {symbol(batchSize), number(sizes.keyHeads), symbol(totalLength), number(width)});
  }
}

void DecoderWriter::writeLayer(int64_t number, const LayerKind &ofKind) {
  layer = number;
  kind = ofKind;
  scope = "layers." + std::to_string(layer) + ".";
  std::vector<Value> values = {{{stream}, {spec.hidden}}};
  for (const LayerOp &op : layerOps(spec, kind)) {
    std::vector<Value> in;
    for (size_t input : op.inputs)
      in.push_back(values[input]);
    for (Value &result : lower(op, in))
      values.push_back(std::move(result));
  }
  stream = values.back().names[0];
}

std::vector<DecoderWriter::Value> DecoderWriter::lower(const LayerOp &op, const std::vector<Value> &in) {
  const auto one = [&](std::string name) { return std::vector<Value>{{{std::move(name)}, op.results[0]}}; };
  const WeightFamily *const family = op.weights.empty() ? nullptr : spec.find(op.weights[0]);
  switch (op.kind) {
  case LayerOpKind::RmsNorm: {
    const std::vector<int64_t> &row = op.results[0];
    const bool isOfHeads = row.size() == 2;
    const GraphWriter::Attributes attributes = {{"axis", int64_t(-1)}, {"epsilon", op.number}};
    const std::string x =
        isOfHeads ? reshaped(family->id + ".heads", in[0].names[0], {0, 0, row[0], row[1]}) : in[0].names[0];
    const std::string y = onnx("RMSNormalization", family->id, {x, vectorOf(*family)}, attributes);
    return one(isOfHeads ? reshaped(family->id + ".rows", y, {0, 0, row[0] * row[1]}) : y);
  }
  case LayerOpKind::Linear: {
    Value out{{}, op.results[0]};
    for (size_t i = 0; i < std::max<size_t>(1, family->alternatives.size()); i++)
      out.names.push_back(linear(in[0].names[0], *family, i));
    return {out};
  }
  case LayerOpKind::Reshape:
    return {{in[0].names, op.results[0]}};
  case LayerOpKind::Split: {
    const Names parts = split("parts", in[0].names[0], -1, {op.results[0].back(), op.results[1].back()});
    return {{{parts[0]}, op.results[0]}, {{parts[1]}, op.results[1]}};
  }
  case LayerOpKind::Clip:
    return one(onnx("Clip", "clip", {in[0].names[0], graph.real(float(-op.number)), graph.real(float(op.number))}));
  case LayerOpKind::Rotary:
    return {rotary(op, in[0])};
  case LayerOpKind::Append:
  case LayerOpKind::LatentAppend:
    return {{{in[0].names[0], in[1].names[0]}, in[0].row}};
  case LayerOpKind::Attention:
    return {attention(op, in[0], in[1])};
  case LayerOpKind::LatentAttention:
    return {latentAttention(op, in[0], in[1])};
  case LayerOpKind::GatedAct:
    return one(gated(in[0].names[0], in[0].names[1]));
  case LayerOpKind::Routing:
    return routing(op, in[0]);
  case LayerOpKind::Experts:
    return {experts(op, in)};
  case LayerOpKind::Add:
    break;
  }
  return one(onnx("Add", "sum", {in[0].names[0], in[1].names[0]}));
}

/// silu(gate) up.
std::string DecoderWriter::gated(const std::string &gate, const std::string &up) {
  const std::string active = onnx("Mul", "silu", {gate, onnx("Sigmoid", "sigmoid", {gate})});
  return onnx("Mul", "gated", {active, up});
}

void DecoderWriter::write() {
  writeInputs();
  writeLengths();
  if (!isGrouped) {
    writeMask();
    writeAngles();
  }
  const std::string embedding = vectorOf(*spec.find("embed"));
  graph.node("Gather", stream, {embedding, "input_ids"});
  for (const auto &[kind, range] : spec.layersByKind())
    for (int64_t number = range.begin; number < range.end; number++)
      writeLayer(number, kind);
  scope = "";
  const std::string norm = graph.node("RMSNormalization", "final_norm", {stream, vectorOf(*spec.find("final_norm"))},
                                      {{"axis", int64_t(-1)}, {"epsilon", spec.normEps}});
  if (const WeightFamily *const head = spec.find("head")) {
    const std::string tensor = head->tensorName();
    graph.node("MatMul", "logits",
               {norm, weights(tensor, {DataTensor::Order::Transposed, {head->shape[1], head->shape[0]}, {tensor}})});
  } else {
    graph.node("MatMul", "logits", {norm, graph.node("Transpose", "embedding_columns", {embedding})});
  }
  writeOutputs();
}

} // namespace k2c::onnx

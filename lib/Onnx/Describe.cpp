//===- Describe.cpp - what an ONNX file is, for people -----------------------------------===//
//
// What the import of a graph finds, with where it found it. A graph that is refused is described as far as it was
// understood: inputs by the roles that explain most of it, parts of the decoder by how many they are.
//
//===----------------------------------------------------------------------===//
#include "k2c/Onnx/Describe.h"

#include "ImportGraph.h"
#include "base/Utf8.h"
#include <algorithm>

namespace k2c {

using namespace onnx;

namespace {

std::string domainOf(const Node &node) { return node.domain.empty() ? "ai.onnx" : node.domain; }

void countNodes(const Graph &graph, OnnxDescription &out) {
  for (const Node &node : graph.nodes) {
    out.operatorSets[domainOf(node)].insert(node.version);
    out.operators[node.domain.empty() ? node.op : node.domain + ":" + node.op]++;
  }
  for (const Node &node : graph.unused)
    out.unused.push_back(describe(node, graph.values));
  out.nodes = int64_t(graph.nodes.size());
  out.constants = int64_t(graph.constants.size());
}

std::string roleOf(const InputRoles &roles, ValueId input) {
  const auto isIn = [&](const std::vector<ValueId> &list) {
    return std::find(list.begin(), list.end(), input) != list.end();
  };
  return input == roles.tokens   ? "tokens"
         : isIn(roles.masks)     ? "mask"
         : isIn(roles.positions) ? "positions"
         : isIn(roles.caches)    ? "cache"
                                 : "";
}

OnnxDescription::Port portOf(const Graph &graph, const Port &port, const InputRoles &roles) {
  OnnxDescription::Port out;
  out.name = graph.values[size_t(port.value)];
  out.role = roleOf(roles, port.value);
  out.type = name(port.type);
  if (!port.shape)
    return out;
  for (const Port::Size &size : *port.shape)
    out.shape += (out.shape.empty() ? "[" : ", ") + (size.size >= 0        ? std::to_string(size.size)
                                                     : size.symbol.empty() ? "?"
                                                                           : shortened(size.symbol, maxQuoted / 3));
  out.shape += out.shape.empty() ? "[]" : "]";
  return out;
}

OnnxDescription::Weight weightOf(const WeightFamily &family, int64_t layer, size_t alternative,
                                 const OnnxTensors &tensors) {
  OnnxDescription::Weight out;
  out.role = family.id;
  out.tensor = family.tensorName(layer, 0, alternative);
  const Tensor &constant = tensors.constantOf(out.tensor);
  out.constant = constant.name;
  out.type = name(constant.type);
  const Quantised *const quantised = tensors.quantisedOf(out.tensor);
  out.format = quantised ? quantised->format() : "";
  out.shape = quantised ? quantised->shape : constant.shape;
  out.isTransposed = tensors.isTransposed(out.tensor);
  return out;
}

/// Where the weights of a layer lie; of -1: of the whole model.
std::vector<OnnxDescription::Weight> weightsOf(const ModelSpec &spec, int64_t layer, const OnnxTensors &tensors) {
  std::vector<OnnxDescription::Weight> out;
  for (const WeightFamily &family : spec.weights)
    if (layer < 0 ? family.layers.empty() : family.hasLayer(layer))
      for (size_t i = 0; i < std::max<size_t>(1, family.alternatives.size()); i++)
        out.push_back(weightOf(family, std::max<int64_t>(0, layer), i, tensors));
  return out;
}

void addParts(const FoundParts &parts, OnnxDescription &out) {
  if (parts.hidden > 0)
    out.understood.push_back("head of " + std::to_string(parts.vocab) + " ids and " + std::to_string(parts.hidden) +
                             " columns");
  for (const auto &[count, what] : {std::pair(parts.attentions, "attentions"), std::pair(parts.mlps, "gated MLPs"),
                                    std::pair(parts.experts, "layers of experts")})
    if (count > 0)
      out.understood.push_back(std::string(what) + ": " + std::to_string(count));
}

} // namespace

Expected<OnnxDescription> describeOnnx(const std::string &path) {
  const Expected<Graph> graph = readGraph(path);
  if (!graph)
    return graph.error();
  OnnxDescription out;
  out.irVersion = graph->irVersion;
  out.producer = graph->producer;
  countNodes(*graph, out);
  FoundParts parts;
  Expected<ImportedGraph> model = importGraph(*graph, &parts);
  InputRoles roles;
  if (model) {
    roles = model->roles;
  } else {
    out.error = model.error();
    addParts(parts, out);
    roles = parts.roles;
  }
  for (const Port &port : graph->inputs)
    out.inputs.push_back(portOf(*graph, port, roles));
  for (const Port &port : graph->outputs)
    out.outputs.push_back(portOf(*graph, port, InputRoles()));
  if (!model)
    return out;
  for (const LayersOfKind &run : model->spec.layersByKind())
    out.weights.push_back(weightsOf(model->spec, run.range.begin, *model->tensors));
  out.whole = weightsOf(model->spec, -1, *model->tensors);
  out.spec = std::move(model->spec);
  return out;
}

} // namespace k2c

//===- Spec.cpp - a decoder as a ModelSpec and its tensors -----------------------------===//
//
// Layers that are made of the same are of one kind. Weights get the names that most checkpoints have for their role;
// each is a part of a constant (Tensors.h), shaped as a checkpoint stores it.
//
//===----------------------------------------------------------------------===//
#include "SpecBuilder.h"

#include "base/Utf8.h"
#include "k2c/Model/LayerRuns.h"
#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace k2c::onnx {

double written(double value) {
  char text[32];
  for (int digits = 1; digits <= 9; digits++) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (std::strtof(text, nullptr) == float(value))
      return std::strtod(text, nullptr);
  }
  return value;
}

WeightFamily &SpecBuilder::family(const std::string &id, const std::string &pattern) {
  for (WeightFamily &known : spec.weights)
    if (known.id == id)
      return known;
  WeightFamily made;
  made.id = id;
  made.pattern = pattern;
  made.place = fold.graph.path;
  const size_t open = pattern.find("{gate_proj|up_proj}");
  if (open != std::string::npos)
    made.alternatives = {"gate_proj", "up_proj"};
  spec.weights.push_back(std::move(made));
  return spec.weights.back();
}

Status SpecBuilder::addTensor(const std::string &id, const std::string &pattern, int64_t layer, const View &view,
                              int64_t expert, size_t alternative) {
  WeightFamily &of = family(id, pattern);
  const bool isFirst = of.shape.empty();
  const std::string name = of.tensorName(layer, expert, alternative);
  const Tensor &constant = fold.graph.constants.at(view.constant);
  if (Status status = tensors.add(name, constant, view); !status)
    return status;
  const Expected<StoredTensor> stored = tensors.find(name);
  if (!stored)
    return stored.error();
  if (isFirst) {
    of.shape = stored->shape;
    of.dtype = stored->type;
  }
  if (of.shape != stored->shape || of.dtype != stored->type)
    return refuse("tensor '" + shortened(constant.name) + "' for " + name +
                  " has another shape or type than those of other layers");
  if (pattern.find("{layer}") != std::string::npos &&
      (layersOfFamily[id].empty() || layersOfFamily[id].back() != layer))
    layersOfFamily[id].push_back(layer);
  return Status::success();
}

Status SpecBuilder::setNorm(double eps) {
  const double value = written(eps);
  if (hasNorm && spec.normEps != value)
    return refuse("RMS norms have epsilons " + std::to_string(spec.normEps) + " and " + std::to_string(value));
  hasNorm = true;
  spec.normEps = value;
  return Status::success();
}

Status SpecBuilder::addMlp(const MlpLayer &mlp, const std::string &prefix, const std::string &id, int64_t layer) {
  const std::string both = prefix + "{gate_proj|up_proj}.";
  const bool isBiased = mlp.gate.bias.has_value();
  if (mlp.up.bias.has_value() != isBiased || mlp.down.bias.has_value() != isBiased || (isBiased && !id.empty()))
    return refuse("layer " + std::to_string(layer) +
                  ": some of the matrices of its MLP have a bias, or its shared expert");
  const LinearLayer *const sides[] = {&mlp.gate, &mlp.up};
  for (size_t side : {0, 1}) {
    if (Status status = addTensor(id + "gate_up", both + "weight", layer, sides[side]->weight, 0, side); !status)
      return status;
    if (sides[side]->bias)
      if (Status status = addTensor(id + "gate_up_bias", both + "bias", layer, *sides[side]->bias, 0, side); !status)
        return status;
  }
  if (Status status = addTensor(id + "down", prefix + "down_proj.weight", layer, mlp.down.weight); !status)
    return status;
  return mlp.down.bias ? addTensor(id + "down_bias", prefix + "down_proj.bias", layer, *mlp.down.bias)
                       : Status::success();
}

/// The part of a view that is one expert's.
static View ofExpert(const View &all, int64_t expert) {
  View out = all;
  out.offset += expert * all.strides[0];
  out.shape.erase(out.shape.begin());
  out.strides.erase(out.strides.begin());
  return out;
}

Status SpecBuilder::addExperts(const DecoderLayer &found, int64_t layer) {
  const std::string prefix = layerPrefix + "mlp.experts.{expert}.";
  for (int64_t expert = 0; expert < spec.moe->experts; expert++) {
    const bool isOfOne = !found.eachExpert.empty(); // of a constant of its own
    const MlpLayer &mlp = isOfOne ? found.eachExpert[size_t(expert)] : found.experts->experts;
    if (mlp.gate.bias || mlp.up.bias || mlp.down.bias)
      return refuse("layer " + std::to_string(layer) + ": biases of experts are not in this build");
    const std::tuple<const LinearLayer *, const char *, const char *, size_t> all[] = {
        {&mlp.gate, "experts_gate_up", "{gate_proj|up_proj}.weight", 0},
        {&mlp.up, "experts_gate_up", "{gate_proj|up_proj}.weight", 1},
        {&mlp.down, "experts_down", "down_proj.weight", 0}};
    for (const auto &[linear, id, name, alternative] : all) {
      const View part = isOfOne ? linear->weight : ofExpert(linear->weight, expert);
      if (Status status = addTensor(id, prefix + name, layer, part, expert, alternative); !status)
        return status;
    }
  }
  return Status::success();
}

static bool isSameMoe(const MoeSpec &a, const MoeSpec &b) {
  return a.experts == b.experts && a.topK == b.topK && a.groups == b.groups && a.topGroups == b.topGroups &&
         a.inter == b.inter && a.sharedInter == b.sharedInter && a.scoring == b.scoring &&
         a.groupScore == b.groupScore && a.correctionBias == b.correctionBias && a.normalize == b.normalize &&
         a.normalizeEps == b.normalizeEps && a.scale == b.scale && a.activation == b.activation;
}

Status SpecBuilder::addFeedForward(const DecoderLayer &layer, int64_t index, LayerKind &kind) {
  kind.feedForward = layer.experts ? FeedForward::Moe : FeedForward::Dense;
  kind.name = layer.experts ? "moe" : "dense";
  if (!layer.experts) {
    const MlpSpec mlp{layer.mlp->down.depth, layer.mlp->activation, layer.mlp->gate.bias.has_value()};
    if (spec.mlp && (spec.mlp->inter != mlp.inter || spec.mlp->bias != mlp.bias))
      return refuse("dense layers have widths " + std::to_string(spec.mlp->inter) + " and " +
                    std::to_string(mlp.inter));
    spec.mlp = mlp;
    return addMlp(*layer.mlp, layerPrefix + "mlp.", "", index);
  }
  const ExpertsLayer &found = *layer.experts;
  MoeSpec moe = found.router.spec;
  moe.inter = found.experts.down.depth;
  moe.sharedInter = layer.shared ? layer.shared->down.depth : 0;
  moe.scale = written(moe.scale);
  moe.normalizeEps = std::max(written(moe.normalizeEps), 1e-20); // which exporters leave out: sums are far above it
  if (spec.moe && !isSameMoe(*spec.moe, moe))
    return refuse("layer " + std::to_string(index) + ": its experts are routed otherwise than those before");
  spec.moe = moe;
  if (Status status = addTensor("router", layerPrefix + "mlp.gate.weight", index, found.router.logits.weight); !status)
    return status;
  if (found.router.bias) {
    const std::string name = layerPrefix + "mlp.gate.e_score_correction_bias";
    if (Status status = addTensor("selection_bias", name, index, *found.router.bias); !status)
      return status;
    family("selection_bias", name).isParameter = false;
  }
  if (Status status = addExperts(layer, index); !status)
    return status;
  return layer.shared ? addMlp(*layer.shared, layerPrefix + "mlp.shared_experts.", "shared_", index)
                      : Status::success();
}

Status SpecBuilder::addLayer(size_t index) {
  const DecoderLayer &layer = decoder.layers[index];
  const int64_t number = int64_t(index);
  for (double eps : {layer.attentionNorm.eps, layer.feedForwardNorm.eps})
    if (Status status = setNorm(eps); !status)
      return status;
  LayerKind kind;
  if (Status status =
          addTensor("attention_norm", layerPrefix + "input_layernorm.weight", number, layer.attentionNorm.weight);
      !status)
    return status;
  if (Status status =
          std::visit([&](const auto &found) { return addAttention(found, number, kind); }, layer.attention.layer);
      !status)
    return status;
  if (Status status =
          addTensor("mlp_norm", layerPrefix + "post_attention_layernorm.weight", number, layer.feedForwardNorm.weight);
      !status)
    return status;
  if (Status status = addFeedForward(layer, number, kind); !status)
    return status;
  nameKind(kind);
  kinds.push_back(std::move(kind));
  return Status::success();
}

void SpecBuilder::nameKind(LayerKind &kind) const {
  const std::string base = kind.name;
  for (const LayerKind &known : kinds) {
    kind.name = known.name;
    if (kind == known)
      return;
  }
  const auto isTaken = [&](const LayerKind &known) { return known.name == kind.name; };
  kind.name = base;
  for (size_t i = 2; std::any_of(kinds.begin(), kinds.end(), isTaken); i++)
    kind.name = base + std::to_string(i);
}

/// Whether the head's matrix is the embedding, or a copy of it.
bool SpecBuilder::isTied() {
  const Expected<StoredTensor> a = tensors.find("model.embed_tokens.weight"), b = tensors.find("lm_head.weight");
  if (!a || !b || a->shape != b->shape || a->type != b->type)
    return false;
  // Many rows at once: of a transposed matrix each column is a read of its own, of as many elements.
  const int64_t row = a->shape[1] * byteWidth(a->type), rows = std::max<int64_t>(1, (int64_t(1) << 25) / row);
  std::string left, right;
  for (int64_t first = 0; first < a->shape[0]; first += first == 0 ? 1 : rows) {
    const int64_t count = first == 0 ? row : std::min(rows, a->shape[0] - first) * row;
    left.resize(size_t(count));
    right.resize(size_t(count));
    if (!tensors.read("model.embed_tokens.weight", first * row, left.data(), count) ||
        !tensors.read("lm_head.weight", first * row, right.data(), count) || left != right)
      return false;
  }
  return true;
}

/// The ranges of layers of each family, and runs of kinds.
void SpecBuilder::closeFamilies() {
  for (WeightFamily &of : spec.weights)
    for (int64_t layer : layersOfFamily[of.id]) {
      if (!of.layers.empty() && of.layers.back().end == layer)
        of.layers.back().end++;
      else
        of.layers.push_back({layer, layer + 1});
    }
  for (WeightFamily &of : spec.weights)
    if (of.pattern.find("{expert}") != std::string::npos)
      of.experts = spec.moe->experts;
  spec.layers = layerRuns(kinds);
}

Expected<ModelSpec> SpecBuilder::build() {
  spec.family = spec.modelType = onnxFamily;
  spec.hidden = decoder.hidden;
  spec.vocab = decoder.vocab;
  findRounded();
  if (Status status = addTensor("embed", "model.embed_tokens.weight", 0, decoder.embedding); !status)
    return status.takeError();
  for (size_t i = 0; i < decoder.layers.size(); i++)
    if (Status status = addLayer(i); !status)
      return status.takeError();
  if (Status status = setNorm(decoder.finalNorm.eps); !status)
    return status.takeError();
  if (Status status = addTensor("final_norm", "model.norm.weight", 0, decoder.finalNorm.weight); !status)
    return status.takeError();
  if (Status status = addTensor("head", "lm_head.weight", 0, decoder.head); !status)
    return status.takeError();
  spec.storage = spec.weights[0].dtype;
  if (isTied()) {
    spec.tiedEmbeddings = true;
    spec.weights.pop_back();
    tensors.remove("lm_head.weight");
  }
  spec.widened = tensors.widened(fold.graph.path);
  closeFamilies();
  return std::move(spec);
}

Expected<ModelSpec> specOf(Fold &fold, const Decoder &decoder, const std::vector<RopeSpec> &stated,
                           OnnxTensors &tensors) {
  return SpecBuilder(fold, decoder, stated, tensors).build();
}

} // namespace k2c::onnx

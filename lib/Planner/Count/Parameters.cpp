//===- Parameters.cpp - Parameters by module, layer and stage -------------===//
//
// Parameters are those of the tensors that a checkpoint has: sums over the weight families of the model, not formulas
// of an architecture, so that a family described in YAML is counted without code. What a tensor belongs to follows
// from the id of its family, whose first or last words are fixed (embed, head, *_norm, router*, experts*, shared*,
// gate_up*, down*); all others are attention. A new family must therefore keep to these ids, or its weights count as
// attention.
//
// Active parameters are all but lookups and buffers, of routed experts topK of E; the input embedding counts when
// asked for or when it is the head as well. A prediction module is one more last layer with the weights of its own.
// Only the matrices of latent attention are computed from sizes, as papers name them one by one (W_DQ, W_UQ, ...). All
// sums are Checked.
//
//===----------------------------------------------------------------------===//

#include "k2c/Planner/Count.h"

#include <algorithm>

using namespace k2c;

namespace {

bool begins(const std::string &text, const char *with) { return text.rfind(with, 0) == 0; }
bool ends(const std::string &text, const std::string &with) {
  return text.size() >= with.size() && text.compare(text.size() - with.size(), with.size(), with) == 0;
}

/// Elements of the family in one layer, of all its experts.
Checked inOneLayer(const WeightFamily &family) {
  Checked count = family.tensorsOfLayer();
  for (int64_t size : family.shape)
    count = count * size;
  return count;
}

Checked inAllLayers(const WeightFamily &family) { return inOneLayer(family) * family.layerCount(); }

Checked sumOf(const ModelSpec &spec, Module module) {
  Checked sum;
  for (const WeightFamily &family : spec.weights)
    if (moduleOf(family) == module)
      sum += inAllLayers(family);
  return sum;
}

/// One layer of the kind that has `module`.
Checked inFirstLayer(const ModelSpec &spec, Module module) {
  Checked sum;
  std::optional<int64_t> layer;
  for (const WeightFamily &family : spec.weights)
    if (moduleOf(family) == module && !family.layers.empty()) {
      if (!layer)
        layer = family.layers.front().begin;
      if (family.hasLayer(*layer))
        sum += inOneLayer(family);
    }
  return sum;
}

} // namespace

Module k2c::moduleOf(const WeightFamily &family) {
  const std::string encoder = "encoder_";
  const std::string id = begins(family.id, encoder.c_str()) ? family.id.substr(encoder.size()) : family.id;
  if (!family.isParameter)
    return Module::Buffer;
  if (id == "embed")
    return Module::Embedding;
  if (id == "head")
    return Module::Head;
  if (ends(id, "final_norm"))
    return Module::FinalNorm;
  if (ends(id, "_norm") || ends(id, "_norm_bias"))
    return Module::Norm;
  if (begins(id, "router"))
    return Module::Router;
  if (begins(id, "experts"))
    return Module::Experts;
  if (begins(id, "shared"))
    return Module::SharedExpert;
  if (begins(id, "gate_up") || begins(id, "down"))
    return Module::Mlp;
  return Module::Attention;
}

LayerParameters k2c::layerParameters(const ModelSpec &spec, int64_t layer) {
  LayerParameters counts;
  for (const WeightFamily &family : spec.weights) {
    if (!family.hasLayer(layer))
      continue;
    Checked count = inOneLayer(family);
    switch (moduleOf(family)) {
    case Module::Attention:
      counts.attention += count;
      break;
    case Module::Norm:
      counts.norms += count;
      break;
    case Module::Router:
      counts.router += count;
      break;
    case Module::Experts:
      counts.experts += count;
      break;
    case Module::SharedExpert:
      counts.shared += count;
      break;
    case Module::Mlp:
      counts.mlp += count;
      break;
    case Module::Embedding:
    case Module::FinalNorm:
    case Module::Head:
    case Module::Buffer:
      break;
    }
  }
  return counts;
}

Checked k2c::embeddingParameters(const ModelSpec &spec) { return sumOf(spec, Module::Embedding); }
Checked k2c::headParameters(const ModelSpec &spec) { return sumOf(spec, Module::Head); }

Checked k2c::totalParameters(const ModelSpec &spec, const CountOptions &options) {
  Checked total;
  for (const WeightFamily &family : spec.weights)
    if (family.isParameter || options.correctionBias)
      total += inAllLayers(family);
  if (options.mtp)
    total += mtpParameters(spec, options.correctionBias) * spec.mtpLayers;
  return total;
}

Checked k2c::activeParameters(const ModelSpec &spec, bool withInputEmbedding) {
  Checked active;
  for (const WeightFamily &family : spec.weights) {
    if (!family.isParameter || family.isLookup)
      continue;
    if (family.id == "embed" && !withInputEmbedding && !spec.tiedEmbeddings)
      continue;
    Checked all = inAllLayers(family);
    active += family.experts && spec.moe ? all / family.experts * spec.moe->topK : all;
  }
  return active;
}

Checked k2c::mtpParameters(const ModelSpec &spec, bool correctionBias) {
  if (spec.mtpWeights.empty())
    return 0;
  Checked count = layerParameters(spec, spec.layerCount() - 1).total();
  for (const WeightFamily &family : spec.mtpWeights)
    count += inAllLayers(family);
  for (const WeightFamily &family : spec.weights)
    if (correctionBias && !family.isParameter && family.hasLayer(spec.layerCount() - 1))
      count += inOneLayer(family);
  return count;
}

Checked k2c::expertParameters(const ModelSpec &spec) {
  return spec.moe ? inFirstLayer(spec, Module::Experts) / spec.moe->experts : Checked(0);
}
Checked k2c::routerParameters(const ModelSpec &spec) { return inFirstLayer(spec, Module::Router); }
Checked k2c::denseMlpParameters(const ModelSpec &spec) { return inFirstLayer(spec, Module::Mlp); }

int64_t k2c::sharedExperts(const ModelSpec &spec) { return spec.moe ? spec.moe->sharedInter / spec.moe->inter : 0; }

LatentMatrices k2c::latentMatrices(const MlaSpec &mla, int64_t hidden) {
  Checked heads = mla.heads, from = mla.queryLatent ? mla.queryLatent : hidden;
  LatentMatrices matrices;
  matrices.dq = Checked(mla.queryLatent) * hidden;
  matrices.uq = heads * mla.nope * from;
  matrices.qr = heads * mla.rope * from;
  matrices.dkv = Checked(mla.latent) * hidden;
  matrices.uk = heads * mla.nope * mla.latent;
  matrices.kr = Checked(mla.rope) * hidden;
  matrices.uv = heads * mla.value * mla.latent;
  matrices.o = heads * mla.value * hidden;
  return matrices;
}

std::vector<int64_t> k2c::stageLayers(int64_t layers, int64_t stages, StagePartition partition) {
  std::vector<int64_t> counts;
  int64_t most = (layers + stages - 1) / stages, left = layers;
  for (int64_t stage = 0; stage < stages; ++stage) {
    counts.push_back(partition == StagePartition::Front ? std::min(most, left)
                                                        : layers / stages + (stage < layers % stages));
    left -= counts.back();
  }
  return counts;
}

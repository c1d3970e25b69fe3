//===- ModelShare.cpp - What one rank of a layout holds of a model ------------===//
//
// What a rank holds of the weights, by module. A search asks for many thousands of stages of one model, so parameters
// and bytes are summed over layers once:
//
//   parameters[l] = all of layers [0, l)        a stage [a, b) = parameters[b] - parameters[a]
//
// Tables outside the layers belong to the first stage (embedding) and the last one (head); a tied embedding is on
// both. Then modules are divided: experts by ep and etp, with replicated slots counted; dense parts, embedding and
// head by tp. Attention divides into three: what every rank holds (latent down-projections), the columns of keys and
// values, which no more ranks share than there are cached heads, and the rest. The shares are those of the last layer,
// taken for all. A draft module counts as one more last layer with its own weights, and shares embedding and head.
//
//===----------------------------------------------------------------------===//

#include "ModelShare.h"

#include <algorithm>
#include <numeric>

using namespace k2c;
using namespace k2c::planner;

const char *k2c::nameOf(WeightFormat format) {
  static const char *const names[] = {"as published", "bf16", "f32"};
  return names[size_t(format)];
}

std::optional<WeightFormat> k2c::parseWeightFormat(std::string_view word) {
  static constexpr std::string_view words[] = {"published", "bf16", "f32"};
  for (WeightFormat format : {WeightFormat::Published, WeightFormat::Bf16, WeightFormat::F32})
    if (word == words[size_t(format)])
      return format;
  return std::nullopt;
}

const char *planner::nameOf(WeightModule module) {
  static const char *const names[] = {"attention",      "norms",        "router",    "experts",
                                      "shared experts", "dense layers", "embedding", "head"};
  return names[size_t(module)];
}

double planner::sum(const ByModule &values) { return std::accumulate(values.begin(), values.end(), 0.0); }

static void add(ByModule &to, const ByModule &from) {
  for (size_t i = 0; i < weightModuleCount; ++i)
    to[i] += from[i];
}

RankShare &RankShare::operator+=(const RankShare &other) {
  moeLayers += other.moeLayers;
  attentionLayers.resize(other.attentionLayers.size());
  for (size_t i = 0; i < attentionLayers.size(); ++i)
    attentionLayers[i] += other.attentionLayers[i];
  layersOfKinds.resize(other.layersOfKinds.size());
  for (size_t i = 0; i < layersOfKinds.size(); ++i)
    layersOfKinds[i] += other.layersOfKinds[i];
  layers.end += other.layerCount();
  add(parameters, other.parameters);
  add(bytes, other.bytes);
  traffic += other.traffic;
  return *this;
}

//===----------------------------------------------------------------------===//
// Counting
//===----------------------------------------------------------------------===//

namespace {

WeightModule weightModuleOf(const WeightFamily &family) {
  switch (moduleOf(family)) {
  case Module::Attention:
    return WeightModule::Attention;
  case Module::Norm:
    return WeightModule::Norms;
  case Module::Router:
  case Module::Buffer:
    return WeightModule::Router;
  case Module::Experts:
    return WeightModule::Experts;
  case Module::SharedExpert:
    return WeightModule::Shared;
  case Module::Mlp:
    return WeightModule::Mlp;
  case Module::Embedding:
    return WeightModule::Embedding;
  case Module::FinalNorm:
  case Module::Head:
    return WeightModule::Head;
  }
  return WeightModule::Norms;
}

/// Elements of a family in one layer, all experts.
double elementsOfLayer(const WeightFamily &family) {
  return double(family.elements()) * double(family.tensorsOfLayer());
}

double bytesOfLayer(const WeightFamily &family, WeightFormat format) {
  if (format == WeightFormat::F32)
    return 4 * elementsOfLayer(family);
  if (format == WeightFormat::Published)
    return double(family.storedBytes().value) / double(family.layerCount());
  bool quantised = family.blocks || family.microScales;
  return elementsOfLayer(family) * (family.dtype == DType::F32 && !quantised ? 4 : 2);
}

/// Of members of `set`, how many come before each of `layers`.
std::vector<int64_t> countsBefore(const IndexSet &set, size_t layers) {
  std::vector<int64_t> before(layers + 1, 0);
  for (int64_t layer : membersOf(set))
    before[size_t(layer) + 1] = 1;
  std::partial_sum(before.begin(), before.end(), before.begin());
  return before;
}

} // namespace

ModelShare::ModelShare(const ModelSpec &spec, WeightFormat format) : spec(spec), attentions(attentionLayers(spec)) {
  const size_t layers = size_t(spec.layerCount());
  parameters.assign(layers + 1, {});
  bytes.assign(layers + 1, {});
  moeBefore.assign(layers + 1, 0);
  for (const WeightFamily &family : spec.weights) {
    const size_t module = size_t(weightModuleOf(family));
    const double elements = family.isParameter ? elementsOfLayer(family) : 0, stored = bytesOfLayer(family, format);
    if (family.layers.empty()) {
      outside[module] += elements;
      outsideBytes[module] += stored;
    }
    for (const LayerRange &range : family.layers)
      for (int64_t layer = range.begin; layer < range.end; ++layer) {
        parameters[size_t(layer) + 1][module] += elements;
        bytes[size_t(layer) + 1][module] += stored;
      }
  }
  for (int64_t layer : spec.moeLayers())
    moeBefore[size_t(layer) + 1] = 1;
  for (const AttentionLayers &attention : attentions)
    attentionBefore.push_back(countsBefore(attention.layers, layers));
  for (size_t layer = 1; layer <= layers; ++layer) {
    add(parameters[layer], parameters[layer - 1]);
    add(bytes[layer], bytes[layer - 1]);
    moeBefore[layer] += moeBefore[layer - 1];
  }
  for (const LayerKind &kind : layerKinds(spec))
    kinds.push_back({kind, rowTraffic(spec, kind),
                     countsBefore(spec.layersOf([&](const LayerKind &other) { return other == kind; }), layers)});
  expert = expertParameters(spec).real();

  const double attention = layerParameters(spec, spec.layerCount() - 1).attention.real();
  if (const MlaSpec *mla = spec.latentAttention()) {
    LatentMatrices w = latentMatrices(*mla, spec.hidden);
    replicatedAttention = 1 - (w.uq + w.qr + w.uk + w.uv + w.o).real() / attention;
  } else {
    const LayerKind &last = spec.layers.back().kindOf(spec.layerCount() - 1);
    const AttentionSizes sizes = attentionSizes(spec.attentions.at(last.attention));
    keyHeads = sizes.cachedHeads();
    const double cached = double(sizes.cachedElements());
    keyValueShare = std::min(1.0, double(spec.hidden) * cached / attention);
  }
}

std::vector<double> ModelShare::layersWith(LayerRange layers) const {
  std::vector<double> counts;
  for (const std::vector<int64_t> &before : attentionBefore)
    counts.push_back(double(before[size_t(layers.end)] - before[size_t(layers.begin)]));
  return counts;
}

//===----------------------------------------------------------------------===//
// Splitting
//===----------------------------------------------------------------------===//

int64_t planner::slotsPerRank(const ModelSpec &spec, const ParallelLayout &layout) {
  return spec.moe ? (spec.moe->experts + layout.redundantExperts + layout.ep - 1) / layout.ep : 0;
}

void ModelShare::split(RankShare &share, const ParallelLayout &layout) const {
  const double tp = double(layout.tp), keys = double(std::min(layout.tp, keyHeads));
  const double attention = replicatedAttention + keyValueShare / keys + (1 - replicatedAttention - keyValueShare) / tp;
  const double experts =
      spec.moe ? double(slotsPerRank(spec, layout)) / double(spec.moe->experts) / double(layout.etp) : 0;
  const double vocabulary = layout.vocab > 1 ? double(layout.vocab) : tp;
  for (ByModule *values : {&share.parameters, &share.bytes}) {
    at(*values, WeightModule::Attention) *= attention;
    at(*values, WeightModule::Experts) *= experts;
    for (WeightModule module : {WeightModule::Shared, WeightModule::Mlp})
      at(*values, module) /= tp;
    for (WeightModule module : {WeightModule::Embedding, WeightModule::Head})
      at(*values, module) /= vocabulary;
  }
}

bool ModelShare::areAlike(LayerRange a, LayerRange b) const {
  auto same = [&](const auto &before) {
    return before[size_t(a.end)] - before[size_t(a.begin)] == before[size_t(b.end)] - before[size_t(b.begin)];
  };
  auto sameOfModules = [&](const std::vector<ByModule> &before) {
    auto of = [&](LayerRange r, size_t i) { return before[size_t(r.end)][i] - before[size_t(r.begin)][i]; };
    for (size_t i = 0; i < weightModuleCount; ++i)
      if (of(a, i) != of(b, i))
        return false;
    return true;
  };
  return a.end - a.begin == b.end - b.begin && same(moeBefore) &&
         std::all_of(attentionBefore.begin(), attentionBefore.end(), same) &&
         std::all_of(kinds.begin(), kinds.end(), [&](const Kind &kind) { return same(kind.before); }) &&
         sameOfModules(parameters) && sameOfModules(bytes);
}

RankShare ModelShare::of(LayerRange layers, const ParallelLayout &layout) const {
  return of(layers, layers.begin == 0, layers.end == spec.layerCount(), layout);
}

std::vector<RankShare> ModelShare::ofStages(const std::vector<int64_t> &layersOfStages,
                                            const ParallelLayout &layout) const {
  std::vector<RankShare> shares;
  int64_t begin = 0;
  for (int64_t layers : layersOfStages) {
    const bool isFirst = shares.empty(), isLast = shares.size() + 1 == layersOfStages.size();
    shares.push_back(of({begin, begin + layers}, isFirst, isLast, layout));
    begin += layers;
  }
  return shares;
}

RankShare ModelShare::of(LayerRange layers, bool first, bool last, const ParallelLayout &layout) const {
  RankShare share;
  share.layers = layers;
  const size_t begin = size_t(layers.begin), end = size_t(layers.end);
  share.moeLayers = moeLayers(layers);
  share.attentionLayers = layersWith(layers);
  for (const Kind &kind : kinds) {
    share.layersOfKinds.push_back(double(kind.before[end] - kind.before[begin]));
    share.traffic += kind.traffic * share.layersOfKinds.back();
  }
  for (size_t i = 0; i < weightModuleCount; ++i) {
    share.parameters[i] = parameters[end][i] - parameters[begin][i];
    share.bytes[i] = bytes[end][i] - bytes[begin][i];
  }
  for (auto [values, from] : {std::pair{&share.parameters, &outside}, std::pair{&share.bytes, &outsideBytes}}) {
    if (first || (last && spec.tiedEmbeddings))
      at(*values, WeightModule::Embedding) += at(*from, WeightModule::Embedding);
    if (first)
      at(*values, WeightModule::Attention) += at(*from, WeightModule::Attention); // tables of positions and the like
    if (last)
      at(*values, WeightModule::Head) += at(*from, WeightModule::Head);
  }
  split(share, layout);
  return share;
}

RankShare ModelShare::ofDraft(const ParallelLayout &layout, bool hasTables) const {
  RankShare share = of({spec.layerCount() - 1, spec.layerCount()}, layout);
  // The embedding and the head are those of the last stage or a copy; mtpWeights hold what is the module's own.
  for (const WeightFamily &family : spec.mtpWeights) {
    if (!hasTables && family.shape.front() == spec.vocab)
      continue;
    at(share.parameters, WeightModule::Mlp) += elementsOfLayer(family) / double(layout.tp);
    at(share.bytes, WeightModule::Mlp) += bytesOfLayer(family, WeightFormat::Bf16) / double(layout.tp);
  }
  at(share.parameters, WeightModule::Head) = at(share.bytes, WeightModule::Head) = 0;
  at(share.parameters, WeightModule::Embedding) = at(share.bytes, WeightModule::Embedding) = 0;
  return share;
}

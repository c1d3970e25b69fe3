//===- SpecJson.cpp - what a program was compiled for, as JSON -------------===//
//
// One key for each field, in the words of ModelSpec.h. Two specs are the same
// model when these objects are equal: a checkpoint packed into a bundle must
// have the config.json that was compiled.
//
//===----------------------------------------------------------------------===//

#include "k2c/Model/SpecJson.h"
#include "base/JsonText.h"
#include "k2c/Model/Layers.h"

#include <algorithm>

using namespace k2c;
using nlohmann::json;

namespace {

const char *activationName(Activation activation) {
  constexpr const char *names[] = {"silu", "gelu", "relu"};
  return names[static_cast<int>(activation)];
}

json attentionJson(const GqaSpec &gqa) {
  constexpr const char *norms[] = {"none", "row", "head"};
  return {{"kind", "gqa"},
          {"heads", gqa.heads},
          {"kv_heads", gqa.kvHeads},
          {"head_dim", gqa.headDim},
          {"qkv_bias", gqa.qkvBias},
          {"output_bias", gqa.outputBias},
          {"query_key_norm", norms[static_cast<int>(gqa.norm)]},
          {"clip", gqa.clip},
          {"window", gqa.window}};
}

json attentionJson(const MlaSpec &mla) {
  json root = {{"kind", "mla"},        {"heads", mla.heads}, {"query_latent", mla.queryLatent},
               {"latent", mla.latent}, {"nope", mla.nope},   {"rope", mla.rope},
               {"value", mla.value},   {"bias", mla.bias},   {"latent_norm_eps", mla.latentNormEps}};
  if (mla.indexer)
    root["indexer"] = {{"heads", mla.indexer->heads}, {"dim", mla.indexer->dim}, {"top_k", mla.indexer->topK}};
  return root;
}

json scalingJson(const RopeUnscaled &) { return {{"kind", "none"}}; }
json scalingJson(const RopeLinear &linear) { return {{"kind", "linear"}, {"factor", linear.factor}}; }
json scalingJson(const RopeDynamic &dynamic) { return {{"kind", "dynamic"}, {"factor", dynamic.factor}}; }
json scalingJson(const RopeYarn &yarn) {
  return {{"kind", "yarn"},
          {"factor", yarn.factor},
          {"beta_fast", yarn.betaFast},
          {"beta_slow", yarn.betaSlow},
          {"original_context", yarn.originalContext},
          {"truncate", yarn.truncate}};
}
json scalingJson(const RopeLlama3 &llama) {
  return {{"kind", "llama3"},
          {"factor", llama.factor},
          {"low_frequency_factor", llama.lowFrequencyFactor},
          {"high_frequency_factor", llama.highFrequencyFactor},
          {"original_context", llama.originalContext}};
}

json scalingJson(const RopePublished &published) {
  return {{"kind", "published"}, {"frequencies", published.frequencies}};
}

json ropeJson(const RopeSpec &rope) {
  return {{"theta", rope.theta},
          {"dims", rope.dims},
          {"pairs", rope.pairs == RopePairs::Half ? "half" : "interleaved"},
          {"scaling", std::visit([](const auto &scaling) { return scalingJson(scaling); }, rope.scaling)},
          {"attention_scale", rope.attentionScale},
          {"cos_sin_scale", rope.cosSinScale},
          {"max_context", rope.maxContext}};
}

json moeJson(const MoeSpec &moe) {
  return {{"experts", moe.experts},
          {"top_k", moe.topK},
          {"groups", moe.groups},
          {"top_groups", moe.topGroups},
          {"inter", moe.inter},
          {"shared_inter", moe.sharedInter},
          {"scoring", moe.scoring == Scoring::Sigmoid ? "sigmoid" : "softmax"},
          {"group_score", moe.groupScore == GroupScore::Top2Sum ? "top2_sum" : "max"},
          {"correction_bias", moe.correctionBias},
          {"normalize", moe.normalize},
          {"normalize_eps", moe.normalizeEps},
          {"scale", moe.scale},
          {"activation", activationName(moe.activation)}};
}

json kindJson(const LayerKind &kind) {
  return {{"feed_forward", kind.feedForward == FeedForward::Moe ? "moe" : "dense"},
          {"attention", kind.attention},
          {"rope", kind.rope.empty() ? "none" : kind.rope},
          {"norms", kind.norms == LayerNorms::Around ? "around" : "before"},
          {"cache_group", kind.cacheGroup}};
}

/// "says 5.0" or "has none".
std::string stated(const json &flat, const std::string &key) {
  return flat.contains(key) ? "says " + shortenedJson(flat.at(key), maxQuoted / 3) : "has none";
}

} // namespace

json k2c::specJson(const ModelSpec &spec) {
  json layers = json::array();
  for (const LayersOfKind &run : spec.layersByKind())
    layers.push_back({{"kind", run.kind.name}, {"from", run.range.begin}, {"to", run.range.end}});
  json root = {{"family", spec.family},
               {"model_type", spec.modelType},
               {"hidden", spec.hidden},
               {"vocab", spec.vocab},
               {"max_position", spec.maxPosition},
               {"norm_eps", spec.normEps},
               {"tied_embeddings", spec.tiedEmbeddings},
               {"layers", layers},
               {"storage", name(spec.storage)}};
  for (const LayerKind &kind : layerKinds(spec))
    root["kinds"][kind.name] = kindJson(kind);
  for (const auto &[name, attention] : spec.attentions)
    (name == firstAttention ? root[firstAttention] : root["attentions"][name]) =
        std::visit([](const auto &variant) { return attentionJson(variant); }, attention);
  for (const auto &[name, rope] : spec.ropes)
    (name == firstRope ? root[firstRope] : root["ropes"][name]) = ropeJson(rope);
  if (spec.mlp)
    root["mlp"] = {
        {"inter", spec.mlp->inter}, {"bias", spec.mlp->bias}, {"activation", activationName(spec.mlp->activation)}};
  if (spec.moe)
    root["moe"] = moeJson(*spec.moe);
  if (const auto &blocks = spec.quantization)
    root["quantization"] = {{"stored", name(blocks->stored)}, {"rows", blocks->rows}, {"columns", blocks->columns}};
  if (spec.microScales)
    root["micro_scales"] = spec.microScales->block;
  for (const WidenedWeights &of : spec.widened)
    root["widened"].push_back({{"format", of.format},
                               {"tensors", of.tensors},
                               {"stored_bytes", of.storedBytes},
                               {"widened_bytes", of.widenedBytes}});
  if (!spec.narrowed.empty())
    root["narrowed"] = spec.narrowed;
  return root;
}

std::string k2c::dottedKey(const std::string &pointer) {
  std::string key = pointer.substr(1);
  std::replace(key.begin(), key.end(), '/', '.');
  return key;
}

std::vector<std::string> k2c::differingKeys(const json &ours, const json &theirs) {
  json all = ours;
  all.update(theirs); // keys of both, in order
  std::vector<std::string> differing;
  for (const auto &[key, value] : all.items())
    if (!ours.contains(key) || !theirs.contains(key) || ours[key] != theirs[key])
      differing.push_back(key);
  return differing;
}

Status k2c::checkSameSpec(const ModelSpec &spec, const std::string &file, const json &compiled) {
  const bool isCompiled = compiled.is_object() && !compiled.empty(); // an empty object flattens to a key of no name
  const json ours = specJson(spec).flatten(), theirs = isCompiled ? compiled.flatten() : json::object();
  const std::vector<std::string> differing = differingKeys(ours, theirs);
  if (differing.empty())
    return Status::success();
  const std::string &key = differing.front();
  return Error{file,
               "is not the model of the bundle: for '" + shortened(dottedKey(key), maxQuoted / 3) + "' it " +
                   stated(ours, key) + ", what was compiled " + stated(theirs, key),
               "name the one that was compiled, or compile this one"};
}

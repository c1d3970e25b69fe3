//===- SpecAttention.cpp - attentions and rotary embeddings of a spec ----------------===//
//
// Layers whose attentions have equal sizes share one; a window of its own makes another. What scores are multiplied by
// is 1 / sqrt(width) by convention. Another factor belongs to the rotary embedding: where all of a row is turned, to
// its cosines and sines, else to the scores, or to both by how turned parts differ from the others (YaRN, section 3.4).
// A graph in 16 bits states the factor, or its root twice, rounded: what it was rounded from is taken.
//
//===----------------------------------------------------------------------===//
#include "SpecBuilder.h"

#include "Angles.h"
#include "Elements.h"
#include "k2c/Model/Rope.h"
#include <algorithm>
#include <cmath>

namespace k2c::onnx {

Status SpecBuilder::addProjection(const ProjectedRows &rows, const std::string &role, const std::string &norm,
                                  int64_t layer) {
  const std::string prefix = layerPrefix + "self_attn." + role + "_proj.";
  if (Status status = addTensor(role, prefix + "weight", layer, rows.layer.weight); !status)
    return status;
  if (rows.layer.bias)
    if (Status status = addTensor(role + "_bias", prefix + "bias", layer, *rows.layer.bias); !status)
      return status;
  if (!rows.norm)
    return Status::success();
  if (Status status = setNorm(rows.norm->eps); !status)
    return status;
  return addTensor(norm, layerPrefix + "self_attn." + norm + ".weight", layer, rows.norm->weight);
}

/// Factors that are equal, but for what computing them in float32 rounds.
constexpr double exactly = 1e-6;

void SpecBuilder::findRounded() {
  for (const auto &[value, tensor] : fold.graph.constants)
    if (const double roundoff = roundoffOf16(tensor.type); roundoff > 0 && tensor.elements() == 1)
      for (double number : fold.elementsOf(tensor, 0, 1))
        if (std::isnormal(number) && number > 0)
          rounded[number] = roundoff;
}

double SpecBuilder::roundoffOf(double scale) const {
  const auto find = [&](double number) {
    const auto found = rounded.lower_bound(number * (1 - exactly));
    return found != rounded.end() && found->first <= number * (1 + exactly) ? found->second : 0;
  };
  double roundoff = std::max({exactly, find(scale), find(1 / scale)});
  for (const auto &[number, ofNumber] : rounded)
    for (double other : {scale / number, 1 / (scale * number)})
      if (const double ofOther = find(other))
        roundoff = std::max(roundoff, ofNumber + ofOther);
  return roundoff;
}

/// A factor of scores as YaRN's formula writes it, where it is one to within `roundoff`: with the fewest digits.
static double yarnScale(const RopeSpec &rope, double scale, double roundoff) {
  if (std::abs(scale - 1) < roundoff)
    return 1;
  const RopeYarn *const yarn = std::get_if<RopeYarn>(&rope.scaling);
  if (!yarn)
    return scale;
  const double mscale = yarnMscale(yarn->factor, scale);
  for (double digits : {1, 10, 100, 1000}) {
    const double magnitude = yarnMagnitude(yarn->factor, std::round(mscale * digits) / digits);
    if (std::abs(magnitude * magnitude / scale - 1) < roundoff)
      return magnitude * magnitude;
  }
  return scale;
}

/// ropeOf, which looks for it, of each rotation once: all layers have the same few.
Expected<RopeSpec> SpecBuilder::formulaOf(const Rotation &rotation) {
  for (const auto &[known, formula] : formulas)
    if (known == rotation)
      return formula;
  Expected<RopeSpec> formula = ropeOf(fold, rotation, stated);
  if (formula)
    formulas.emplace_back(rotation, *formula);
  return formula;
}

/// The rotary embedding of a layer; `scale` multiplies scores of rows of `width`, `turnedScale` those of their turned
/// parts.
Expected<std::string> SpecBuilder::ropeName(const Rotation &rotation, double scale, double turnedScale, double width) {
  Expected<RopeSpec> rope = formulaOf(rotation);
  if (!rope)
    return rope.takeError();
  // Tables have their factor; of angles it is what turned parts have beside the others.
  const double ofTables = rope->cosSinScale * rope->cosSinScale;
  const double both = turnedScale / scale, all = scale * std::sqrt(width);
  if (!(scale > 0 && turnedScale > 0))
    return refuse("scores are multiplied by a number that is not above 0");
  const double squared = ofTables == 1 ? both : ofTables;
  if (std::abs(squared - 1) > exactly) {
    const double formula = yarnScale(*rope, squared, ofTables == 1 ? roundoffOf(turnedScale) : exactly);
    rope->cosSinScale = formula == squared ? written(std::sqrt(squared)) : std::sqrt(formula);
  }
  rope->attentionScale = yarnScale(*rope, all, roundoffOf(scale));
  // Layers may have tables of their own that are equal.
  const auto isSame = [&](const RopeSpec &known) {
    return known.attentionScale == rope->attentionScale && known.cosSinScale == rope->cosSinScale &&
           known.pairs == rope->pairs && known.maxContext == rope->maxContext &&
           ropeInverseFrequencies(known) == ropeInverseFrequencies(*rope);
  };
  for (const auto &[name, known] : spec.ropes)
    if (isSame(known))
      return name;
  const std::string name = spec.ropes.empty() ? firstRope : firstRope + std::to_string(spec.ropes.size() + 1);
  spec.ropes[name] = *rope;
  return name;
}

Status SpecBuilder::addLinear(const std::string &id, const std::string &name, const LinearLayer &linear,
                              int64_t layer) {
  const std::string prefix = layerPrefix + "self_attn." + name + ".";
  if (Status status = addTensor(id, prefix + "weight", layer, linear.weight); !status)
    return status;
  return linear.bias ? addTensor(id + "_bias", prefix + "bias", layer, *linear.bias) : Status::success();
}

Status SpecBuilder::addAttention(const MlaLayer &found, int64_t index, LayerKind &kind) {
  MlaSpec attention = found.spec;
  attention.latentNormEps = written(attention.latentNormEps);
  const std::string layer = "layer " + std::to_string(index);
  if (found.output.bias.has_value() != attention.bias || found.query.bias || found.keyValue.bias)
    return refuse(layer + ": projections have other biases than latents");
  const auto known = spec.attentions.find(firstAttention);
  const auto sizes = [](const MlaSpec &of) {
    return std::make_tuple(of.heads, of.queryLatent, of.latent, of.nope, of.rope, of.value, of.latentNormEps, of.bias);
  };
  const MlaSpec *const first = known == spec.attentions.end() ? nullptr : std::get_if<MlaSpec>(&known->second);
  if (known != spec.attentions.end() && (!first || sizes(*first) != sizes(attention)))
    return refuse(layer + ": its attention has other sizes than those before");
  spec.attentions[firstAttention] = attention;
  Expected<std::string> rope =
      ropeName(found.rotation, found.scale, found.turnedScale, double(attention.nope + attention.rope));
  if (!rope)
    return rope.takeError();
  kind.rope = *rope;
  const std::tuple<const char *, const char *, const LinearLayer *> layers[] = {
      {found.queryLatent ? "q_a" : nullptr, "q_a_proj", found.queryLatent ? &*found.queryLatent : nullptr},
      {found.queryLatent ? "q_b" : "q", found.queryLatent ? "q_b_proj" : "q_proj", &found.query},
      {"kv_a", "kv_a_proj_with_mqa", &found.keyValueLatent},
      {"kv_b", "kv_b_proj", &found.keyValue},
      {"o", "o_proj", &found.output}};
  for (const auto &[id, name, linear] : layers)
    if (id)
      if (Status status = addLinear(id, name, *linear, index); !status)
        return status;
  if (found.queryNorm)
    if (Status status =
            addTensor("q_a_norm", layerPrefix + "self_attn.q_a_layernorm.weight", index, found.queryNorm->weight);
        !status)
      return status;
  return addTensor("kv_a_norm", layerPrefix + "self_attn.kv_a_layernorm.weight", index, found.keyValueNorm.weight);
}

Status SpecBuilder::addAttention(const GqaLayer &found, int64_t index, LayerKind &kind) {
  GqaSpec attention = found.spec;
  attention.qkvBias = found.query.layer.bias.has_value();
  attention.outputBias = found.output.bias.has_value();
  attention.clip = written(found.query.clip);
  if (found.query.norm)
    attention.norm = found.query.isNormOfHead ? QueryKeyNorm::Head : QueryKeyNorm::Row;
  const bool areAlike = found.key.layer.bias.has_value() == attention.qkvBias &&
                        found.value.layer.bias.has_value() == attention.qkvBias &&
                        found.key.norm.has_value() == found.query.norm.has_value() && !found.value.norm &&
                        found.key.isNormOfHead == found.query.isNormOfHead && found.key.clip == found.query.clip &&
                        found.value.clip == found.query.clip;
  if (!areAlike)
    return refuse("layer " + std::to_string(index) + ": queries, keys and values have other biases, norms or bounds");
  if (!found.rotation && std::abs(found.scale * std::sqrt(double(attention.headDim)) - 1) > roundoffOf(found.scale))
    return refuse("layer " + std::to_string(index) + ": scores are not multiplied by 1 / sqrt of " +
                  std::to_string(attention.headDim));
  if (found.rotation) {
    // Of rows that are turned as a whole, what scores are multiplied by beside 1 / sqrt(width) are cosines and sines.
    const bool isWhole = found.rotation->dims == attention.headDim;
    const double width = double(attention.headDim), plain = isWhole ? 1 / std::sqrt(width) : found.scale;
    Expected<std::string> rope = ropeName(*found.rotation, plain, found.turnedScale, width);
    if (!rope)
      return rope.takeError();
    kind.rope = *rope;
  } else {
    kind.rope = "";
  }
  const auto isSame = [&](const AttentionSpec &known) {
    const GqaSpec &of = std::get<GqaSpec>(known);
    return of.heads == attention.heads && of.kvHeads == attention.kvHeads && of.headDim == attention.headDim &&
           of.qkvBias == attention.qkvBias && of.outputBias == attention.outputBias && of.norm == attention.norm &&
           of.clip == attention.clip && of.window == attention.window;
  };
  for (const auto &[name, known] : spec.attentions) {
    const GqaSpec *const of = std::get_if<GqaSpec>(&known);
    if (!of || of->qkvBias != attention.qkvBias || of->outputBias != attention.outputBias || of->norm != attention.norm)
      return refuse("layer " + std::to_string(index) + ": its attention has other biases or norms than those before");
  }
  kind.attention = "";
  for (const auto &[name, known] : spec.attentions)
    if (isSame(known))
      kind.attention = name;
  if (kind.attention.empty()) {
    const size_t count = spec.attentions.size();
    kind.attention = count == 0 ? firstAttention : firstAttention + std::to_string(count + 1);
    spec.attentions[kind.attention] = attention;
  }
  const std::pair<const ProjectedRows *, const char *> rows[] = {
      {&found.query, "q"}, {&found.key, "k"}, {&found.value, "v"}};
  for (const auto &[projection, role] : rows)
    if (Status status = addProjection(*projection, role, std::string(role) + "_norm", index); !status)
      return status;
  if (Status status = addTensor("o", layerPrefix + "self_attn.o_proj.weight", index, found.output.weight); !status)
    return status;
  return found.output.bias ? addTensor("o_bias", layerPrefix + "self_attn.o_proj.bias", index, *found.output.bias)
                           : Status::success();
}

} // namespace k2c::onnx

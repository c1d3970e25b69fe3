//===- PublishedForm.cpp - a model as a published family has it -----------===//
//
// A model that was found in a graph has no family. Each family that compiles proposes what its config.json might be
// (ProposeConfig.cpp), the proposal is read like any other file, and what it describes is compared with the model, all
// of it. So it does not matter how a proposal came about: one that describes another model is never taken.
//
//===----------------------------------------------------------------------===//

#include "k2c/Model/PublishedForm.h"
#include "ProposeConfig.h"
#include "base/JsonText.h"
#include "k2c/Model/SpecJson.h"

#include <algorithm>

using namespace k2c;
using nlohmann::json;

namespace {

/// The first of a name is called so, the others have numbers.
std::string numbered(const std::string &name, size_t before) {
  return before == 0 ? name : name + std::to_string(before + 1);
}

/// The new name of one that was seen before, or else of the next one.
std::string renamed(std::map<std::string, std::string> &names, const std::string &old, const std::string &first) {
  return names.emplace(old, numbered(first, names.size())).first->second;
}

/// Kinds, attentions and rotary tables under names in the order of the layers that have them.
void nameByUse(ModelSpec &spec) {
  std::map<std::string, std::string> attentions, ropes;
  std::vector<LayerKind> kinds;
  for (LayerRun &run : spec.layers)
    for (LayerKind &kind : run.kinds) {
      const std::string base = kind.feedForward == FeedForward::Moe ? "moe" : "dense";
      kind.attention = renamed(attentions, kind.attention, firstAttention);
      if (!kind.rope.empty())
        kind.rope = renamed(ropes, kind.rope, firstRope);
      size_t before = 0;
      const auto isSame = [&](LayerKind known) {
        before += known.feedForward == kind.feedForward;
        kind.name = known.name;
        return known == kind;
      };
      if (std::any_of(kinds.begin(), kinds.end(), isSame))
        continue;
      kind.name = numbered(base, before);
      kinds.push_back(kind);
    }
  std::map<std::string, AttentionSpec> newAttentions;
  for (const auto &[old, name] : attentions)
    newAttentions.emplace(name, spec.attentions.at(old));
  spec.attentions = std::move(newAttentions);
  std::map<std::string, RopeSpec> newRopes;
  for (const auto &[old, name] : ropes)
    newRopes.emplace(name, spec.ropes.at(old));
  spec.ropes = std::move(newRopes);
}

void dropWhatChangesNothing(MoeSpec &moe) {
  if (moe.topGroups == moe.groups || (moe.groups == moe.experts && moe.topGroups >= moe.topK))
    moe.groups = moe.topGroups = 1;
  if (moe.groups == 1)
    moe.groupScore = GroupScore::Max;
  if (!moe.normalize)
    moe.normalizeEps = 0;
}

ModelSpec canonical(ModelSpec spec) {
  nameByUse(spec);
  if (spec.moe)
    dropWhatChangesNothing(*spec.moe);
  return spec;
}

json describe(const ModelSpec &spec) {
  json out = specJson(spec);
  for (const char *key : {"family", "model_type", "storage", "widened"})
    out.erase(key);
  for (const WeightFamily &weight : spec.weights) {
    std::string layers;
    for (const LayerRange &range : weight.layers)
      layers += (layers.empty() ? "" : ", ") + std::to_string(range.begin) + " to " + std::to_string(range.end - 1);
    out["weights"][weight.id] = {{"shape", json(weight.shape).dump()},
                                 {"layers", layers},
                                 {"experts", weight.experts},
                                 {"tensors", std::max<size_t>(1, weight.alternatives.size())}};
  }
  return out;
}

/// A proposal that was read, and how far it is from the model.
struct Attempt {
  std::string family;
  PublishedForm form;
  std::vector<std::string> differing; ///< pointers
  json found;                         ///< flat
};

/// "8.0", or "none".
std::string valueAt(const json &flat, const std::string &key) {
  return flat.contains(key) ? shortenedJson(flat.at(key), maxQuoted / 3) : "none";
}

Error noFamily(const ModelSpec &spec, const json &model, const std::optional<Attempt> &nearest) {
  std::string what = "is the model of no family of models/families that compiles";
  if (nearest)
    what += "; the nearest is " + nearest->family + ", whose " + dottedKey(nearest->differing.front()) + " is " +
            valueAt(nearest->found, nearest->differing.front()) + ", and the model's " +
            valueAt(model, nearest->differing.front());
  return Error{spec.name, what, "k2c compile needs no family"};
}

/// The families that compile, the one of `preferred` first.
Expected<std::vector<Family>> familiesToTry(const std::string &preferred) {
  const Expected<std::vector<Family>> &all = builtInFamilies();
  const Expected<std::vector<std::string>> &compiled = compiledFamilies();
  if (!all)
    return all.error();
  if (!compiled)
    return compiled.error();
  std::vector<Family> out;
  for (const std::string &name : *compiled)
    std::copy_if(all->begin(), all->end(), std::back_inserter(out),
                 [&](const Family &family) { return family.name == name; });
  std::stable_partition(out.begin(), out.end(), [&](const Family &family) {
    return std::count(family.modelTypes.begin(), family.modelTypes.end(), preferred) > 0;
  });
  return out;
}

} // namespace

json k2c::sameModelJson(const ModelSpec &spec) { return describe(canonical(spec)); }

Expected<PublishedForm> k2c::publishedForm(const ModelSpec &spec, const std::string &preferred) {
  const Expected<std::vector<Family>> families = familiesToTry(preferred);
  if (!families)
    return families.error();
  const ModelSpec model = canonical(spec);
  const json wanted = describe(model).flatten();
  std::optional<Attempt> nearest;
  for (const Family &family : *families)
    for (json &config : proposeConfigs(family, model)) {
      if (std::count(family.modelTypes.begin(), family.modelTypes.end(), preferred) > 0)
        config["model_type"] = preferred;
      const std::string text = jsonText(config, 2) + "\n";
      Expected<ModelSpec> read = parseModelSpec(text, "config.json");
      if (!read)
        continue; // a model that the family's checks refuse
      Attempt attempt{family.name, {text, std::move(*read)}, {}, {}};
      attempt.found = sameModelJson(attempt.form.spec).flatten();
      attempt.differing = differingKeys(wanted, attempt.found);
      if (!nearest || attempt.differing.size() < nearest->differing.size())
        nearest = std::move(attempt);
      if (!nearest->differing.empty())
        continue;
      for (WeightFamily &weight : nearest->form.spec.weights)
        weight.dtype = spec.find(weight.id)->dtype;
      nearest->form.spec.name = spec.name;
      return std::move(nearest->form);
    }
  return noFamily(spec, wanted, nearest);
}

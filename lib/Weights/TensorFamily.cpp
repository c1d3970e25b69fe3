//===- TensorFamily.cpp - Slots of a weight family, layer by layer ----------===//
#include "k2c/Weights/TensorFamily.h"

#include "k2c/Model/ModelSpec.h"

namespace k2c {

/// Replaces every `from` by `to`.
static std::string replaced(std::string text, const std::string &from, const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// "a.{x|y}.b" is a.x.b and a.y.b; a pattern without alternatives is itself.
static std::vector<std::string> alternativesOf(const std::string &pattern) {
  for (size_t open = pattern.find('{'); open != std::string::npos; open = pattern.find('{', open + 1)) {
    size_t close = pattern.find('}', open);
    std::string words = pattern.substr(open + 1, close - open - 1);
    if (close == std::string::npos || words.find('|') == std::string::npos)
      continue;
    std::vector<std::string> names;
    for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
      end = words.find('|', begin);
      names.push_back(pattern.substr(0, open) + words.substr(begin, end - begin) + pattern.substr(close + 1));
    }
    return names;
  }
  return {pattern};
}

/// Part `part` of what a slice leaves of the family's tensors.
static std::optional<TensorSlice> partOf(const TensorFamily &family, int64_t part) {
  if (family.parts == 1)
    return std::nullopt;
  const bool isSliced = family.slice && family.slice->dimension == family.along;
  const int64_t size = isSliced ? family.slice->to - family.slice->from : family.shape[family.along];
  return TensorSlice{family.along, size * part / family.parts, size * (part + 1) / family.parts};
}

std::vector<SourceTensor> sourcesOf(const TensorFamily &family, std::optional<int64_t> layer, int64_t part) {
  std::string pattern = layer ? replaced(family.pattern, "{layer}", std::to_string(*layer)) : family.pattern;
  std::vector<int64_t> experts = membersOf(family.experts.value_or(IndexSet{{0, 1, 1}}));
  std::vector<std::string> alternatives = alternativesOf(pattern);
  std::vector<SourceTensor> sources;
  for (int64_t expert : experts)
    for (const std::string &alternative : alternatives) {
      std::string name = family.experts ? replaced(alternative, "{expert}", std::to_string(expert)) : alternative;
      sources.push_back({name, family.shape, family.slice, family.transpose, {}, family.stored, partOf(family, part)});
      if (family.blocks)
        sources.back().scales = SourceScales{name + scaleSuffix, family.blocks->first, family.blocks->second};
    }
  return sources;
}

int64_t appendSlots(WeightMap &map, const TensorFamily &family, const Transform &transform, int64_t experts) {
  int64_t first = int64_t(map.slots.size());
  auto append = [&](std::optional<int64_t> layer) {
    for (int64_t part = 0; part < family.parts; ++part)
      map.slots.push_back(
          {int64_t(map.slots.size()), family.name, layer, sourcesOf(family, layer, part), transform, experts});
  };
  if (!family.layers)
    append(std::nullopt);
  else
    for (int64_t layer : membersOf(*family.layers))
      append(layer);
  return first;
}

} // namespace k2c

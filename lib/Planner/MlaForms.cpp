//===- MlaForms.cpp - Expanded or absorbed latent attention -----------------===//
#include "k2c/Planner/MlaForms.h"

#include <cmath>

namespace k2c {

static constexpr std::string_view formNames[] = {"phased", "absorbed", "expanded"};

std::string_view name(MlaForms forms) { return formNames[size_t(forms)]; }

std::optional<MlaForms> parseMlaForms(std::string_view word) {
  for (MlaForms forms : {MlaForms::Phased, MlaForms::Absorbed, MlaForms::Expanded})
    if (word == name(forms))
      return forms;
  return std::nullopt;
}

/// Multiply-adds of one head for one query and one key.
static double expandedPair(const AttentionSizes &sizes) { return double(sizes.key + sizes.value); }
static double absorbedPair(const AttentionSizes &sizes) { return double(sizes.absorbedKey + sizes.absorbedValue); }

Flops expandedFlops(const AttentionSizes &sizes, double queries, double keys) {
  return Flops(2 * double(sizes.heads) * (queries * keys * expandedPair(sizes) + keys * sizes.expansion));
}

Flops absorbedFlops(const AttentionSizes &sizes, double queries, double keys) {
  return Flops(2 * double(sizes.heads) * (queries * keys * absorbedPair(sizes) + queries * sizes.expansion));
}

std::optional<double> mlaCrossover(const AttentionSizes &sizes, std::optional<double> keys) {
  double saved = absorbedPair(sizes) - expandedPair(sizes);
  if (keys) {
    double denominator = *keys * saved + sizes.expansion;
    return denominator > 0 ? std::optional(*keys * sizes.expansion / denominator) : std::nullopt;
  }
  return saved > 0 ? std::optional(sizes.expansion / saved) : std::nullopt;
}

int64_t expandedFrom(const AttentionSizes &sizes, MlaForms forms) {
  if (!sizes.isLatent())
    return -1;
  if (forms == MlaForms::Expanded)
    return 0;
  std::optional<double> crossover = mlaCrossover(sizes);
  if (forms == MlaForms::Absorbed || !crossover)
    return -1;
  return int64_t(std::ceil(*crossover));
}

} // namespace k2c

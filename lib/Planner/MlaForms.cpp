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

/// Multiply-adds that expand one key, or absorb one query, of one head.
static double expansion(const MlaSpec &mla) { return double(mla.latent) * double(mla.nope + mla.value); }

/// Multiply-adds of one head for one query and one key.
static double expandedPair(const MlaSpec &mla) { return double(mla.nope + mla.rope + mla.value); }
static double absorbedPair(const MlaSpec &mla) { return double(2 * mla.latent + mla.rope); }

Flops expandedFlops(const MlaSpec &mla, double queries, double keys) {
  return Flops(2 * double(mla.heads) * (queries * keys * expandedPair(mla) + keys * expansion(mla)));
}

Flops absorbedFlops(const MlaSpec &mla, double queries, double keys) {
  return Flops(2 * double(mla.heads) * (queries * keys * absorbedPair(mla) + queries * expansion(mla)));
}

std::optional<double> mlaCrossover(const MlaSpec &mla, std::optional<double> keys) {
  double saved = absorbedPair(mla) - expandedPair(mla);
  if (keys) {
    double denominator = *keys * saved + expansion(mla);
    return denominator > 0 ? std::optional(*keys * expansion(mla) / denominator) : std::nullopt;
  }
  return saved > 0 ? std::optional(expansion(mla) / saved) : std::nullopt;
}

int64_t expandedFrom(const MlaSpec &mla, MlaForms forms) {
  if (forms == MlaForms::Expanded)
    return 0;
  std::optional<double> crossover = mlaCrossover(mla);
  if (forms == MlaForms::Absorbed || !crossover)
    return -1;
  return int64_t(std::ceil(*crossover));
}

} // namespace k2c

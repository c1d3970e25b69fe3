//===- ComputeType.cpp - The default of --compute -------------------------===//
#include "k2c/Planner/ComputeType.h"
#include <algorithm>
#include <map>

namespace k2c {

/// The type that the source stores a family in.
static DType storedType(const ModelSpec &spec, const WeightFamily &family) {
  const bool isNarrowed = std::find(spec.narrowed.begin(), spec.narrowed.end(), family.id) != spec.narrowed.end();
  return isNarrowed ? DType::F32 : family.blocks ? family.blocks->stored : family.dtype;
}

/// The type that most elements of the weights are stored in; of equal numbers the widest.
static DType storedType(const ModelSpec &spec) {
  std::map<DType, double> elements;
  for (const WeightFamily &family : spec.weights)
    elements[storedType(spec, family)] += double(family.elements()) * family.tensorCount();
  const auto most = std::max_element(elements.begin(), elements.end(), [](const auto &a, const auto &b) {
    return std::pair(a.second, byteWidth(a.first)) < std::pair(b.second, byteWidth(b.first));
  });
  return most == elements.end() ? spec.storage : most->first;
}

/// A bf16 cache of latent attention has pairs of elements, which an odd width would part.
static bool partsPairs(const ModelSpec &spec) {
  const MlaSpec *mla = spec.latentAttention();
  return mla && (mla->latent % 2 != 0 || mla->nope % 2 != 0);
}

ComputeChoice chooseCompute(const ModelSpec &spec, Bf16Unit unit) {
  const DType stored = storedType(spec);
  const std::string is = "the checkpoint is stored as " + (stored == DType::F8E4M3 ? "FP8" : std::string(name(stored)));
  if (stored == DType::F32)
    return {DType::F32, is};
  if (stored == DType::F16)
    return {DType::F32, is + ", which bf16 would round"};
  if (unit == Bf16Unit::None)
    return {DType::F32, "the target has no AVX512-BF16; " + is};
  if (partsPairs(spec))
    return {DType::F32, "latent attention of an odd width has no bf16 cache; " + is};
  return {DType::BF16, is + (unit == Bf16Unit::Gpu ? " and the target is a GPU" : " and the target has AVX512-BF16")};
}

} // namespace k2c

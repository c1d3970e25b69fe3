//===- SavedTensors.cpp - What a MoE layer keeps for its backward pass ----===//

#include "k2c/Formulas/SavedTensors.h"

using namespace k2c;

namespace {

/// From which set on a tensor is not kept; `Layer`: only when the whole layer is recomputed, `Never`: always kept,
/// `Nothing`: of a set that drops none.
enum class DroppedFrom : uint8_t { Nothing, DeepSeekV3, KimiK2, Layer, Never };

struct Row {
  const char *name;
  double bytes;
  DroppedFrom dropped;
  bool fp8 = false; ///< stored so under KimiK2Fp8
};

/// What a set drops: all up to this.
DroppedFrom droppedBy(RecomputeSet set) {
  switch (set) {
  case RecomputeSet::DeepSeekV3:
    return DroppedFrom::DeepSeekV3;
  case RecomputeSet::KimiK2:
  case RecomputeSet::KimiK2Fp8:
    return DroppedFrom::KimiK2;
  case RecomputeSet::Layer:
    return DroppedFrom::Layer;
  default:
    return DroppedFrom::Nothing;
  }
}

std::vector<Row> rowsOf(const ModelSpec &spec) {
  const MlaSpec &mla = *spec.latentAttention();
  const MoeSpec &moe = *spec.moe;
  constexpr double b = 2; // bf16
  const double h = double(spec.hidden), heads = double(mla.heads), key = double(mla.nope + mla.rope);
  const double q = double(mla.queryLatent), c = double(mla.latent), f = double(moe.inter), k = double(moe.topK);
  const double shared = double(moe.sharedInter);
  return {{"residual into attention", b * h, DroppedFrom::Never},
          {"attention norm", b * h, DroppedFrom::DeepSeekV3},
          {"query latent", b * q, DroppedFrom::Layer},
          {"query latent norm", b * q, DroppedFrom::DeepSeekV3},
          {"key latent and rotated key", b * (c + double(mla.rope)), DroppedFrom::Layer},
          {"key latent norm", b * c, DroppedFrom::DeepSeekV3},
          {"queries", b * heads * key, DroppedFrom::DeepSeekV3},
          {"keys", b * heads * key, DroppedFrom::DeepSeekV3},
          {"values", b * heads * double(mla.value), DroppedFrom::DeepSeekV3},
          {"attention output", b * heads * double(mla.value), DroppedFrom::Layer},
          {"logsumexp", 4 * heads, DroppedFrom::Layer},
          {"residual into experts", b * h, DroppedFrom::Layer},
          {"expert norm", b * h, DroppedFrom::DeepSeekV3},
          {"router scores", 4 * double(moe.experts), DroppedFrom::Never},
          {"expert inputs", b * k * h, DroppedFrom::Layer, true},
          {"expert gate and up", b * k * 2 * f, DroppedFrom::Layer, true},
          {"expert SwiGLU", b * k * f, DroppedFrom::KimiK2},
          {"expert outputs", b * k * h, DroppedFrom::KimiK2},
          {"shared gate and up", b * 2 * shared, DroppedFrom::Layer, true},
          {"shared SwiGLU", b * shared, DroppedFrom::KimiK2}};
}

} // namespace

std::vector<SavedTensor> k2c::savedTensors(const ModelSpec &spec, RecomputeSet set) {
  std::vector<SavedTensor> kept;
  for (const Row &row : rowsOf(spec)) {
    if (row.dropped <= droppedBy(set))
      continue;
    // Half the bytes, and 4 for each 128 values.
    bool fp8 = row.fp8 && set == RecomputeSet::KimiK2Fp8;
    kept.push_back({row.name, fp8 ? row.bytes / 2 * (1 + 4.0 / 128) : row.bytes});
  }
  return kept;
}

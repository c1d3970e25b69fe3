//===- KeptValues.cpp - What a layer keeps of its forward for its backward ----===//
//
// One walk over the ops. The gradient of each op marks the values that it reads; a value whose op is computed again is
// not kept, as what that op reads is. Views stand for the value that they show.
//
//===----------------------------------------------------------------------===//

#include "KeptValues.h"

#include <algorithm>
#include <functional>
#include <numeric>

using namespace k2c;
using namespace k2c::planner;

namespace {

constexpr double bf16 = 2, f32 = 4;
/// FP8 in groups of 128 values with one f32 scale (DeepSeek-V3 report, section 3.3.2).
constexpr double fp8 = 1 + f32 / 128;
/// E5M6, 12 bits (DeepSeek-V3 report, section 3.3.3), with the scales of FP8.
constexpr double e5m6 = 1.5 + f32 / 128;

/// A value of the layer.
struct Value {
  double elements = 0;
  bool isStream = false, isSplit = false;
  bool isKept = false;
  bool isComputedAgain = false; ///< in the backward, from values that are kept
  double width = 0;             ///< bytes of an element where it is kept: of who reads the widest
};

class Keeper {
public:
  Keeper(const ModelSpec &spec, const LayerKind &kind, RecomputeSet set, DType compute)
      : spec(spec), sizes(attentionSizes(spec.attentions.at(kind.attention))), set(set),
        linearWidth(compute == DType::F8E4M3 || set == RecomputeSet::DeepSeekV3 ? fp8 : bf16),
        ops(layerOps(spec, kind)) {}

  KeptBytes keep();

private:
  /// What experts and activations read is stored in FP8.
  bool isNarrow() const { return set == RecomputeSet::DeepSeekV3 || set == RecomputeSet::KimiK2Fp8; }
  void append(const LayerOp &op);
  void mark(const LayerOp &op, size_t first);
  void keepValue(size_t value, double width = bf16) {
    values[value].isKept = true;
    values[value].width = std::max(values[value].width, width);
  }
  /// An up projection of latent attention: its input comes from a latent.
  bool isUpProjection(const LayerOp &op) const {
    return sizes.isLatent() && op.kind == LayerOpKind::Linear && op.weights[0] == "q_b";
  }
  KeptBytes expertRows() const;

  const ModelSpec &spec;
  const AttentionSizes sizes;
  const RecomputeSet set;
  /// Of what the gradients of weights read: products in FP8 keep their inputs as they multiplied them.
  const double linearWidth;
  const std::vector<LayerOp> ops;
  std::vector<Value> values;
  std::vector<size_t> shown; ///< of each value, the one that it is or shows
  KeptBytes beside;          ///< of ops whose values are inside of them
};

/// Results of an op: one dimension of the residual stream's width, of latents, or of activations between two matrices.
void Keeper::append(const LayerOp &op) {
  const bool isView = op.kind == LayerOpKind::Reshape;
  for (const std::vector<int64_t> &row : op.results) {
    Value value;
    value.elements = row.empty() ? 0 : std::accumulate(row.begin(), row.end(), 1.0, std::multiplies<double>());
    value.isSplit = row.size() > 1 || op.kind == LayerOpKind::GatedAct;
    value.isStream = !value.isSplit && value.elements == double(spec.hidden);
    const bool isOfUpProjection = op.kind == LayerOpKind::Rotary && values[shown[op.inputs[0]]].isComputedAgain;
    value.isComputedAgain = (recomputes(set, RecomputeSet::Norms) && op.kind == LayerOpKind::RmsNorm) ||
                            (recomputes(set, RecomputeSet::Activations) && op.kind == LayerOpKind::GatedAct) ||
                            (recomputes(set, RecomputeSet::UpProjections) && isUpProjection(op)) || isOfUpProjection;
    shown.push_back(isView ? shown[op.inputs[0]] : values.size());
    values.push_back(value);
  }
}

void Keeper::mark(const LayerOp &op, size_t first) {
  auto input = [&](size_t i) { return shown[op.inputs[i]]; };
  switch (op.kind) {
  case LayerOpKind::Linear:
    keepValue(input(0), linearWidth);
    break;
  case LayerOpKind::GatedAct:
    keepValue(input(0), isNarrow() ? fp8 : bf16);
    break;
  case LayerOpKind::RmsNorm:
  case LayerOpKind::Clip:
    keepValue(input(0));
    break;
  case LayerOpKind::Append:
  case LayerOpKind::LatentAppend:
    for (size_t i = 0; i < op.inputs.size(); ++i)
      keepValue(input(i));
    break;
  case LayerOpKind::LatentAttention:
    if (!recomputes(set, RecomputeSet::UpProjections)) // keys and values of all heads
      beside.split += bf16 * double(sizes.heads * (sizes.key + sizes.value));
    [[fallthrough]];
  case LayerOpKind::Attention:
    keepValue(input(0));
    keepValue(first, set == RecomputeSet::DeepSeekV3 ? e5m6 : bf16);
    beside.split += f32 * double(sizes.heads); // the logarithms of its sums
    break;
  case LayerOpKind::Routing:
    beside.latents += f32 * double(spec.moe->experts);
    break;
  case LayerOpKind::Experts:
    beside += expertRows();
    break;
  default:
    break;
  }
}

KeptBytes Keeper::expertRows() const {
  const double hidden = double(spec.hidden), inter = double(spec.moe->inter), width = isNarrow() ? fp8 : bf16;
  KeptBytes rows;
  rows.row = std::min(width, linearWidth) * hidden;
  rows.rowSplit = width * 2 * inter + (recomputes(set, RecomputeSet::Activations) ? 0 : linearWidth * inter);
  return rows;
}

KeptBytes Keeper::keep() {
  if (set == RecomputeSet::Layer) {
    KeptBytes input;
    input.stream = bf16 * double(spec.hidden);
    return input;
  }
  values.push_back({double(spec.hidden), true});
  shown.push_back(0);
  for (const LayerOp &op : ops) {
    const size_t first = values.size();
    append(op);
    mark(op, first);
  }
  KeptBytes kept = beside;
  for (const Value &value : values)
    if (value.isKept && !value.isComputedAgain)
      (value.isStream ? kept.stream : value.isSplit ? kept.split : kept.latents) += value.elements * value.width;
  return kept;
}

} // namespace

KeptBytes planner::keptBytes(const ModelSpec &spec, const LayerKind &kind, RecomputeSet set, DType compute) {
  return Keeper(spec, kind, set, compute).keep();
}

//===- WeightShare.cpp - Which bytes of a weight a worker reads ----------------===//
#include "k2c/Kernels/WeightShare.h"

namespace k2c {

k2rt_share weightShare(const KernelDesc &desc, const Operand &weight, WeightLayout layout) {
  if (!weight.isMatrix())
    return {0, 0, 0};
  const Matrix &w = weight.matrix;
  const auto *linear = std::get_if<LinearDesc>(&desc.body);
  const int64_t experts = linear && linear->grouped ? w.count : 0;
  if (layout != WeightLayout::Panels)
    return {experts, 0, 0};
  const int64_t panels = panelCount(w), panelBytes = PanelLayout{w}.panelBytes();
  if (experts > 0)
    return {experts, panels, panelBytes};
  if (std::holds_alternative<ExpandedAttentionDesc>(desc.body))
    return {0, w.count, panels * panelBytes};
  return {0, w.count * panels, panelBytes};
}

void appendShare(std::vector<SlotShares> &shares, int64_t slots, const k2rt_share &share, SlotStage stage) {
  auto same = [&](const k2rt_share &other) {
    return other.experts == share.experts && other.items == share.items && other.item_bytes == share.item_bytes;
  };
  if (shares.empty() || !same(shares.back().share) || shares.back().stage != stage)
    shares.push_back({0, share, stage});
  shares.back().slots += slots;
}

} // namespace k2c

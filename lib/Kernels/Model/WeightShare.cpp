//===- WeightShare.cpp - Which bytes of a weight a worker reads ----------------===//
#include "k2c/Kernels/WeightShare.h"
#include <tuple>

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

void appendShare(std::vector<SlotShares> &shares, const SlotShares &run) {
  auto key = [](const SlotShares &of) {
    return std::tie(of.share.experts, of.share.items, of.share.item_bytes, of.stage, of.parts);
  };
  if (!shares.empty() && key(shares.back()) == key(run))
    shares.back().slots += run.slots;
  else
    shares.push_back(run);
}

} // namespace k2c

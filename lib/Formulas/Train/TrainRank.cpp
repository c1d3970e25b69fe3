//===- TrainRank.cpp - Parameters and memory of one training rank, by paper 002 -===//

#include "k2c/Formulas/TrainRank.h"
#include "k2c/Model/Layers.h"

using namespace k2c;

static Error indivisible(const std::string &what, int64_t size, const std::string &by, int64_t ranks) {
  return {by, std::to_string(ranks) + " does not divide " + what + " " + std::to_string(size),
          "choose a divisor of " + std::to_string(size)};
}

Expected<int64_t> k2c::expertDataParallel(int64_t dp, int64_t tp, int64_t ep, int64_t etp) {
  Checked ranks = Checked(dp) * tp, experts = Checked(ep) * etp;
  if (!ranks.isValid() || !experts.isValid() || ranks.value() % experts.value())
    return Error{"ep",
                 std::to_string(ep) + " times ETP " + std::to_string(etp) +
                     " does not divide the ranks of a stage, DP " + std::to_string(dp) + " times TP " +
                     std::to_string(tp),
                 "choose a divisor"};
  return ranks.value() / experts.value();
}

/// Splits attention over TP; sets `split` (of one rank) and `replicated`, for one layer.
static void splitAttention(const ModelSpec &spec, const StageLayout &layout, int64_t layer, DeviceParameters &device) {
  const MlaSpec *mla = spec.latentAttention();
  Checked all = layerParameters(spec, layer).attention, whole;
  if (mla) {
    // Paper 002, section 3.2; biases of the down projections and an indexer are whole on every rank as well.
    LatentMatrices w = latentMatrices(*mla, spec.hidden);
    Checked split = w.uq + w.uk + w.uv + w.o + (layout.splitsQueryRope ? w.qr : Checked(0));
    whole = all - split;
  }
  device.attentionSplit = (all - whole) * layout.layers / layout.tp;
  device.attentionReplicated = whole * layout.layers;
}

Expected<DeviceParameters> k2c::deviceParameters(const ModelSpec &spec, const StageLayout &layout) {
  std::vector<int64_t> moeLayers = spec.moeLayers();
  if (!spec.moe || moeLayers.empty())
    return Error{"model", "has no routed experts", "ask this of a mixture-of-experts model"};
  if (const int64_t heads = commonHeads(spec); heads % layout.tp)
    return indivisible("the attention heads", heads, "tp", layout.tp);
  if (spec.moe->inter % layout.etp)
    return indivisible("the width of an expert", spec.moe->inter, "etp", layout.etp);
  if (layout.ep > spec.moe->experts)
    return Error{"ep", std::to_string(layout.ep) + " ranks for " + std::to_string(spec.moe->experts) + " experts", ""};
  if (layout.splitsSharedExpert && spec.moe->sharedInter % layout.tp)
    return indivisible("the width of the shared expert", spec.moe->sharedInter, "tp", layout.tp);

  LayerParameters one = layerParameters(spec, moeLayers.back());
  Checked layers = layout.layers, local = Checked(spec.moe->experts).dividedUp(layout.ep);
  DeviceParameters device;
  splitAttention(spec, layout, moeLayers.back(), device);
  device.norms = one.norms * layers;
  device.router = one.router * layers;
  device.routed = one.experts / spec.moe->experts * local * layers / layout.etp;
  device.shared = one.shared * layers / (layout.splitsSharedExpert ? layout.tp : 1);
  device.expertsPerRank = ((local + sharedExperts(spec)) * layers).value();
  return device;
}

double k2c::trainingMemory(const StateMemory &states, double activations, double liveMicrobatches, double buffers,
                           double fragmentation) {
  return (states.total() + liveMicrobatches * activations + buffers) * (1 + fragmentation);
}

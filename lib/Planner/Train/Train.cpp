//===- Train.cpp - Memory of one training rank --------------------------------===//

#include "k2c/Planner/Train.h"

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
  const auto *mla = std::get_if<MlaSpec>(&spec.attention);
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
  const auto *gqa = std::get_if<GqaSpec>(&spec.attention);
  int64_t heads = gqa ? gqa->heads : std::get<MlaSpec>(spec.attention).heads;
  if (heads % layout.tp)
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

StateMemory k2c::stateMemory(const DeviceParameters &device, Zero zero, const StateBytes &bytes, int64_t dp,
                             int64_t edp, bool paperGroups) {
  double routed = paperGroups ? device.moe().real() : device.routed.real(), whole = device.total().real();
  double sharded = (whole - routed) / static_cast<double>(dp) + routed / static_cast<double>(edp);
  return {(zero == Zero::OsGParams ? sharded : whole) * bytes.weight,
          (zero >= Zero::OsG ? sharded : whole) * bytes.gradient,
          (zero >= Zero::Os ? sharded : whole) * bytes.optimizer};
}

namespace {

/// Sizes as real numbers: activations are estimates, and products of seven sizes leave 2^63.
struct Sizes {
  double b, s, h, sp, tp, layers;
  Sizes(const ModelSpec &spec, const Microbatch &batch)
      : b(double(batch.sequences)), s(double(batch.tokens) / double(batch.cp)), h(double(spec.hidden)),
        sp(double(batch.sp)), tp(double(batch.tp)), layers(double(batch.layers)) {}
};

} // namespace

double k2c::attentionActivations(const ModelSpec &spec, const Microbatch &batch, Recompute recompute, bool flash,
                                 bool dropout) {
  const Sizes z(spec, batch);
  if (recompute == Recompute::Full)
    return z.layers * 2 * z.b * z.s * z.h / z.sp; // the input alone
  double heads = 0, latents = 0, queriesAndKeys = 0, valuesAndOutputs = 0;
  if (const auto *mla = std::get_if<MlaSpec>(&spec.attention)) {
    heads = double(mla->heads);
    latents = double(mla->queryLatent + mla->latent);
    queriesAndKeys = 2 * heads * double(mla->nope + mla->rope);
    valuesAndOutputs = 2 * heads * double(mla->value);
  } else {
    const GqaSpec &gqa = std::get<GqaSpec>(spec.attention);
    heads = double(gqa.heads);
    queriesAndKeys = double((gqa.heads + gqa.kvHeads) * gqa.headDim);
    valuesAndOutputs = queriesAndKeys;
  }
  double keys = double(batch.tokens), rows = z.b * z.s * heads;
  double matrices = flash ? 4 * rows : (dropout ? 5 : 2) * rows * keys;
  double residual = (4 + (dropout ? 1 : 0)) * z.b * z.s * z.h / z.sp;
  // The latents are whole on every TP rank, since their down projections are.
  return z.layers *
         (residual + 2 * z.b * z.s * latents + (2 * z.b * z.s * (queriesAndKeys + valuesAndOutputs) + matrices) / z.tp);
}

double k2c::moeActivations(const ModelSpec &spec, const Microbatch &batch, Recompute recompute, bool paperTokens) {
  const Sizes z(spec, batch);
  if (!spec.moe)
    return 0;
  double experts = double(spec.moe->experts), topK = double(spec.moe->topK), inter = double(spec.moe->inter);
  double here = paperTokens ? z.b * z.s : z.b * z.s / z.sp; // tokens of this rank
  if (recompute == Recompute::Full)
    return z.layers * (2 * z.b * z.s * z.h / z.sp + 2 * here * topK);
  double group = paperTokens ? here : here * double(batch.ep * batch.etp); // tokens an expert may get
  auto ofExpert = [&](double width) { return 3 * z.h + 8 * width; };       // input, gate, up, product, output
  double routed = experts / double(batch.ep) * (group * topK / experts) * ofExpert(inter / double(batch.etp));
  double shared = double(sharedExperts(spec)) * here * ofExpert(inter);
  return z.layers * (4 * z.b * z.s * z.h / z.sp + 4 * here * experts + 2 * here * topK + routed + shared);
}

double k2c::trainingMemory(const StateMemory &states, double activations, double liveMicrobatches, double buffers,
                           double fragmentation) {
  return (states.total() + liveMicrobatches * activations + buffers) * (1 + fragmentation);
}

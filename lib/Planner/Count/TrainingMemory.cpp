//===- TrainingMemory.cpp - States and activations of one training rank ---===//

#include "k2c/Planner/TrainingMemory.h"
#include "k2c/Model/Layers.h"

using namespace k2c;

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

double k2c::attentionActivations(const ModelSpec &spec, const AttentionSizes &sizes, const Microbatch &batch,
                                 Recompute recompute, bool flash, bool dropout) {
  const Sizes z(spec, batch);
  if (recompute == Recompute::Full)
    return z.layers * 2 * z.b * z.s * z.h / z.sp; // the input alone
  const double heads = double(sizes.heads), latents = double(sizes.latents), all = double(sizes.heads + sizes.keyHeads);
  const double queriesAndKeys = all * double(sizes.key), valuesAndOutputs = all * double(sizes.value);
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

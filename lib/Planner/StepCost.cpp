//===- StepCost.cpp - FLOP, bytes and seconds of one step ---------------------===//
#include "k2c/Planner/StepCost.h"

#include "Operands.h"
#include "k2c/Kernels/Cost.h"
#include <algorithm>

namespace k2c {

using namespace planner;

Seconds roofline(const Work &work, const Device &device, DType compute) {
  FlopRate core = compute == DType::BF16 ? device.bf16.value : device.f32.value;
  Seconds computing = work.flops / device.whole(core);
  Seconds reading = work.bytes / device.memoryRead.value;
  return std::max(computing, reading, [](Seconds a, Seconds b) { return a < b; });
}

bool runsExpanded(const Plan &plan, const StepShape &shape) {
  return plan.expandedFrom == 0 || (plan.expandedFrom > 0 && shape.tokens >= plan.expandedFrom);
}

/// FLOP of a rank's attention over all layers. A query sees the keys up to its own: half of the new ones on average.
static Flops attentionFlops(const ModelSpec &spec, const Plan &plan, const StepShape &shape) {
  const double tokens = double(shape.tokens), keys = double(shape.context) + (tokens + 1) / 2;
  Flops flops(0);
  for (const auto &[sizes, layers] : attentionLayers(spec)) {
    const double each = double(countWithin(layers, {0, spec.layerCount()})) * double(shape.sequences);
    if (!runsExpanded(plan, shape)) {
      flops += absorbedFlops(sizes, tokens, keys) * each;
      continue;
    }
    // Every cached key is expanded, whatever the queries see of it.
    Flops unseen = expandedFlops(sizes, 0, double(shape.context) + tokens - keys);
    flops += (expandedFlops(sizes, tokens, keys) + unseen) * each;
  }
  return flops * (1 / double(plan.layout.tp)); // ranks of a group divide heads
}

std::vector<Work> stepWork(const ModelSpec &spec, const Plan &plan, const StepShape &shape) {
  double rows = double(shape.sequences * shape.tokens), outputs = double(shape.sequences);
  bool expanded = runsExpanded(plan, shape);
  Work lookup{"embedding", Flops(0), Bytes(0)}, linears{"linears", Flops(0), Bytes(0)},
      experts{"experts", Flops(0), Bytes(0)}, logits{"logits", Flops(0), Bytes(0)};
  Work attention{"attention", attentionFlops(spec, plan, shape),
                 Bytes(plan.cachePerToken.value * shape.sequences * (shape.context + shape.tokens))};
  for (const PlannedOperand &operand : operandsOf(spec, plan.expandedFrom, plan.limits, rankParts(plan))) {
    Bytes bytes = operand.packed.bytes;
    switch (operand.use) {
    case Use::Lookup:
      if (operand.packed.family == "embed") // a part of the columns for the rows of all who have one
        lookup.bytes += Bytes(int64_t(rows * double(plan.layout.vocab * bytes.value) / double(spec.vocab)));
      break;
    case Use::Every:
      linears.bytes += bytes;
      linears.flops += Flops(2 * rows * operand.multiplyAdds);
      break;
    case Use::Chosen: {
      double hit = hitExperts(spec.moe->experts, spec.moe->topK, rows) / double(spec.moe->experts);
      experts.bytes += Bytes(int64_t(hit * double(bytes.value)));
      // Choices fall on all ranks alike, or on groups of them that share experts.
      const double share = double(plan.expertSlots) / double(spec.moe->experts);
      experts.flops += Flops(2 * rows * double(spec.moe->topK) * operand.multiplyAdds * std::min(1.0, share));
      break;
    }
    case Use::Logits:
      logits.bytes += bytes;
      logits.flops += Flops(2 * outputs * operand.multiplyAdds);
      break;
    case Use::Expanded:
    case Use::Absorbed:
      if (expanded == (operand.use == Use::Expanded))
        attention.bytes += bytes;
      break;
    case Use::Attention:
      attention.bytes += bytes;
      break;
    }
  }
  return {lookup, linears, attention, experts, logits};
}

Prediction predictStep(const ModelSpec &spec, const Plan &plan, const Device &device, const StepShape &shape) {
  Prediction prediction;
  prediction.tokens = shape.sequences * shape.tokens;
  prediction.context = shape.context;
  for (const Work &work : stepWork(spec, plan, shape)) {
    prediction.flops += work.flops;
    prediction.bytes += work.bytes;
    prediction.seconds += roofline(work, device, plan.compute);
  }
  return prediction;
}

} // namespace k2c

//===- HostPlan.cpp - The plan of a compile, as a plan of a cluster -----------===//
//
// Ranks of a CPU each: memory is the certificate that the manifest states, steps are the kernels that stepWork counts.
// Where the machine's rates were measured, the time of a step comes from them, kernel by kernel; the parts then share
// it in proportion to their rooflines, so that they sum to the time that is stated.
//
//===----------------------------------------------------------------------===//

#include "LargestLoad.h"
#include "RequestModel.h"

#include "k2c/Planner/StepCost.h"

using namespace k2c;
using namespace k2c::planner;

/// All but the experts of other ranks, and their parts of experts, embedding and head.
static int64_t parametersOfRank(const ModelSpec &spec, const Plan &plan) {
  int64_t parameters = totalParameters(spec).value();
  for (const WeightFamily &family : spec.weights)
    if (family.experts > 0) {
      const int64_t each = family.layerCount() * family.tensorsOfLayer() * family.elements() / family.experts;
      parameters -= each * family.experts - each / plan.layout.etp * std::min(family.experts, plan.expertSlots);
    } else if (family.id == "embed" || family.id == "head")
      parameters -= family.elements() - family.elements() / plan.layout.vocab;
  return parameters;
}

RankMemory planner::certificateOf(const ModelSpec &spec, const Plan &plan, const Device &device) {
  const MemoryCertificate &m = plan.memory;
  RankMemory memory;
  memory.ranks = rankRange(0, plan.ranks);
  memory.count = plan.ranks;
  memory.parameters = parametersOfRank(spec, plan);
  memory.capacity = device.memory.value;
  for (auto [name, bytes] : {std::pair{"weights", m.weights}, std::pair{"cache", m.cache}, std::pair{"arena", m.arena},
                             std::pair{"scratch", m.scratch}, std::pair{"collectives", m.collectives},
                             std::pair{"logits", m.logits}, std::pair{"reserve", m.reserve}})
    if (bytes.value > 0)
      memory.parts.push_back({name, bytes});
  return memory;
}

namespace {

void addStep(ClusterPlan &to, const char *phase, const ModelSpec &spec, const Plan &plan, const Device &device,
             const Prediction &step) {
  const FlopRate core = plan.compute == DType::BF16 ? device.bf16.value : device.f32.value;
  const std::vector<Work> all = stepWork(spec, plan, {1, step.tokens, step.context});
  double bound = 0;
  for (const Work &work : all)
    bound += roofline(work, device, plan.compute).value;
  for (const Work &work : all) {
    if (work.flops.value <= 0 && work.bytes.value <= 0)
      continue;
    StepPart part;
    part.phase = phase;
    part.name = work.name;
    part.seconds = Seconds(roofline(work, device, plan.compute).value * step.seconds.value / bound);
    part.flops = work.flops;
    part.memoryBytes = double(work.bytes.value);
    part.bound =
        work.flops / device.whole(core) > work.bytes / device.memoryRead.value ? Bound::Compute : Bound::Memory;
    to.steps.push_back(std::move(part));
  }
}

} // namespace

ClusterPlan k2c::describeHostPlan(const ModelSpec &spec, const Topology &topology, const Plan &plan) {
  const Device &device = topology.device;
  ClusterPlan to;
  to.model = spec.name;
  to.topology = topology.name;
  to.workload = "one sequence";
  to.layout = plan.layout;
  to.layout.stepTokens = plan.limits.stepTokens;
  to.devices = plan.ranks;
  to.available = topology.ranks();
  to.layers = spec.layerCount();
  to.expertLayers = spec.moeLayers();
  to.compute = plan.compute;
  to.cache = plan.cache.empty() ? plan.compute : plan.cache.front().type;
  to.weightFormat = nameOf(WeightFormat::Published);
  to.memory.push_back(certificateOf(spec, plan, device));
  addStep(to, "prefill", spec, plan, device, plan.prefill);
  addStep(to, "decode", spec, plan, device, plan.decode);
  auto add = figuresOf(to);
  const double prefill = plan.prefill.seconds.value, decode = plan.decode.seconds.value;
  add("output_tokens_per_s", "generated tokens/s", decode > 0 ? 1 / decode : 0, "tokens/s");
  add("tokens_per_s_per_user", "tokens/s per user", decode > 0 ? 1 / decode : 0, "tokens/s");
  add("tpot_s", "TPOT", decode, "s");
  add("ttft_s", "TTFT", prefill, "s");
  add("prefill_step_s", "prefill step", prefill, "s");
  add("prefill_tokens", "tokens of that step", double(plan.prefill.tokens), "tokens");
  add("decode_step_s", "decode step", decode, "s");
  add("batch", "sequences that decode at once", 1, "sequences");
  add("max_sequences", "sequences that fit the limits", double(plan.limits.maxSequences), "sequences");
  add("max_context", "tokens of a sequence", double(plan.limits.maxContext), "tokens");
  for (const Remark &remark : plan.remarks)
    to.notes.push_back(remark.text);
  return to;
}

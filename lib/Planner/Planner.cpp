//===- Planner.cpp - From a model and a machine to a plan ----------------------===//
//
// The layout is given: ranks have sequences and steps of their own and a part of the experts, so a plan of several
// ranks is that of the one which holds most. What is decided is the form of latent attention, and whether the limits
// fit. Each leaves a remark with its numbers; predictions name the constants they rest on. They are those of a rank:
// what ranks wait for each other is the cluster plan's to say (ClusterPlan.h).
//
//===----------------------------------------------------------------------===//
#include "k2c/Planner/Planner.h"

#include "Decide.h"
#include "Memory.h"
#include "Operands.h"
#include <algorithm>
#include <cstdio>

namespace k2c {

using namespace planner;

/// Tokens of the cold prompt whose time is predicted.
constexpr int64_t predictedPrompt = 512;

Limits defaultLimits(const ModelSpec &spec) {
  Limits limits;
  limits.maxContext = std::min<int64_t>(spec.maxPosition, limits.maxContext);
  return limits;
}

static Status checkLimits(const ModelSpec &spec, const Limits &limits) {
  constexpr int64_t most = INT32_MAX; // positions, rows and pages are 32-bit in the step
  struct {
    const char *option;
    int64_t value, most;
  } options[] = {{"--step-tokens", limits.stepTokens, most},
                 {"--max-sequences", limits.maxSequences, most},
                 {"--max-context", limits.maxContext, std::min(most, spec.maxPosition)},
                 {"--output-rows", limits.outputRows.value_or(1), limits.stepTokens}};
  for (const auto &option : options)
    if (option.value < 1 || option.value > option.most)
      return Error{option.option,
                   "is " + std::to_string(option.value) + ", must be 1 to " + std::to_string(option.most), ""};
  if (limits.pages() > most)
    return Error{"--max-sequences",
                 std::to_string(limits.maxSequences) + " sequences of " + std::to_string(limits.maxContext) +
                     " tokens need " + std::to_string(limits.pages()) + " pages a layer, more than " +
                     std::to_string(most),
                 ""};
  return Status::success();
}

//===----------------------------------------------------------------------===//
// Remarks
//===----------------------------------------------------------------------===//

static std::string decimal(double value, const char *format) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

static Remark computeRemark(const Plan &plan) {
  return {"set-numerics",
          "compute " + std::string(name(plan.compute)) + ": " + plan.computeReason,
          {{"bytes_per_activation", double(byteWidth(plan.compute))}}};
}

static Remark mlaRemark(const AttentionSizes &sizes, const Plan &plan) {
  Remark remark{"absorb-mla", "", {{"expanded_from", double(plan.expandedFrom)}}};
  std::optional<double> crossover = mlaCrossover(sizes);
  if (crossover)
    remark.metrics.push_back({"crossover_tokens", *crossover});
  if (plan.mla != MlaForms::Phased)
    remark.text = plan.mla == MlaForms::Absorbed ? "every segment runs absorbed, as --mla asks"
                                                 : "every segment runs expanded, as --mla asks";
  else if (!crossover)
    remark.text = "every segment runs absorbed: it never costs more with latent " + std::to_string(sizes.absorbedValue);
  else
    remark.text = "prompt segments of " + std::to_string(plan.expandedFrom) +
                  " new tokens and more run expanded, others absorbed: both cost the same at " +
                  decimal(*crossover, "%.1f") + " tokens on many keys";
  return remark;
}

/// How the experts lie, where ranks share them.
static Remark layoutRemark(const ModelSpec &spec, const Topology &topology, const Plan &plan) {
  std::string text =
      std::to_string(plan.ranks) + " ranks of topology '" + topology.name + "' as " + compiledText(plan.layout) + ":";
  if (plan.layout.pp > 1)
    text += " " + std::to_string(plan.layout.pp) + " stages of at most " +
            std::to_string((spec.layerCount() + plan.layout.pp - 1) / plan.layout.pp) + " layers";
  if (plan.layout.tp > 1)
    text += std::string(plan.layout.pp > 1 ? ", groups of " : " groups of ") + std::to_string(plan.layout.tp) +
            " ranks with sequences of their own, each with a part of the heads";
  else if (plan.layout.dp > 1)
    text += std::string(plan.layout.pp > 1 ? ", ranks with" : "") + " sequences of their own";
  if (plan.layout.dividesExperts())
    text += ", and " + std::to_string(plan.expertSlots) + " slots each for the " + std::to_string(spec.moe->experts) +
            " experts of a layer";
  if (plan.layout.etp > 1)
    text += ", of which each of " + std::to_string(plan.layout.etp) + " has a part";
  if (plan.layout.vocab > 1)
    text += "; each of " + std::to_string(plan.layout.vocab) + " has a part of embedding and head";
  return {"attach-plan",
          text,
          {{"ranks", double(plan.ranks)},
           {"stages", double(plan.layout.pp)},
           {"expert_slots", double(plan.expertSlots)},
           {"experts", double(spec.moe ? spec.moe->experts : 0)},
           {"redundant", double(plan.layout.redundantExperts)}}};
}

static Remark memoryRemark(const Plan &plan, const Device &device) {
  const MemoryCertificate &m = plan.memory;
  return {"attach-plan",
          (plan.ranks > 1 ? "the fullest rank needs " : "one rank needs ") + format(m.total()) + " of " +
              format(device.memory.value) + ": weights " + format(m.weights) + ", cache " + format(m.cache) + " at " +
              format(plan.cachePerToken) + " a token, arena " + format(m.arena) +
              (plan.ranks > 1 ? ", collectives " + format(m.collectives) : "") + ", reserve " + format(m.reserve),
          {{"total_bytes", double(m.total().value)},
           {"weights_bytes", double(m.weights.value)},
           {"cache_bytes", double(m.cache.value)},
           {"arena_bytes", double(m.arena.value)},
           {"scratch_bytes", double(m.scratch.value)},
           {"logits_bytes", double(m.logits.value)},
           {"collectives_bytes", double(m.collectives.value)},
           {"reserve_bytes", double(m.reserve.value)},
           {"available_bytes", double(device.memory.value.value)}}};
}

std::string planner::boundText(const char *what, const Prediction &step) {
  return std::string(what) + " of " + std::to_string(step.tokens) + (step.tokens == 1 ? " token" : " tokens") +
         ": at least " + format(step.seconds) + " for " + format(step.flops) + " and " + format(step.bytes);
}

static Remark predictionRemark(const char *what, const Prediction &step, const Plan &plan, const Device &device) {
  const Sourced<FlopRate> &rate = plan.compute == DType::BF16 ? device.bf16 : device.f32;
  return {"attach-plan",
          boundText(what, step) + " (" +
              (device.kind == DeviceKind::Cpu ? std::to_string(device.cores) + " cores at " : "") +
              decimal(rate.value.value * 1e-9, "%.0f") + " GFLOP/s, " + rate.source + "; " +
              format(device.memoryRead.value) + ", " + device.memoryRead.source + ")",
          {{"seconds", step.seconds.value},
           {"flop", step.flops.value},
           {"bytes", double(step.bytes.value)},
           {"compute_s", step.flops.value / device.whole(rate.value).value},
           {"memory_s", (step.bytes / device.memoryRead.value).value}}};
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

StepShape planner::predictedPrefill(const Limits &limits) {
  return {1, std::min({predictedPrompt, limits.stepTokens, limits.maxContext}), 0};
}

Expected<Plan> planner::decide(const ModelSpec &spec, const Topology &topology, const Limits &limits,
                               const PlanOptions &options, const MeasuredSizes &measured) {
  if (Status status = checkCompiles(spec, topology, options.layout); !status)
    return status.takeError();
  if (Status status = checkLimits(spec, limits); !status)
    return status.takeError();
  if (Status status = checkCountable(spec, limits); !status)
    return status.takeError();
  Plan plan;
  plan.limits = limits;
  plan.layout = options.layout;
  plan.ranks = topology.ranks();
  plan.expertSlots = expertSlots(spec, options.layout);
  plan.compute = options.compute;
  plan.computeReason = options.computeReason;
  plan.mla = options.mla;
  plan.weights = options.weights;
  const AttentionSizes sizes = attentionLayers(spec).front().sizes;
  plan.expandedFrom = expandedFrom(sizes, options.mla);

  DType cache = options.cache.value_or(options.compute);
  MemoryModel memory{spec,
                     topology.device,
                     measured,
                     cache,
                     plan.expandedFrom,
                     plan.ranks,
                     rankParts(plan),
                     stageBounds(spec, options.layout)};
  if (options.mustFit)
    if (Status status = memory.check(limits); !status)
      return status.takeError();
  plan.memory = memory.certify(limits);
  plan.cache = cachePlanes(spec, limits, cache, plan.layout.tp);
  for (const CachePlane &plane : plan.cache)
    plan.cachePerToken += Bytes(plane.layers * plane.width * byteWidth(plane.type));
  for (const PlannedOperand &operand : operandsOf(spec, plan.expandedFrom, limits, rankParts(plan))) {
    plan.families.push_back(operand.packed);
    if (operand.use == Use::Chosen && plan.expertSlots > 0)
      plan.expertBytes += Bytes(operand.packed.bytes.value / plan.expertSlots);
  }

  if (!plan.computeReason.empty())
    plan.remarks.push_back(computeRemark(plan));
  if (sizes.isLatent())
    plan.remarks.push_back(mlaRemark(sizes, plan));
  if (plan.ranks > 1)
    plan.remarks.push_back(layoutRemark(spec, topology, plan));
  plan.remarks.push_back(memoryRemark(plan, topology.device));
  return plan;
}

Expected<Plan> planHost(const ModelSpec &spec, const Topology &topology, const Limits &limits,
                        const PlanOptions &options, const MeasuredSizes &measured) {
  Expected<Plan> decided = decide(spec, topology, limits, options, measured);
  if (!decided)
    return decided;
  Plan &plan = *decided;
  plan.prefill = predictStep(spec, plan, topology.device, predictedPrefill(limits));
  plan.decode = predictStep(spec, plan, topology.device, predictedDecode);
  plan.remarks.push_back(predictionRemark("prefill", plan.prefill, plan, topology.device));
  plan.remarks.push_back(predictionRemark("decode", plan.decode, plan, topology.device));
  return decided;
}

} // namespace k2c

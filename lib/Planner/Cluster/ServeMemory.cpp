//===- ServeMemory.cpp - What a rank of a serving layout holds ----------------===//
//
// Bytes of a rank: weights of its stage, cache of its sequences, buffers of one step, a reserve. Ranks of one stage
// are equal, so there is one account for each stage.
//
// The cache is that of the sequences at a random moment, not at their longest: the mean plus three standard deviations
// over the sequences of the rank, and the longest sequence at least; each of them ends in a page that is half full. A
// pool that computes prompts holds the longest prompt and the steps under way instead. Buffers are for the routing
// that the workload calls its peak, the worst one unless it says otherwise. Where this layout is one that k2c
// compiles, none of this counts: the certificate of k2c compile does. How many sequences fit is found by doubling and
// bisection, which needs bytes to grow with them; the buffers of a step take a quarter of what weights leave, unless
// 64 tokens take more already.
//
//===----------------------------------------------------------------------===//

#include "ServeMemory.h"

#include "LargestLoad.h"
#include "StageSplit.h"
#include "k2c/Model/Layers.h"
#include "k2c/Planner/Planner.h"
#include "k2c/Support/Largest.h"
#include <algorithm>
#include <cmath>

using namespace k2c;
using namespace k2c::planner;

ServeMemory::ServeMemory(const RequestModel &context, const ParallelLayout &layout, PoolRole role)
    : context(context), layout(layout), role(role),
      stages(context.model.ofStages(layersOfStages(context.request.spec, layout), layout)) {
  if (context.request.workload.serve.draftTokens > 0 && context.request.spec.mtpLayers > 0 &&
      role != PoolRole::Prefill) {
    RankShare draft = context.model.ofDraft(layout, /*hasTables=*/true);
    RankShare &last = stages.back();
    for (size_t i = 0; i < weightModuleCount; ++i) {
      last.parameters[i] += draft.parameters[i];
      last.bytes[i] += draft.bytes[i];
    }
  }
  compiles = role == PoolRole::Both && whyNotCompiled(context.request, layout).empty();
  reserve = context.request.workload.reserve * double(context.request.topology.device.memory.value.value);
}

/// Of a data-parallel rank that decodes: those of its sequences at a random moment, three deviations above their mean,
/// and the longest one at least. Of one that computes prompts: the longest prompt, and what its stages compute beside
/// it or have computed and not sent yet.
double ServeMemory::cachedTokens(int64_t sequences) const {
  const RequestMix &mix = context.mix;
  const double n = double(sequences);
  if (role == PoolRole::Prefill)
    return double(mix.longestInput + (1 + layout.pp) * layout.stepTokens);
  return std::max(n * mix.decodeContext + 3 * std::sqrt(n) * mix.residentDeviation, double(mix.longest));
}

/// On each of the cp devices, a sequence ends in a page that is half full.
double ServeMemory::cacheBytes(const RankShare &share, int64_t sequences) const {
  const ModelSpec &spec = context.request.spec;
  const double n = double(sequences), cp = double(layout.cp);
  const double each = (cachedTokens(sequences) + n * cp * Limits::page / 2) / n;
  const double layers = double(std::min(share.layerCount(), spec.layerCount() - spec.encoderLayers));
  const double bytes = context.model.overLayers(
      share.attentionLayers, [&](const AttentionSizes &sizes) { return cachedBytes(sizes, int64_t(std::ceil(each))); });
  return n * bytes * layers / double(share.layerCount()) / cp;
}

/// Of `tokens` in one layer, on a rank.
double ServeMemory::cachedBytes(const AttentionSizes &sizes, int64_t tokens) const {
  const Checked row = cacheBytesOfLayer(sizes, context.request.cache);
  return (row * sizes.within(tokens)).real() / double(std::min(layout.tp, sizes.cachedHeads()));
}

/// Values that a row keeps at once in the widest part of a layer.
static double widestRow(const ModelShare &model) {
  const double attention = model.maxOfLayers([](const AttentionSizes &sizes) {
    const int64_t written = sizes.isLatent() ? sizes.heads : sizes.heads + sizes.keyHeads;
    return written * (sizes.key + sizes.value);
  });
  return std::max(attention, model.spec.mlp ? 3 * double(model.spec.mlp->inter) : 0);
}

ServeMemory::Buffers ServeMemory::buffers(int64_t stepTokens, int64_t sequences, bool isLast) const {
  const PlanRequest &request = context.request;
  const ModelSpec &spec = request.spec;
  const DeviceRates &rates = context.rates;
  const double tp = double(layout.tp), hidden = double(spec.hidden);
  const int64_t tokens = 1 + request.workload.serve.draftTokens;
  const int64_t ofGroup = std::max(stepTokens, (sequences + layout.pp - 1) / layout.pp * tokens);
  const int64_t rows = (ofGroup + layout.cp - 1) / layout.cp;
  Buffers b;
  b.activations = double(rows) * rates.activationBytes * (4 * hidden + widestRow(context.model) / tp);
  const double outputRows = double(sequences * tokens) / (tp * double(layout.cp));
  b.logits = isLast ? outputRows * double(spec.vocab) * 4 : 0;
  if (isLast && layout.vocab > 1) {
    // Rows of all as they came and without gaps, then logits of them as they go and come.
    const double shared = double(layout.vocab) * hidden * rates.activationBytes, parts = double(spec.vocab) * 4;
    b.logits += outputRows * (shared + std::max({shared, parts, 2 * parts - shared}));
  }
  if (layout.cp > 1 && stepTokens > 0) // the keys of one layer, of a step's sequences
    b.gathered = double(std::max(context.mix.longestInput, stepTokens)) *
                 context.model.maxOfLayers([&](const AttentionSizes &sizes) { return cachedBytes(sizes, 1); });
  if (!spec.moe)
    return b;
  int64_t routedTokens = (rows * layout.etp + layout.tp - 1) / layout.tp;
  if (layout.overlap)
    routedTokens = (routedTokens + 1) / 2;
  const RoutedLayer layer = routedLayer(context, layout, routedTokens, request.workload.memoryRouting());
  const RoutedBytes &routed = layer.bytes;
  // Of each choice of the rows that came to it, a rank gets a part of the sum from each other one of its group.
  const double parts = layer.peak.rows.real() * (1 - 1 / double(layout.etp)) * hidden * double(byteWidth(DType::F32));
  b.dispatch = routed.dispatch + routed.combine + parts;
  b.second = routed.second + (layout.overlap ? parts : 0);
  b.padding = routed.padding;
  b.rows = routed.compute - routed.padding;
  return b;
}

std::optional<Limits> ServeMemory::compiledLimits(int64_t sequences) const {
  if (!compiles)
    return std::nullopt;
  Limits limits;
  limits.stepTokens = std::max<int64_t>(1, layout.stepTokens);
  limits.maxSequences = sequences;
  limits.maxContext = context.mix.longest;
  return limits;
}

std::optional<RankMemory> ServeMemory::certificate(int64_t sequences) const {
  std::optional<Limits> limits = compiledLimits(sequences);
  if (!limits)
    return std::nullopt;
  const PlanRequest &request = context.request;
  PlanOptions options;
  options.compute = request.compute;
  options.cache = request.cache;
  options.mustFit = false;
  options.layout = layout;
  Expected<Plan> plan = planHost(request.spec, request.topology, *limits, options);
  return plan ? std::optional(certificateOf(request.spec, *plan, request.topology.device)) : std::nullopt;
}

bool ServeMemory::fits(int64_t sequences) const {
  if (compiles) {
    std::optional<RankMemory> memory = certificate(sequences);
    return memory && memory->fits();
  }
  const double capacity = double(context.request.topology.device.memory.value.value);
  for (const RankShare &share : stages)
    if (fixedBytes(share) + cacheBytes(share, sequences) +
            buffers(layout.stepTokens, sequences, &share == &stages.back()).total() >
        capacity)
      return false;
  return true;
}

int64_t ServeMemory::maxFittingSequences() const {
  if (role == PoolRole::Prefill)
    return fits(1) ? 1 : 0;
  return largest(int64_t(1) << 20, [&](int64_t sequences) { return fits(sequences); });
}

int64_t ServeMemory::chooseStepTokens() const {
  double left = double(context.request.topology.device.memory.value.value);
  for (const RankShare &share : stages)
    left = std::min(left, double(context.request.topology.device.memory.value.value) - fixedBytes(share));
  int64_t tokens = compiles ? Limits().stepTokens : std::min<int64_t>(8192 * layout.cp, 1 << 20);
  while (tokens > 64 * layout.cp && buffers(tokens, 1, true).total() > left / 4)
    tokens /= 2;
  return tokens;
}

std::vector<RankMemory> ServeMemory::ranks(int64_t sequences) const {
  if (std::optional<RankMemory> memory = certificate(sequences))
    return {*memory};
  std::vector<RankMemory> classes;
  const int64_t each = layout.tp * layout.cp * layout.dp;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const RankShare &share = stages[stage];
    RankMemory memory;
    memory.stage = int64_t(stage);
    memory.count = each;
    memory.ranks = rankRange(int64_t(stage) * each, each);
    if (role != PoolRole::Both) {
      memory.pool = role == PoolRole::Prefill ? "prefill" : "decode";
      memory.ranks += " (" + memory.pool + ")";
    }
    memory.parameters = int64_t(sum(share.parameters));
    memory.capacity = context.request.topology.device.memory.value;
    auto add = [&](const std::string &name, double bytes) {
      if (bytes > 0)
        memory.parts.push_back({name, wholeBytes(bytes)});
    };
    for (size_t i = 0; i < weightModuleCount; ++i)
      add(nameOf(WeightModule(i)), share.bytes[i]);
    const Buffers b = buffers(layout.stepTokens, sequences, stage + 1 == stages.size());
    add("cache", cacheBytes(share, sequences));
    add("activations", b.activations);
    add("logits", b.logits);
    add("dispatch and combine", b.dispatch);
    add("second communication buffer", b.second);
    add("rows of experts", b.rows);
    add("alignment padding", b.padding);
    add("gathered keys", b.gathered);
    add("reserve", reserve);
    classes.push_back(std::move(memory));
  }
  return classes;
}

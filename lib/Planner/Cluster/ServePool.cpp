//===- ServePool.cpp - Devices that compute prompts, generate tokens, or both -===//
//
// A pool's steps are as long as its layout or its memory says; from their times follow those of a request. Its ranks
// that share no experts are replicas, which is where a layout's groups are checked: those of experts, and those that
// divide embedding and head. Of two pools the cache of a request goes from one to the other, in part beside the steps.
//
//===----------------------------------------------------------------------===//

#include "ServePool.h"

#include "k2c/Planner/TensorParts.h"
#include <algorithm>
#include <cmath>

using namespace k2c;
using namespace k2c::planner;

static ParallelLayout withStep(const RequestModel &context, ParallelLayout layout, PoolRole role) {
  layout.prefill = nullptr;
  if (layout.stepTokens == 0 && role != PoolRole::Decode)
    layout.stepTokens = ServeMemory(context, layout, role).chooseStepTokens();
  return layout;
}

ServePool::ServePool(const RequestModel &context, const ParallelLayout &asked, PoolRole role)
    : layout(withStep(context, asked, role)), role(role), memory(context, layout, role),
      steps(context.request, context.model, context.rates, context.links, layout), context(context) {
  if (context.request.spec.mtpLayers > 0)
    drafts = context.mix.tokensOfStep;
  if (role == PoolRole::Decode)
    return;
  prefill = steps.time(promptLoad());
  promptRate = double(ranks()) * double(layout.stepTokens) / steps.period(prefill);
  const double fill = fillSeconds(1, 1 / serviceSeconds());
  ownMean = ownSeconds(context.mix.input, 1) + fill;
  ownSlow = ownSeconds(context.mix.slowInput, 1) + fill;
  meanWindow = windowOf(context.mix.input), slowWindow = windowOf(context.mix.slowInput);
}

StepLoad ServePool::promptLoad() const {
  const double tokens = double(layout.stepTokens), each = std::min(context.mix.computed, tokens);
  return {tokens / each, each, std::max(0.0, context.mix.promptContext - (each + 1) / 2),
          context.request.spec.encoderLayers > 0};
}

/// Full steps of one prompt, each after half of the prompt on average, and what is left.
double ServePool::ownSeconds(double input, double fullness) const {
  const double hit = context.request.workload.serve.cacheHitRate;
  const double tokens = std::max(1.0, (1 - hit) * input), each = std::min(tokens, double(layout.stepTokens));
  if (each < double(layout.stepTokens)) {
    const double rows = each + fullness * (double(layout.stepTokens) - each);
    return fullness >= 1 ? prefill.seconds
                         : steps.time({rows / each, each, hit * input, context.request.spec.encoderLayers > 0}).seconds;
  }
  const StepTime chunk =
      steps.time({1, each, std::max(0.0, hit * input + (tokens - each) / 2), context.request.spec.encoderLayers > 0});
  return chunk.seconds + (tokens / each - 1) * steps.chunkPeriod(chunk);
}

ServePool::Window ServePool::windowOf(double input) const {
  const double hit = context.request.workload.serve.cacheHitRate;
  const double tokens = std::max(1.0, (1 - hit) * input), each = std::min(tokens, double(layout.stepTokens));
  const bool isShort = tokens < double(layout.stepTokens);
  const StepTime chunk = isShort ? prefill
                                 : steps.time({1, each, std::max(0.0, hit * input + (tokens - each) / 2),
                                               context.request.spec.encoderLayers > 0});
  const double step = steps.period(chunk);
  const double layers = std::ceil(double(context.request.spec.layerCount()) / double(layout.pp));
  Window window;
  window.seconds = tokens / each * step;
  window.first = hit > 0 ? 0 : step / layers;
  window.last = each / std::max(input, each) / layers;
  for (size_t tier = 0; tier < context.links.topology.tiers.size() && chunk.seconds > 0; ++tier) {
    double bytes = 0;
    for (const PartTime &part : chunk.parts)
      bytes += part.links.bytes[tier];
    const double rate = context.links.topology.tiers[tier].effective().value;
    window.busy[tier] = std::min(1.0, bytes / rate / chunk.seconds);
  }
  return window;
}

double ServePool::fillSeconds(double fullness, double rate) const {
  const double own = context.mix.computed, others = std::max(0.0, fullness * (double(layout.stepTokens) - own));
  return others / own / (2 * rate);
}

Status ServePool::checkMemory() const {
  if (memory.maxFittingSequences() > 0)
    return Status::success();
  const std::vector<RankMemory> ranks = memory.ranks(1);
  const auto full = std::max_element(ranks.begin(), ranks.end(),
                                     [](const RankMemory &a, const RankMemory &b) { return a.total() < b.total(); });
  const int64_t longest = role == PoolRole::Prefill ? context.mix.longestInput : context.mix.longest;
  return Error{"memory",
               "ranks " + full->ranks + " need " + format(full->total()) + " for one sequence of " +
                   std::to_string(longest) + " tokens, a device has " + format(full->capacity),
               "use more devices (ep, tp, pp or cp), or shorten the workload's sequences"};
}

/// Embedding and head are whole on each rank, divided by tp, or divided among all ranks of a stage.
static Status checkVocabulary(const ModelSpec &spec, const ParallelLayout &layout) {
  const int64_t ranks = layout.devicesOfStage();
  if (layout.vocab != 1 && layout.vocab != ranks)
    return Error{"vocab",
                 "is " + std::to_string(layout.vocab) + ", and embedding and head are divided among all ranks of a " +
                     "stage, tp x cp x dp = " + std::to_string(ranks),
                 "use vocab=" + std::to_string(ranks) + ", or leave it out"};
  if (layout.vocab > 1 && spec.encoderLayers > 0)
    return Error{"vocab", "tables of encoder-decoder models are not divided", "leave it out"};
  return checkVocabularyParts(spec, layout.vocab);
}

Expected<ParallelLayout> planner::asReplicas(const ModelSpec &spec, ParallelLayout layout) {
  const int64_t shared = layout.tp * layout.cp, group = spec.moe ? layout.ep * layout.etp : shared;
  if (spec.encoderLayers > 0 && layout.pp > 1)
    return Error{"pp", "stages of encoder-decoder models are not planned", "use pp=1"};
  const int64_t copies = shared * layout.dp / group;
  if (copies > 1 && layout.dp % copies)
    return Error{"ep",
                 "ep x etp = " + std::to_string(group) +
                     " ranks share the experts, but tp x cp = " + std::to_string(shared) + " ranks share the attention",
                 "choose ep x etp as a multiple of tp x cp"};
  const bool isDivided = layout.vocab == layout.devicesOfStage();
  layout.dp /= copies;
  layout.replicas *= copies;
  if (isDivided)
    layout.vocab = layout.devicesOfStage();
  if (Status status = checkVocabulary(spec, layout); !status)
    return status.takeError();
  return layout;
}

/// Systems send a layer's keys as soon as they are computed (Splitwise, Patel et al., 2024, section 4.2; Mooncake, Qin
/// et al., 2024, "layer-wise prefill"): what is cached already from the start, the first layer's after it, the last
/// layer's when nothing computes any more. A tier that carries the steps' own exchanges has the rest of the time.
static double hiddenSeconds(const Handover &whole, const ServePool::Window &window, int tier) {
  const double free = window.seconds * (1 - window.busy[size_t(tier)]) - window.first;
  return std::clamp(free, 0.0, whole.seconds * (1 - window.last));
}

Handover planner::handoverOf(const RequestModel &context, const ServePool &pool, const ParallelLayout &decode,
                             bool slow, bool far) {
  const PlanRequest &request = context.request;
  const ParallelLayout &prefill = pool.layout;
  const double input = slow ? context.mix.slowInput : context.mix.input;
  const std::vector<double> layers = context.model.layersWith({request.spec.encoderLayers, request.spec.layerCount()});
  // Every tensor-parallel rank beyond the key heads holds a copy.
  const double bytes = context.model.overLayers(layers, [&](const AttentionSizes &sizes) {
    const Checked row = cacheBytesOfLayer(sizes, request.cache);
    return (row * sizes.within(int64_t(std::ceil(input)))).real() * double(decode.tp) /
           double(std::min(decode.tp, sizes.cachedHeads()));
  });
  auto devices = [](const ParallelLayout &l) { return double(l.tp * l.cp * l.pp); };
  Handover handover;
  handover.bytes = bytes;
  const double busiest = handover.bytes / std::min(devices(prefill), devices(decode));
  const int64_t span = far ? request.topology.ranks() : prefill.devices() + decode.devices();
  handover.busiest = context.links.send(double(span - 1), busiest);
  handover.seconds = context.links.seconds(handover.busiest);
  const int tier = context.links.slowest(handover.busiest);
  if (tier >= 0 && request.workload.serve.cacheTransfer == CacheTransfer::Layers)
    handover.hidden = hiddenSeconds(handover, slow ? pool.slowWindow : pool.meanWindow, tier);
  return handover;
}

//===- Remedy.cpp - The cheapest change that makes a plan hold ----------------===//
//
// Changes are tried one at a time in the order of what they cost, and each is planned, not judged by a rule:
//
//   serving    an even share of tokens in memory (an assumption), a shorter prompt step, another layout of as many
//              devices, the cache in FP8, weights as published, more of the devices that are there, fewer sequences
//   training   an even share, then of recomputation, sharded states, micro-batch and offload the fewest keys that do,
//              of these the fastest; another layout
//
// Where none of them does alone, all are made together and taken back one by one as long as the plan still holds.
// Other layouts are those of the search space, nearest first: by the factors between their ways and those asked for.
// Layouts that do not divide have no other remedy. A search has looked at layouts already, so that only changes of
// the rest are remedies of it.
//
//===----------------------------------------------------------------------===//

#include "Ranking.h"
#include "Space.h"
#include "Variant.h"

#include <algorithm>
#include <cmath>
#include <functional>

using namespace k2c;
using namespace k2c::planner;

std::optional<ClusterPlan> planner::accepted(const PlanRequest &asked, const Variant &variant) {
  Expected<ClusterPlan> plan = evaluate(variant.of(asked), variant.layout);
  return plan ? std::optional(std::move(*plan)) : std::nullopt;
}

namespace {

/// The ways of `from` with all else of `layout`; a pipeline of one stage has no schedule.
ParallelLayout withWays(ParallelLayout layout, const ParallelLayout &from) {
  layout.tp = from.tp, layout.ep = from.ep, layout.etp = from.etp, layout.pp = from.pp;
  layout.dp = from.dp, layout.cp = from.cp, layout.sp = from.sp, layout.replicas = from.replicas;
  layout.redundantExperts = from.redundantExperts;
  layout.layers.clear();
  layout.microbatches = 0;
  if (layout.ep == 1)
    layout.overlap = false;
  return layout;
}

ParallelLayout withoutSchedule(ParallelLayout layout) {
  layout.schedule = PipelineKind::OneFOneB;
  layout.chunks = 1;
  layout.overlap = false;
  return layout;
}

/// Sum of the factors between two layouts' ways, in doublings.
double distance(const ParallelLayout &a, const ParallelLayout &b) {
  double sum = 0;
  for (auto [one, other] : {std::pair{a.tp, b.tp}, std::pair{a.ep, b.ep}, std::pair{a.etp, b.etp},
                            std::pair{a.pp, b.pp}, std::pair{a.cp, b.cp}, std::pair{a.devices(), b.devices()}})
    sum += std::abs(std::log2(double(one) / double(std::max<int64_t>(1, other))));
  return sum;
}

/// Ways of the search space, each with the other keys of `layout`.
std::vector<ParallelLayout> candidates(const PlanRequest &request, const ParallelLayout &layout, int64_t devices) {
  std::vector<ParallelLayout> space;
  if (request.phase == PlanPhase::Train) {
    for (const ParallelLayout &ways : trainingWays(request, devices)) {
      space.push_back(withWays(layout, ways));
      if (layout.schedule != PipelineKind::OneFOneB || ways.pp == 1)
        space.push_back(withoutSchedule(space.back()));
    }
    return space;
  }
  for (ParallelLayout ways : replicaSpace(request)) {
    const int64_t most = devices / ways.devices();
    if (ways.overlap || most == 0)
      continue;
    ways.replicas = std::clamp<int64_t>(layout.devicesOfReplica() * layout.replicas / ways.devices(), 1, most);
    space.push_back(withWays(layout, ways));
    if (ways.replicas == most)
      continue;
    ways.replicas = most;
    space.push_back(withWays(layout, ways));
  }
  return space;
}

/// Whether a layout is accepted, without its tables.
bool holds(const RequestModel &context, const ParallelLayout &layout, PipelineCache &cache) {
  if (context.request.phase == PlanPhase::Train)
    return scoreTrain(context, layout, cache, /*simulates=*/false) && evaluateTrain(context, layout);
  const double capacity = double(context.request.topology.device.memory.value.value);
  if (!layout.prefill && minServingBytes(context, layout).value_or(INFINITY) > capacity)
    return false;
  return bool(evaluateServe(context, layout));
}

/// The nearest of `space` that is accepted takes the place of `layout`.
bool takeNearest(const RequestModel &context, std::vector<ParallelLayout> space, ParallelLayout &layout) {
  std::stable_sort(space.begin(), space.end(), [&](const ParallelLayout &a, const ParallelLayout &b) {
    return distance(a, layout) < distance(b, layout);
  });
  PipelineCache cache;
  const auto found =
      std::find_if(space.begin(), space.end(), [&](const ParallelLayout &each) { return holds(context, each, cache); });
  if (found == space.end())
    return false;
  layout = *found;
  return true;
}

} // namespace

bool planner::moveToNearest(const PlanRequest &asked, Variant &variant, int64_t devices) {
  const PlanRequest request = variant.of(asked);
  const RequestModel context(request);
  if (!variant.layout.prefill)
    return takeNearest(context, candidates(request, variant.layout, devices), variant.layout);
  // Of two pools one is changed: that of tokens, else that of prompts.
  ParallelLayout tokens = variant.layout;
  tokens.prefill = nullptr;
  const ParallelLayout prompts = *variant.layout.prefill;
  auto both = [&](const ParallelLayout &first, const ParallelLayout &second) {
    ParallelLayout layout = first;
    layout.prefill = std::make_shared<const ParallelLayout>(second);
    return layout;
  };
  std::vector<ParallelLayout> space;
  if (devices > prompts.devices())
    for (const ParallelLayout &each : candidates(request, tokens, devices - prompts.devices()))
      space.push_back(both(each, prompts));
  if (takeNearest(context, std::move(space), variant.layout))
    return true;
  space.clear();
  if (devices > tokens.devices())
    for (const ParallelLayout &each : candidates(request, prompts, devices - tokens.devices()))
      space.push_back(both(tokens, each));
  return takeNearest(context, std::move(space), variant.layout);
}

namespace {

/// Tokens of a prompt step, of the pool that computes prompts.
int64_t stepOf(const ParallelLayout &layout) { return layout.prefill ? layout.prefill->stepTokens : layout.stepTokens; }

void setStep(ParallelLayout &layout, int64_t tokens) {
  if (!layout.prefill) {
    layout.stepTokens = tokens;
    return;
  }
  ParallelLayout prefill = *layout.prefill;
  prefill.stepTokens = tokens;
  layout.prefill = std::make_shared<const ParallelLayout>(prefill);
}

/// Changes a variant; false: there is nothing to change.
using Change = std::function<bool(Variant &)>;

class Changes {
public:
  Changes(const PlanRequest &asked, const ParallelLayout &layout, LayoutOrigin origin)
      : asked(asked), start(asked, layout), origin(origin), room(asked.topology.ranks()) {}

  std::optional<Variant> cheapest() const {
    const bool divides = bool(checkLayout(asked, start.layout));
    if (divides)
      for (const Change &change : alone())
        if (Variant changed = start; change(changed) && accepted(asked, changed))
          return changed;
    if (Variant changed = start; !divides && moveToNearest(asked, changed, room) && accepted(asked, changed))
      return changed;
    return together();
  }

private:
  static bool evenRouting(Variant &v) {
    const bool changes = v.workload.memoryRouting() != Routing::Mean;
    v.workload.peakRouting = Routing::Mean;
    return changes;
  }

  bool narrowCache(Variant &v) const {
    const bool changes = asked.topology.device.fp8 && v.cache != DType::F8E4M3;
    if (changes)
      v.cache = DType::F8E4M3;
    return changes;
  }

  bool publishedWeights(Variant &v) const {
    const bool changes = v.weights != WeightFormat::Published;
    v.weights = WeightFormat::Published;
    return changes;
  }

  /// The largest half, quarter, ... of the step that is accepted.
  bool shorterStep(Variant &v) const {
    const int64_t given = stepOf(v.layout);
    for (int64_t step = given / 2; step >= 64; step /= 2) {
      setStep(v.layout, step);
      if (accepted(asked, v))
        return true;
    }
    return false;
  }

  /// As many as fit.
  bool fewerSequences(Variant &v) const {
    if (!v.workload.serve.batch)
      return false;
    Variant most = v;
    most.workload.serve.batch.reset();
    const std::optional<ClusterPlan> plan = accepted(asked, most);
    const std::optional<double> batch = plan ? plan->figure("batch") : std::nullopt; // none of a prefill pool
    if (!batch)
      return false;
    v.workload.serve.batch = std::min(*v.workload.serve.batch, int64_t(*batch));
    return true;
  }

  /// What a training layout keeps and where, the fewest keys that do, of these the fastest.
  bool thriftier(Variant &v) const {
    const PlanRequest request = v.of(asked);
    const RequestModel context(request);
    PipelineCache cache;
    const ParallelLayout given = v.layout;
    std::pair<int, double> best = {INT32_MAX, 0};
    for (const ParallelLayout &next : thrifty(given)) {
      const int keys = (next.recompute != given.recompute) + (next.zero != given.zero) +
                       (next.offload != given.offload) + (next.microbatchSize != given.microbatchSize);
      if (keys == 0 || keys > best.first)
        continue;
      const Expected<TrainScore> score = scoreTrain(context, next, cache, /*simulates=*/false);
      if (score && std::pair(keys, -score->tokensPerSecond) < best) {
        best = {keys, -score->tokensPerSecond};
        v.layout = next;
      }
    }
    return best.first < INT32_MAX;
  }

  /// The layout with all that keeps no more than it does.
  std::vector<ParallelLayout> thrifty(const ParallelLayout &layout) const {
    std::vector<ParallelLayout> all;
    for (RecomputeSet set : recomputeSets(asked.spec))
      for (Zero zero : {Zero::None, Zero::Os, Zero::OsG, Zero::OsGParams})
        for (Offload offload : {Offload::None, Offload::Activations, Offload::Optimizer, Offload::Both})
          for (int64_t size = layout.microbatchSize; size >= 1; size /= 2) {
            const bool offloadsMore = (uint8_t(offload) & uint8_t(layout.offload)) == uint8_t(layout.offload);
            if (set < layout.recompute || zero < layout.zero || !offloadsMore)
              continue;
            ParallelLayout next = layout;
            next.recompute = set, next.zero = zero, next.offload = offload;
            if (size != layout.microbatchSize)
              next.microbatches = 0;
            next.microbatchSize = size;
            all.push_back(next);
          }
    return all;
  }

  bool nearest(Variant &v, int64_t devices) const { return moveToNearest(asked, v, devices); }

  std::vector<Change> alone() const {
    if (origin == LayoutOrigin::Searched)
      return {};
    if (asked.phase == PlanPhase::Train)
      return {evenRouting, [this](Variant &v) { return thriftier(v); },
              [this](Variant &v) { return nearest(v, room); }};
    return {evenRouting,
            [this](Variant &v) { return shorterStep(v); },
            [this](Variant &v) { return nearest(v, std::min(room, start.layout.devices())); },
            [this](Variant &v) { return narrowCache(v); },
            [this](Variant &v) { return publishedWeights(v); },
            [this](Variant &v) { return nearest(v, room); },
            [this](Variant &v) { return fewerSequences(v); }};
  }

  /// All changes, less those that can be taken back.
  std::optional<Variant> together() const {
    Variant changed = start;
    evenRouting(changed);
    if (asked.phase == PlanPhase::Train) {
      if (origin != LayoutOrigin::Searched)
        changed.layout = thrifty(start.layout).back();
    } else {
      narrowCache(changed);
      publishedWeights(changed);
      setStep(changed.layout, 0);
    }
    if (!moveToNearest(asked, changed, room)) {
      changed.workload.serve.batch.reset();
      if (!start.workload.serve.batch || !moveToNearest(asked, changed, room))
        return std::nullopt;
      changed.workload.serve.batch = start.workload.serve.batch;
      fewerSequences(changed);
    }
    if (!accepted(asked, changed))
      return std::nullopt;
    takeBack(changed, [&](Variant &v) { v.workload.peakRouting = start.workload.peakRouting; });
    takeBack(changed, [&](Variant &v) { v.cache = start.cache; });
    takeBack(changed, [&](Variant &v) { v.weights = start.weights; });
    takeBack(changed, [&](Variant &v) { setStep(v.layout, stepOf(start.layout)); });
    takeBack(changed, [&](Variant &v) { v.layout.offload = start.layout.offload; });
    takeBack(changed, [&](Variant &v) { v.layout.zero = start.layout.zero; });
    takeBack(changed, [&](Variant &v) { v.layout.recompute = start.layout.recompute; });
    takeBack(changed, [&](Variant &v) { v.layout.microbatchSize = start.layout.microbatchSize; });
    return changed;
  }

  template <class Undo> void takeBack(Variant &changed, const Undo &undo) const {
    Variant without = changed;
    undo(without);
    if (accepted(asked, without))
      changed = std::move(without);
  }

  const PlanRequest &asked;
  const Variant start;
  const LayoutOrigin origin;
  const int64_t room; ///< devices of the topology
};

} // namespace

std::optional<Variant> planner::cheapestChange(const PlanRequest &asked, const ParallelLayout &layout,
                                               LayoutOrigin origin) {
  return Changes(asked, layout, origin).cheapest();
}

//===- Remedy.cpp - The cheapest change that makes a plan hold ----------------===//
//
// Changes are tried one at a time in the order of what they cost, and each is planned, not judged by a rule:
//
//   serving    an even share of tokens in memory (an assumption), a shorter prompt step, another layout of as many
//              devices, the cache in FP8, weights as published, more of the devices that are there, fewer sequences
//   training   an even share, then of recomputation, sharded states, micro-batch and offload the fewest keys that do,
//              of these the fastest; another layout
//
// Where none of them does alone, all are made together and taken back one by one as long as the plan still holds, what
// users pay most for first: of training what slows it most, an even share, which is an assumption, last. Layouts that
// do not divide have no other remedy than another one (NearestLayout.cpp). A search has looked at layouts already: of
// it the rest is changed, each time with the search repeated.
//
//===----------------------------------------------------------------------===//

#include "Ranking.h"
#include "Space.h"
#include "Variant.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

using namespace k2c;
using namespace k2c::planner;

std::optional<ClusterPlan> planner::accepted(const PlanRequest &asked, const Variant &variant) {
  Expected<ClusterPlan> plan = evaluate(variant.of(asked), variant.layout);
  return plan ? std::optional(std::move(*plan)) : std::nullopt;
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
    if (origin == LayoutOrigin::Searched)
      return cheapestOfSearch();
    const bool divides = bool(checkLayout(asked, start.layout));
    if (divides)
      for (const Change &change : alone())
        if (Variant changed = start; change(changed) && accepted(asked, changed))
          return changed;
    if (!divides) {
      Variant changed = start;
      changed.layout.recompute = recomputedOf(asked.spec, start.layout.recompute);
      if (accepted(asked, changed) || (moveToNearest(asked, changed, room) && accepted(asked, changed)))
        return changed;
    }
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

  /// As many as the best of `layouts` holds.
  bool fewerSequences(Variant &v, const std::vector<ParallelLayout> &layouts) const {
    if (!v.workload.serve.batch)
      return false;
    Variant open = v;
    open.workload.serve.batch.reset();
    open.workload.serve.arrivalRate.reset();
    PlanRequest request = open.of(asked);
    request.objective = Objective::Throughput; // as many as fit
    const RequestModel context(request);
    const double capacity = double(request.topology.device.memory.value.value);
    double most = 0;
    for (const ParallelLayout &layout : layouts)
      if (layout.prefill || minServingBytes(context, layout).value_or(INFINITY) <= capacity)
        if (const Expected<ClusterPlan> plan = evaluateServe(context, layout))
          most = std::max(most, plan->figure("batch").value_or(0)); // none of a prefill pool
    v.workload.serve.batch = std::min(*v.workload.serve.batch, int64_t(most));
    return most > 0;
  }

  /// What a training layout keeps and where, the fewest keys that do, of these the fastest.
  bool thriftier(Variant &v) const {
    const PlanRequest request = v.of(asked);
    const RequestModel context(request);
    const ParallelLayout given = v.layout;
    std::pair<int, double> best = {INT32_MAX, 0};
    for (const ParallelLayout &next : thrifty(given)) {
      const int keys = (next.recompute != given.recompute) + (next.zero != given.zero) +
                       (next.offload != given.offload) + (next.microbatchSize != given.microbatchSize);
      if (keys == 0 || keys > best.first)
        continue;
      const Expected<ClusterPlan> plan = evaluateTrain(context, next);
      if (plan && std::pair(keys, -tokensPerSecond(*plan)) < best) {
        best = {keys, -tokensPerSecond(*plan)};
        v.layout = next;
      }
    }
    return best.first < INT32_MAX;
  }

  /// Sets that compute all that `set` does, itself first, a whole layer last.
  std::vector<RecomputeSet> setsWith(RecomputeSet set) const {
    std::vector<RecomputeSet> sets = {set};
    for (RecomputeSet each : recomputeSets(asked.spec)) {
      bool has = set < RecomputeSet::Layer || each == RecomputeSet::Layer;
      for (RecomputeSet part : {RecomputeSet::Norms, RecomputeSet::UpProjections, RecomputeSet::Activations})
        has &= recomputes(each, part) || !recomputes(set, part);
      if (has && each != set)
        sets.push_back(each);
    }
    return sets;
  }

  /// The layout with all that keeps no more than it does.
  std::vector<ParallelLayout> thrifty(const ParallelLayout &layout) const {
    std::vector<ParallelLayout> all;
    for (RecomputeSet set : setsWith(recomputedOf(asked.spec, layout.recompute)))
      for (Zero zero : {Zero::None, Zero::Os, Zero::OsG, Zero::OsGParams})
        for (Offload offload : {Offload::None, Offload::Activations, Offload::Optimizer, Offload::Both})
          for (int64_t size = layout.microbatchSize; size >= 1; size /= 2) {
            const bool offloadsMore = (uint8_t(offload) & uint8_t(layout.offload)) == uint8_t(layout.offload);
            if (zero < layout.zero || !offloadsMore)
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

  //===--------------------------------------------------------------------===//
  // Of a search
  //===--------------------------------------------------------------------===//

  /// Makes the variant's layout the best of its search.
  bool takeBest(Variant &v) const {
    const Expected<PlanSearch> found = search(v.of(asked));
    if (found)
      v.layout = found->best.layout;
    return bool(found);
  }

  std::vector<Change> ofSearch() const {
    if (asked.phase == PlanPhase::Train)
      return {evenRouting};
    return {evenRouting, [this](Variant &v) { return narrowCache(v); },
            [this](Variant &v) { return publishedWeights(v); },
            [this](Variant &v) { return fewerSequences(v, servingSpace(v.of(asked))); }};
  }

  std::optional<Variant> cheapestOfSearch() const {
    size_t changes = 0;
    for (const Change &change : ofSearch()) {
      Variant changed = start;
      if (!change(changed))
        continue;
      if (takeBest(changed))
        return changed;
      ++changes;
    }
    return changes > 1 ? togetherOfSearch() : std::nullopt;
  }

  /// All changes, of which fewer sequences only where they are needed, less those that can be taken back.
  std::optional<Variant> togetherOfSearch() const {
    Variant changed = start;
    evenRouting(changed), narrowCache(changed), publishedWeights(changed);
    if (!takeBest(changed) && !(fewerSequences(changed, servingSpace(changed.of(asked))) && takeBest(changed)))
      return std::nullopt;
    auto takeBackOne = [&](bool differs, const auto &undo) {
      Variant without = changed;
      undo(without);
      if (differs && takeBest(without))
        changed = std::move(without);
    };
    takeBackOne(changed.weights != start.weights, [&](Variant &v) { v.weights = start.weights; });
    takeBackOne(changed.cache != start.cache, [&](Variant &v) { v.cache = start.cache; });
    takeBackOne(changed.workload.memoryRouting() != start.workload.memoryRouting(),
                [&](Variant &v) { v.workload.peakRouting = start.workload.peakRouting; });
    return changed;
  }

  //===--------------------------------------------------------------------===//
  // Of a layout
  //===--------------------------------------------------------------------===//

  std::vector<Change> alone() const {
    if (asked.phase == PlanPhase::Train)
      return {evenRouting, [this](Variant &v) { return thriftier(v); },
              [this](Variant &v) { return nearest(v, room); }};
    return {evenRouting,
            [this](Variant &v) { return shorterStep(v); },
            [this](Variant &v) { return nearest(v, std::min(room, start.layout.devices())); },
            [this](Variant &v) { return narrowCache(v); },
            [this](Variant &v) { return publishedWeights(v); },
            [this](Variant &v) { return nearest(v, room); },
            [this](Variant &v) { return fewerSequences(v, {v.layout}); }};
  }

  /// All changes, less those that can be taken back.
  std::optional<Variant> together() const {
    Variant changed = start;
    evenRouting(changed);
    if (asked.phase == PlanPhase::Train) {
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
      fewerSequences(changed, {changed.layout});
    }
    if (!accepted(asked, changed))
      return std::nullopt;
    takeBack(changed, {[this](Variant &v) { return undo(v.weights, start.weights); }});
    takeBack(changed, {[this](Variant &v) { return undo(v.cache, start.cache); }});
    takeBack(changed,
             {[this](Variant &v) { return undo(v.layout.zero, start.layout.zero); },
              [this](Variant &v) { return undo(v.layout.offload, start.layout.offload); },
              [this](Variant &v) { return undo(v.layout.recompute, recomputedOf(asked.spec, start.layout.recompute)); },
              [this](Variant &v) { return undo(v.layout.microbatchSize, start.layout.microbatchSize); }});
    takeBack(changed, {[this](Variant &v) {
               const bool differs = stepOf(v.layout) != stepOf(start.layout);
               setStep(v.layout, stepOf(start.layout));
               return differs;
             }});
    takeBack(changed, {[this](Variant &v) { return undo(v.workload.peakRouting, start.workload.peakRouting); }});
    return changed;
  }

  template <class T> static bool undo(T &now, const T &before) { return std::exchange(now, before) != before; }

  /// Takes those of `undos` back under which the plan holds, each time the one that gives most tokens/s.
  void takeBack(Variant &changed, const std::vector<Change> &undos) const {
    while (true) {
      std::optional<Variant> best;
      double most = 0;
      for (const Change &undo : undos) {
        Variant without = changed;
        const std::optional<ClusterPlan> plan = undo(without) ? accepted(asked, without) : std::nullopt;
        if (plan && (!best || tokensPerSecond(*plan) > most)) {
          most = tokensPerSecond(*plan);
          best = std::move(without);
        }
      }
      if (!best)
        return;
      changed.workload = best->workload, changed.weights = best->weights, changed.cache = best->cache;
      changed.layout = best->layout;
    }
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

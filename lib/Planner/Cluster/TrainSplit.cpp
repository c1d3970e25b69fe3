//===- TrainSplit.cpp - How many layers each stage of a pipeline gets ---------===//
//
// A pipeline is as fast as its slowest rank. The head costs as much as a few layers, so that as many layers on every
// stage make all ranks wait for the last one. From stages that are as even as they can be, layers move one by one from
// the slowest rank to the one that has least to do, as long as the slowest becomes faster; of ranks that have as much
// to do, those with fewer layers come first, since the first ranks keep activations of most micro-batches.
//
//     61 layers and a head of 2.3 layers on 16 stages:  4x13+3x3, the last takes 5.3  ->  4x15+1, all take 4 at most
//
//===----------------------------------------------------------------------===//

#include "StageSplit.h"
#include "TrainingModel.h"

#include <algorithm>

using namespace k2c;
using namespace k2c::planner;

namespace {

/// Seconds of a micro-batch: computing, and sending beside it or after it.
struct Load {
  double computing = 0, sending = 0;
  Load(const StageTime &t, bool overlap) : computing(t.forward.seconds + t.backward()), sending(t.sending()) {
    if (!overlap)
      sending -= t.ringHidden[0] + t.ringHidden[1];
  }
  Load() = default;
  void add(const Load &other, double times) { computing += other.computing * times, sending += other.sending * times; }
};

/// A layout's layers on the move.
class Split {
public:
  Split(const RequestModel &context, const ParallelLayout &layout)
      : model(context.model), overlap(layout.overlap), layers(layersOfStages(context.request.spec, layout)) {
    const PipelineShape shape = shapeOf(layout, 1);
    const TrainStages stages(context, layout);
    for (int64_t rank = 0; rank < layout.pp; ++rank)
      ofRank.push_back(stages.ofRank(rank));
    const int64_t all = model.spec.layerCount(), experts = model.moeLayers({0, all});
    if (experts > 0)
      moe = Load(stages.timeOfLayer(true), overlap);
    if (experts < all)
      dense = Load(stages.timeOfLayer(false), overlap);
    head = Load(stages.timeOfHead(), overlap);
    mirrored = shape.kind == PipelineKind::DualPipe; // two ranks run the same two stages
    fillsFirst = shape.kind == PipelineKind::OneFOneB || shape.kind == PipelineKind::Interleaved;
  }

  std::vector<int64_t> choose() {
    for (size_t moved = 0; moved < 4 * layers.size() && moveOne(); ++moved)
      ;
    if (fillsFirst)
      lighterFirst();
    return layers;
  }

private:
  double secondsOf(const Load &load) const {
    return overlap ? std::max(load.computing, load.sending) : load.computing + load.sending;
  }

  /// Of each stage and of each rank with these layers of stages: `ofStages` and `ofRanks`.
  void time(const std::vector<int64_t> &of) {
    loads.assign(of.size(), {});
    ofStages.clear(), ofRanks.clear();
    int64_t begin = 0;
    for (size_t stage = 0; stage < of.size(); ++stage) {
      const int64_t end = begin + of[stage], experts = model.moeLayers({begin, end});
      loads[stage].add(moe, double(experts));
      loads[stage].add(dense, double(of[stage] - experts));
      if (stage + 1 == of.size())
        loads[stage].add(head, 1);
      ofStages.push_back(secondsOf(loads[stage]));
      begin = end;
    }
    for (const std::vector<size_t> &own : ofRank) {
      Load sum;
      for (size_t stage : own)
        sum.add(loads[stage], 1);
      ofRanks.push_back(secondsOf(sum));
    }
  }

  static size_t longest(const std::vector<double> &of) {
    return size_t(std::max_element(of.begin(), of.end()) - of.begin());
  }

  /// Seconds of the slowest rank, then of the longest stage; rounded, so that sums in another order are equal.
  std::pair<float, float> longest(const std::vector<int64_t> &of) {
    time(of);
    return {float(ofRanks[longest(ofRanks)]), mirrored ? 0 : float(ofStages[longest(ofStages)])};
  }

  /// Moves one layer, from the slowest rank to the least busy one, or between stages of a rank, where that is best.
  bool moveOne() {
    time(layers);
    const size_t slow = longest(ofRanks), stage = longest(ofStages),
                 idle = size_t(std::min_element(ofRanks.begin(), ofRanks.end()) - ofRanks.begin());
    std::pair<float, float> best = longest(layers);
    std::vector<int64_t> moved, next = layers;
    auto look = [&](size_t from, const std::vector<size_t> &others) {
      for (size_t to : others) {
        if (from == to || layers[from] == 0)
          continue;
        --next[from], ++next[to];
        if (const std::pair<float, float> then = longest(next); then < best)
          best = then, moved = next;
        ++next[from], --next[to];
      }
    };
    for (size_t from : ofRank[slow])
      look(from, ofRank[idle]);
    for (const std::vector<size_t> &own : ofRank)
      if (std::find(own.begin(), own.end(), stage) != own.end())
        look(stage, own);
    if (!moved.empty())
      layers = moved;
    return !moved.empty();
  }

  /// Ranks but the last, by layers.
  void lighterFirst() {
    std::vector<std::vector<size_t>> from(ofRank.begin(), ofRank.end() - 1);
    auto held = [&](const std::vector<size_t> &own) {
      int64_t sum = 0;
      for (size_t stage : own)
        sum += layers[stage];
      return sum;
    };
    std::stable_sort(from.begin(), from.end(), [&](const auto &a, const auto &b) { return held(a) < held(b); });
    std::vector<int64_t> sorted = layers;
    for (size_t rank = 0; rank < from.size(); ++rank)
      for (size_t lane = 0; lane < from[rank].size(); ++lane)
        sorted[ofRank[rank][lane]] = layers[from[rank][lane]];
    if (longest(sorted) <= longest(layers))
      layers = sorted;
  }

  const ModelShare &model;
  const bool overlap;
  std::vector<int64_t> layers; ///< of stages
  std::vector<std::vector<size_t>> ofRank;
  Load moe, dense, head;
  std::vector<Load> loads;               ///< of the stages timed last
  std::vector<double> ofStages, ofRanks; ///< their seconds, and those of the ranks
  bool fillsFirst = false, mirrored = false;
};

} // namespace

std::optional<ParallelLayout> planner::withChosenLayers(const RequestModel &context, ParallelLayout layout) {
  if (layout.pp == 1 || !layout.layers.empty() || !checkLayout(context.request, layout))
    return std::nullopt;
  const std::vector<int64_t> even = layersOfStages(context.request.spec, layout);
  layout.layers = Split(context, layout).choose();
  return layout.layers == even ? std::nullopt : std::optional(layout);
}

//===- TrainStep.h - One micro-batch on one pipeline stage --------------------===//
#ifndef K2C_LIB_PLANNER_CLUSTER_TRAINSTEP_H
#define K2C_LIB_PLANNER_CLUSTER_TRAINSTEP_H

#include "RequestModel.h"
#include <algorithm>

namespace k2c::planner {

/// A pass over the layers of a stage: as long as its arithmetic or its memory traffic.
struct PassTime {
  double flops = 0;
  double bytes = 0; ///< of memory, read and written
  double seconds = 0;
  Bound bound = Bound::Compute;

  PassTime &operator+=(const PassTime &other) {
    if (other.seconds > seconds)
      bound = other.bound;
    flops += other.flops, bytes += other.bytes, seconds += other.seconds;
    return *this;
  }
  PassTime operator*(double factor) const { return {factor * flops, factor * bytes, factor * seconds, bound}; }
};

/// Modules of a layer, whose passes are bound each by itself.
enum class TrainModule : uint8_t { Attention, Experts, Dense };
inline constexpr size_t trainModuleCount = 3;
/// "attention", "experts", "dense, shared, router, head".
const char *nameOf(TrainModule module);

/// What a module takes of a micro-batch; recomputation counts as inputGrad.
struct ModuleTime {
  PassTime forward, inputGrad, weightGrad;
};

/// The shape of a layout's pipeline with so many micro-batches.
PipelineShape shapeOf(const ParallelLayout &layout, int64_t microbatches);

/// Work of one micro-batch on the layers of a stage, on one rank.
struct StageTime {
  std::array<ModuleTime, trainModuleCount> modules;
  PassTime forward, inputGrad, weightGrad; ///< of all modules
  LinkUse dispatch, tensor, pipeline;      ///< of the forward; the backward sends as much
  double linkSeconds = 0;                  ///< of the forward
  /// Keys and values of a sequence that cp ranks share, in the forward and in the backward; of the seconds, those
  /// beside attention.
  std::array<LinkUse, 2> ring;
  std::array<double, 2> ringSeconds{}, ringHidden{};
  double coreSeconds = 0;                ///< of the forward's scores and sums over values
  double hostBytes = 0, hostSeconds = 0; ///< of what moves to the host, and back again
  double hostExposed = 0;                ///< seconds by which the host link lengthens the passes

  double backward() const { return inputGrad.seconds + weightGrad.seconds; }
  /// All passes one after the other, without overlap.
  double passes() const {
    return forward.seconds + backward() + 2 * linkSeconds + ringExposed(0) + ringExposed(1) + hostExposed;
  }
  double ringExposed(size_t pass) const { return ringSeconds[pass] - ringHidden[pass]; }
  /// Seconds on links of both passes.
  double sending() const { return 2 * linkSeconds + ringSeconds[0] + ringSeconds[1]; }
  /// A forward and a backward beside each other: the longer of computing and sending.
  double together() const { return std::max(forward.seconds + backward(), sending()) + hostExposed; }
  StageTime &operator+=(const StageTime &other);
  StageTime operator*(double factor) const;
};

/// A training layout's stages, in the order of the model. A search asks for many thousands of layouts, most of whose
/// stages hold as much as the one before: such stages are of one kind, and so are ranks with stages of the same kinds.
class TrainStages {
public:
  TrainStages(const RequestModel &context, const ParallelLayout &layout);

  /// Indices of the stages that a pipeline rank holds, by lane.
  const std::vector<size_t> &ofRank(int64_t rank) const { return stagesOfRank[size_t(rank)]; }
  size_t kindOf(size_t stage) const { return kindOfStage[stage]; }
  size_t kindOfRank(int64_t rank) const { return kindsOfRanks[size_t(rank)]; }
  /// The first rank of each kind.
  const std::vector<int64_t> &firstRanks() const { return first; }
  /// What a rank holds of the model.
  RankShare shareOf(int64_t rank) const;
  /// Of each stage of a kind.
  StageTime timeOfKind(size_t kind) const { return time(kinds[kind], kind + 1 == kinds.size()); }
  /// Of a stage that holds `share`; `isLast`: and the head.
  StageTime time(const RankShare &share, bool isLast) const;
  /// Bytes kept of one micro-batch for the backward of a stage.
  double activations(size_t stage) const { return activationsOfKind[kindOf(stage)]; }
  /// Of these, what `rows` of routed experts keep in all layers of the stage.
  double activationsOfRows(size_t stage, double rows) const;
  size_t count() const { return kindOfStage.size(); }
  size_t kindCount() const { return kinds.size(); }

  /// Tokens of a micro-batch on a rank, before tp divides them.
  double tokens() const;
  /// Bytes of buffers in which keys and values, and their gradients, go around the cp ranks: what is in use and what
  /// arrives.
  double ringBuffers() const;

  /// Of one layer, and of the head alone: a stage is as long as its layers and head together, but for what bounds them.
  StageTime timeOfLayer(bool isMoe) const;
  StageTime timeOfHead() const;

private:
  double activations(const RankShare &of) const;
  double rowsOfExperts() const;
  double imbalance() const;
  double rowBytes(const KeptBytes &layer) const;
  void addRing(StageTime &time, const RankShare &share) const;
  void timePasses(StageTime &time, const RankShare &share, bool isLast) const;

  const RequestModel &context;
  const ParallelLayout &layout;
  const double fullest;               ///< rows of the fullest rank for each of a mean one
  const std::vector<KeptBytes> &kept; ///< of a layer of each of ModelShare::kinds
  std::vector<RankShare> kinds;       ///< of stages, in the order of the model; the last stage is one alone
  std::vector<size_t> kindOfStage, kindsOfRanks;
  std::vector<double> activationsOfKind;
  std::vector<std::vector<size_t>> stagesOfRank;
  std::vector<int64_t> first; ///< ranks
};

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_CLUSTER_TRAINSTEP_H

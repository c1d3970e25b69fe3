//===- TrainStep.h - One micro-batch on one pipeline stage --------------------===//
#ifndef K2C_LIB_PLANNER_CLUSTER_TRAINSTEP_H
#define K2C_LIB_PLANNER_CLUSTER_TRAINSTEP_H

#include "RequestModel.h"

namespace k2c::planner {

/// Work of one micro-batch on the layers of a stage, on one rank.
struct StageTime {
  double forward = 0, inputGrad = 0, weightGrad = 0; ///< seconds of arithmetic; recomputation counts as inputGrad
  double forwardFlops = 0, recomputeFlops = 0;
  LinkUse dispatch, tensor, pipeline; ///< of the forward; the backward sends as much
  double linkSeconds = 0;             ///< of the forward
};

/// A training layout's stages: of pp ranks, or more where ranks hold several.
class TrainStages {
public:
  TrainStages(const RequestModel &context, const ParallelLayout &layout);

  /// Indices of the stages that a pipeline rank holds.
  std::vector<size_t> ofRank(int64_t rank) const;
  /// What a rank holds of the model.
  RankShare shareOf(int64_t rank) const;
  StageTime time(size_t stage) const;
  /// Bytes kept of one micro-batch for the backward of a stage.
  double activations(size_t stage) const;
  size_t count() const { return stages.size(); }

  /// Tokens of a micro-batch on a rank, before tp divides them.
  double tokens() const;

private:
  const RequestModel &context;
  const ParallelLayout &layout;
  std::vector<RankShare> stages;
  double kept = 1; ///< share of a MoE layer's tensors that is not recomputed
};

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_CLUSTER_TRAINSTEP_H

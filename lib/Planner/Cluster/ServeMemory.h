//===- ServeMemory.h - What a rank of a serving layout holds ------------------===//
#ifndef K2C_LIB_PLANNER_CLUSTER_SERVEMEMORY_H
#define K2C_LIB_PLANNER_CLUSTER_SERVEMEMORY_H

#include "RequestModel.h"

namespace k2c::planner {

/// Bytes of the ranks of one pool, by stage.
class ServeMemory {
public:
  ServeMemory(const RequestModel &context, const ParallelLayout &layout, PoolRole role = PoolRole::Both);

  /// Of every stage when each data-parallel rank holds `sequences`.
  std::vector<RankMemory> ranks(int64_t sequences) const;
  /// Most sequences that fit a data-parallel rank; 0: none. A pool that computes prompts has its steps' instead: 1 when
  /// they fit.
  int64_t maxFittingSequences() const;
  /// Largest power of two up to 8192 for each device whose buffers take no more than a quarter of what weights and
  /// reserve leave; at least 64, which may not fit.
  int64_t chooseStepTokens() const;
  /// What `k2c compile` is asked for when each rank holds `sequences`; nothing when it does not compile this layout.
  std::optional<Limits> compiledLimits(int64_t sequences) const;

private:
  struct Buffers {
    double activations = 0, logits = 0, dispatch = 0, second = 0, rows = 0, padding = 0, gathered = 0;
    double total() const { return activations + logits + dispatch + second + rows + padding + gathered; }
  };
  Buffers buffers(int64_t stepTokens, int64_t sequences, bool isLast) const;
  double cacheBytes(const RankShare &share, int64_t sequences) const;
  double cachedTokens(int64_t sequences) const;
  double cachedBytes(const AttentionSizes &sizes, int64_t tokens) const;
  double fixedBytes(const RankShare &share) const { return sum(share.bytes) + reserve; }
  bool fits(int64_t sequences) const;
  /// The certificate of a compile, without what only the compiler knows.
  std::optional<RankMemory> certificate(int64_t sequences) const;

  const RequestModel &context;
  const ParallelLayout layout;
  const PoolRole role;
  std::vector<RankShare> stages;
  double reserve = 0;
  bool compiles = false;
};

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_CLUSTER_SERVEMEMORY_H

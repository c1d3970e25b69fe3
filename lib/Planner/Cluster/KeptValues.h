//===- KeptValues.h - What a layer keeps of its forward for its backward ------===//
//
// Derived from the ops of a layer (k2c/Model/Layers.h): each op's gradient needs some of the op's values, and what none
// needs is freed at once, recomputation or not. A product of matrices needs its rows, a norm and an activation what
// they read, attention its queries, keys, values and results; sums, rotations and views need nothing. The experts'
// results are not kept, since the routers' weights multiply what the down projections read (Megatron-LM, moe/README.md:
// "moving the probs multiplication from unpermutation to activation function").
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_PLANNER_CLUSTER_KEPTVALUES_H
#define K2C_LIB_PLANNER_CLUSTER_KEPTVALUES_H

#include "k2c/Model/Layers.h"
#include "k2c/Planner/ClusterPlan.h"

namespace k2c::planner {

/// Bytes of a token in one layer, by what divides them.
struct KeptBytes {
  double stream = 0;   ///< as wide as the residual stream: sequence parallelism
  double latents = 0;  ///< nothing
  double split = 0;    ///< heads and widths: tensor parallelism
  double row = 0;      ///< of each row of routed experts, as wide as the stream: nothing
  double rowSplit = 0; ///< of each row of routed experts: tensor parallelism inside of an expert

  KeptBytes &operator+=(const KeptBytes &other) {
    stream += other.stream, latents += other.latents, split += other.split;
    row += other.row, rowSplit += other.rowSplit;
    return *this;
  }
};

/// The values that a layer keeps when the backward computes `set` again. The named sets of papers 000 and 002: V3
/// computes norms, the up projections of latent attention and activations, and stores what experts and activations read
/// in FP8 (DeepSeek-V3 report, sections 3.2.3 and 3.3.3, where the input of attention's output projection has 12 bits);
/// K2 the same in bf16; a whole layer from its input.
KeptBytes keptBytes(const ModelSpec &spec, const LayerKind &kind, RecomputeSet set, DType compute);

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_CLUSTER_KEPTVALUES_H

//===- SavedTensors.h - What a MoE layer keeps for its backward pass ----------===//
//
// As paper 000 has it, tensor by tensor (what plans count follows from the ops of a layer): it describes the sets of
// DeepSeek V3 (norms and the up projections of latent attention) and Kimi K2 (these, SwiGLU and the experts' down
// projection; the inputs of the experts and of SwiGLU stored in FP8 with an f32 scale for each 128). bf16, flash
// attention, one MoE layer, per token of a rank without tensor parallelism.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_FORMULAS_SAVEDTENSORS_H
#define K2C_FORMULAS_SAVEDTENSORS_H

#include "k2c/Model/ModelSpec.h"
#include "k2c/Planner/ClusterPlan.h"
#include <string>
#include <vector>

namespace k2c {

/// One saved tensor.
struct SavedTensor {
  std::string name;
  double bytes = 0; ///< of a token in a layer
};

/// The tensors that a layer of latent attention and routed experts keeps under a set, balanced routing. The model has
/// both; the set is none or a named one.
std::vector<SavedTensor> savedTensors(const ModelSpec &spec, RecomputeSet set);

} // namespace k2c

#endif // K2C_FORMULAS_SAVEDTENSORS_H

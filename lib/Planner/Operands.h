//===- Operands.h - The packed operands of a model, counted -------------------===//
//
// The planner's view of the weight map, before there is one: which operands the families give, how each is packed (the
// layouts of Weights/WeightMap.h), and how often a step reads it.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_PLANNER_OPERANDS_H
#define K2C_LIB_PLANNER_OPERANDS_H

#include "k2c/Planner/Plan.h"

namespace k2c::planner {

/// How a step uses an operand.
enum class Use : uint8_t {
  Lookup,    ///< rows by index: the embedding, the rotary table
  Every,     ///< every token row: norms, projections, routers, shared experts
  Chosen,    ///< only the experts that tokens choose
  Logits,    ///< the output rows
  Expanded,  ///< latent attention in the expanded form
  Absorbed,  ///< in the absorbed form
  Attention, ///< in both
};

/// Who has an operand that is of no layer, where stages have layers.
enum class StageEnd : uint8_t { All, First, Last };

struct PlannedOperand {
  FamilyBytes packed;
  IndexSet layers; ///< with a slot each; empty: it is of no layer
  StageEnd end = StageEnd::All;
  Use use = Use::Every;
  double multiplyAdds =
      0; ///< of one token row of its step, all layers; for Chosen, of one expert a layer. Attention counts its own
};

/// What one rank has of a model.
struct RankParts {
  int64_t expertSlots = 0; ///< for the routed experts of a layer
  int64_t tp = 1;          ///< ranks that have parts of its layers' weights (TensorParts.h)
  int64_t etp = 1;         ///< ranks that have parts of each of these experts
  int64_t vocab = 1;       ///< ranks that have columns of its embedding and rows of its head
  WeightLayout weights{};  ///< in which kernels read its matrices
};
RankParts rankParts(const Plan &plan);

/// The operands of one rank of `spec` when latent attention takes the forms of `expandedFrom` (see MlaForms.h).
std::vector<PlannedOperand> operandsOf(const ModelSpec &spec, int64_t expandedFrom, const Limits &limits,
                                       RankParts rank);

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_OPERANDS_H

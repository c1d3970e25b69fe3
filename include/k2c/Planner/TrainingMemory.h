//===- TrainingMemory.h - States and activations of one training rank -----===//
//
// Paper 002: states under ZeRO (section 4) and activations (section 5). Where the paper departs from Megatron-LM and
// from arithmetic, an option says so: the router and the shared expert are sharded over DP and not EDP, an expert's
// tokens counted over the whole expert group and not one rank, attention kept as the logsumexp of flash attention and
// not as matrices.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_TRAININGMEMORY_H
#define K2C_PLANNER_TRAININGMEMORY_H

#include "k2c/Planner/Count.h"

namespace k2c {

/// Parameters of one rank. Norms and the router are replicated over TP.
struct DeviceParameters {
  Checked norms;
  Checked attentionSplit; ///< this rank's share of what TP splits
  Checked attentionReplicated;
  Checked router;
  Checked routed; ///< experts of this rank
  Checked shared;
  int64_t expertsPerRank = 0; ///< routed and shared, over the stage's layers

  Checked attention() const { return attentionSplit + attentionReplicated; }
  Checked dense() const { return norms + attention(); }
  Checked moe() const { return router + routed + shared; }
  Checked total() const { return dense() + moe(); }
};

/// What data-parallel ranks hold a share of, in place of all of it: optimizer states; gradients too; parameters too.
enum class Zero : uint8_t { None, Os, OsG, OsGParams };
/// Bytes for each parameter; `optimizer` is master, momentum and variance together.
struct StateBytes {
  double weight = 2;
  double gradient = 4;
  double optimizer = 8;
};
/// Bytes of a rank.
struct StateMemory {
  double parameters = 0, gradients = 0, optimizer = 0;
  double total() const { return parameters + gradients + optimizer; }
};
/// Routed experts are sharded over `edp` ranks, the rest over `dp`; `paperGroups` shards router and shared expert over
/// `edp` as well.
StateMemory stateMemory(const DeviceParameters &device, Zero zero, const StateBytes &bytes, int64_t dp, int64_t edp,
                        bool paperGroups);

/// One micro-batch on one rank of the stage.
struct Microbatch {
  int64_t sequences = 1; ///< b
  int64_t tokens = 1;    ///< s, of a sequence
  int64_t tp = 1;
  int64_t sp = 1; ///< sequence parallelism divides what is per token outside the TP region
  int64_t cp = 1; ///< context parallelism divides the tokens
  int64_t ep = 1;
  int64_t etp = 1; ///< ranks that share an expert: each keeps the rows of all and its share of their width
  int64_t layers = 1;
};
/// What the backward computes again: nothing, or all of a layer from its input.
enum class Recompute : uint8_t { None, Full };
/// Bytes kept of layers with that attention. Eager keeps of each query, key and head what its backward reads
/// (Korthikanti et al., 2022, whose 5 b n s^2 the paper has): the softmax's output, 2 bytes, the mask of its dropout,
/// 1, and the dropout's output, 2; scores before the softmax are not kept. Flash keeps one f32 logsumexp for each row
/// and head. Without `dropout` there are no masks, neither here nor of the residual branch, and the softmax's output
/// itself multiplies the values: 2 b n s^2.
double attentionActivations(const ModelSpec &spec, const AttentionSizes &sizes, const Microbatch &batch,
                            Recompute recompute, bool flash, bool dropout);
/// Bytes kept of the MoE layers, balanced routing. `paperTokens`: an expert serves one rank's tokens, undivided by SP;
/// else those of the expert group.
double moeActivations(const ModelSpec &spec, const Microbatch &batch, Recompute recompute, bool paperTokens);

} // namespace k2c

#endif // K2C_PLANNER_TRAININGMEMORY_H

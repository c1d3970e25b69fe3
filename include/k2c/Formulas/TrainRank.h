//===- TrainRank.h - Parameters and memory of one training rank, by paper 002 -===//
//
// Section 3: static parameters of a rank of a pipeline stage of MoE layers under tensor, expert and expert-tensor
// parallelism. Section 6: buffers and fragmentation. Where the paper departs from Megatron-LM, an option says so: W_QR
// and the shared expert may be split over TP as Megatron does.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_FORMULAS_TRAINRANK_H
#define K2C_FORMULAS_TRAINRANK_H

#include "k2c/Planner/TrainingMemory.h"

namespace k2c {

/// How a stage of `layers` MoE layers is split.
struct StageLayout {
  int64_t layers = 1;              ///< MoE layers of the stage
  int64_t tp = 1;                  ///< ranks that share attention's matrices
  int64_t ep = 1;                  ///< ranks that share a layer's experts
  int64_t etp = 1;                 ///< ranks that share one expert
  bool splitsQueryRope = false;    ///< W_QR over TP, as Megatron's fused up projection; else replicated
  bool splitsSharedExpert = false; ///< over TP; else replicated
};

/// Ranks that hold a copy of the same experts: DP TP / (EP ETP). Error: not a whole number.
Expected<int64_t> expertDataParallel(int64_t dp, int64_t tp, int64_t ep, int64_t etp);

/// Of the rank with most experts. Error: sizes that TP or ETP do not divide, more expert ranks than experts, no
/// experts.
Expected<DeviceParameters> deviceParameters(const ModelSpec &spec, const StageLayout &layout);

/// Bytes of a rank: (states + live micro-batches + buffers) (1 + fragmentation). Paper 002: buffers 0.8 to 2 GB,
/// fragmentation 5 to 30 %.
double trainingMemory(const StateMemory &states, double activations, double liveMicrobatches, double buffers,
                      double fragmentation);

} // namespace k2c

#endif // K2C_FORMULAS_TRAINRANK_H

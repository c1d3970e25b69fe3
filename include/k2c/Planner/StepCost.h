//===- StepCost.h - FLOP, bytes and seconds of one step -----------------------===//
//
// A step is a list of kernels; each takes max(FLOP / rate, bytes / bandwidth), and they run one after another. Counted:
// every matrix once a step (of the experts, as many as tokens hit on average), the cache each sequence
// reads, the FLOP of linears and attention. Left out: activations (they stay in the caches), norms and routing
// (below 1 % of the bytes), barriers (about 1 us a kernel on two threads), what ranks send each other: of several ranks
// the step is that of the one with the sequences, whose experts get their share of the rows. The prediction is a bound
// from below.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_STEPCOST_H
#define K2C_PLANNER_STEPCOST_H

#include "k2c/Cluster/Topology.h"
#include "k2c/Planner/Plan.h"

namespace k2c {

/// FLOP and memory traffic of some kernels.
struct Work {
  std::string name;
  Flops flops;
  Bytes bytes;
};

/// The roofline: the slower of computing at the device's rate for `compute` and reading at its bandwidth.
Seconds roofline(const Work &work, const Device &device, DType compute);

/// Sequences of one shape in a step: each has `context` tokens cached and `tokens` new ones, of which the last gives
/// logits.
struct StepShape {
  int64_t sequences = 1;
  int64_t tokens = 1;
  int64_t context = 0;
};

/// Whether latent attention runs expanded (MlaForms.h).
bool runsExpanded(const Plan &plan, const StepShape &shape);

/// What the kernels of a step read and compute: one entry for each kind of kernel, all layers together. Reads the
/// sizes, forms and limits of `plan`.
std::vector<Work> stepWork(const ModelSpec &spec, const Plan &plan, const StepShape &shape);

/// Sum over stepWork, each entry at its roofline.
Prediction predictStep(const ModelSpec &spec, const Plan &plan, const Device &device, const StepShape &shape);

} // namespace k2c

#endif // K2C_PLANNER_STEPCOST_H

//===- HalfBatches.h - Two halves of a batch that take turns ------------------===//
//
// Two-batch overlap: while one half computes a part of a layer, the other's rows move. What is beside what is as
// published systems have it (deepseek-ai/profile-data, figures of prefilling and decoding; sglang's
// operations_strategy.py).
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_PLANNER_CLUSTER_HALFBATCHES_H
#define K2C_LIB_PLANNER_CLUSTER_HALFBATCHES_H

namespace k2c::planner {

/// What computes or moves rows in the layers that exchange them.
struct Turn {
  double seconds = 0;
  double waiting = 0; ///< seconds that memory takes: of those above, or beside them while rows move
  Turn &operator+=(const Turn &other) {
    seconds += other.seconds, waiting += other.waiting;
    return *this;
  }
  Turn operator*(double factor) const { return {seconds * factor, waiting * factor}; }
};

/// The parts of all layers that exchange rows, in their order, and what no other half can run beside.
struct LayerTurns {
  Turn attention, dispatch, experts, shared, combine;
  double alone = 0;       ///< seconds of layers that exchange nothing, and of tables
  double sendReceive = 0; ///< of dispatch and combine of generated tokens, where they have all multiprocessors
};

/// Seconds of both halves of prompts: each of the four exchanges runs beside a part of the other half. Models without
/// experts have dense layers in their place, and halves of tensor parallelism's sums in place of dispatch and combine.
double secondsOfPromptHalves(const LayerTurns &half);
/// Of generated tokens: rows move while the other half's attention and shared experts compute, which are cut where it
/// suits; nothing moves beside routed experts, and the kernels that send and receive have the device to themselves.
double secondsOfTokenHalves(const LayerTurns &half);

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_CLUSTER_HALFBATCHES_H

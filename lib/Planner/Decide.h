//===- Decide.h - What a plan decides, before times are predicted ------------===//
#ifndef K2C_LIB_PLANNER_DECIDE_H
#define K2C_LIB_PLANNER_DECIDE_H

#include "k2c/Planner/Planner.h"
#include "k2c/Planner/StepCost.h"

namespace k2c::planner {

/// A plan without predictions, and its remarks.
Expected<Plan> decide(const ModelSpec &spec, const Topology &topology, const Limits &limits, const PlanOptions &options,
                      const MeasuredSizes &measured);

/// The steps that plans predict: a cold prompt, and one token behind another.
StepShape predictedPrefill(const Limits &limits);
inline constexpr StepShape predictedDecode{1, 1, 1};

/// "prefill of 512 tokens: at least 3 ms for 2 GFLOP and 1 GB".
std::string boundText(const char *what, const Prediction &step);

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_DECIDE_H

//===- RequestModel.h - What no layout changes --------------------------------===//
//
// A request counted once: the model's shares, the links, the device's rates, the means of the workload. Evaluating a
// layout reads it; a search builds it once.
//
//===----------------------------------------------------------------------===//
#ifndef K2C_LIB_PLANNER_CLUSTER_REQUESTMODEL_H
#define K2C_LIB_PLANNER_CLUSTER_REQUESTMODEL_H

#include "KeptValues.h"
#include "ServeStep.h"

namespace k2c::planner {

/// Means of a serving workload, in tokens.
struct RequestMix {
  explicit RequestMix(const ServeWorkload &workload);
  double input = 1;    ///< of a request, history included
  double computed = 1; ///< of these, those that no cache holds
  double output = 1;
  double promptContext = 0;     ///< mean over computed tokens of the tokens before
  double decodeContext = 0;     ///< mean over generated tokens of the tokens before
  double residentDeviation = 0; ///< of a sequence's cached tokens, at a random moment
  int64_t longest = 1;          ///< of input and output together
  int64_t longestInput = 1;     ///< history included
  double slowInput = 1;         ///< 95 % of inputs are no longer
  double tokensOfStep = 1;      ///< with accepted drafts
};

/// A request and what follows from it alone.
struct RequestModel {
  /// `request` and what it refers to outlive this.
  explicit RequestModel(const PlanRequest &request)
      : request(request), model(request.spec, request.phase == PlanPhase::Train ? WeightFormat::Bf16 : request.weights),
        links(request.topology), rates(request), mix(request.workload.serve) {
    if (request.phase == PlanPhase::Train)
      for (size_t set = 0; set < recomputeSetCount; ++set)
        for (const ModelShare::Kind &kind : model.kinds)
          kept[set].push_back(keptBytes(request.spec, kind.kind, RecomputeSet(set), request.compute));
  }

  const PlanRequest &request;
  ModelShare model;
  Links links;
  DeviceRates rates;
  RequestMix mix;
  /// Of a layer of each of ModelShare::kinds, by RecomputeSet; training.
  std::array<std::vector<KeptBytes>, recomputeSetCount> kept;
};

/// Errors that hold for every layout: sizes beyond 2^63, sequences longer than the model's positions, loads of another
/// number of experts.
Status checkRequest(const PlanRequest &request);

/// Where the error of a plan that misses a target says that it is.
inline constexpr const char *missedTarget = "targets";

/// Of the whole layout, both pools when it has two.
Expected<ClusterPlan> evaluateServe(const RequestModel &context, const ParallelLayout &layout);
Expected<ClusterPlan> evaluateTrain(const RequestModel &context, const ParallelLayout &layout);

/// Bytes of the fullest rank with one sequence each and the shortest steps; nothing when the model does not divide.
std::optional<double> minServingBytes(const RequestModel &context, const ParallelLayout &layout);

/// Bytes as memory counts them: rounded up, at most 9e18.
Bytes wholeBytes(double bytes);

/// The one rank of a compile, as the manifest states it.
RankMemory certificateOf(const ModelSpec &spec, const Plan &plan, const Device &device);

/// What a phase sends, as a part of its own: alone it takes `seconds`, of which `hidden` are beside other parts.
StepPart linkPart(const Links &links, const char *phase, const char *name, const LinkUse &use, double seconds,
                  double hidden);
/// What a device receives over each tier.
void addTraffic(ClusterPlan &plan, const char *phase, const LinkUse &use, const Topology &topology);
/// Adds a figure to `plan` with each call: key, label, value, unit.
inline auto figuresOf(ClusterPlan &plan) {
  return [&plan](const char *key, const std::string &label, double value, const char *unit) {
    plan.figures.push_back({key, label, value, unit});
  };
}
/// Names, devices, layout, notes and whether it compiles.
ClusterPlan describePlan(const RequestModel &context, const ParallelLayout &layout);

} // namespace k2c::planner

#endif // K2C_LIB_PLANNER_CLUSTER_REQUESTMODEL_H

//===- ClusterQuestion.h - A model, a cluster and a load to plan for ----------===//
#ifndef K2C_UNIT_PLANNER_CLUSTERQUESTION_H
#define K2C_UNIT_PLANNER_CLUSTERQUESTION_H

#include "TestModels.h"
#include "k2c/Planner/Evaluate.h"

namespace k2c::test {

inline Topology topology(const std::string &name) {
  Expected<Topology> loaded = loadTopology(name);
  EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().text());
  return loaded ? *loaded : Topology();
}

inline ParallelLayout layout(const std::string &text, PlanPhase phase = PlanPhase::Serve) {
  Expected<ParallelLayout> parsed = parseLayout(text, phase);
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().text());
  return parsed ? *parsed : ParallelLayout();
}

/// A request whose parts live as long as it.
struct Question {
  ModelSpec spec;
  Topology machines;
  Workload workload;
  PlanRequest request{spec, machines, workload};

  Question(const std::string &model, const std::string &cluster, PlanPhase phase = PlanPhase::Serve)
      : spec(*loadPublishedModel(model)), machines(topology(cluster)), workload(defaultWorkload(spec)) {
    request.phase = phase;
  }
  ClusterPlan plan(const std::string &text) {
    Expected<ClusterPlan> plan = evaluate(request, layout(text, request.phase));
    EXPECT_TRUE(plan) << (plan ? "" : plan.error().text());
    return plan ? *plan : ClusterPlan();
  }
  std::string refusal(const std::string &text) {
    Expected<ClusterPlan> plan = evaluate(request, layout(text, request.phase));
    return plan ? "accepted" : plan.error().text();
  }
};

inline double linkBytes(const ClusterPlan &plan) {
  double sum = 0;
  for (const TierTraffic &tier : plan.traffic)
    sum += tier.bytes;
  return sum;
}

inline double part(const ClusterPlan &plan, const std::string &phase, const std::string &name) {
  for (const StepPart &step : plan.steps)
    if (step.phase == phase && step.name == name)
      return step.seconds.value;
  return 0;
}

} // namespace k2c::test

#endif // K2C_UNIT_PLANNER_CLUSTERQUESTION_H

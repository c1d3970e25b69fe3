// The text of --layout, evaluated for serving and training on a small cluster.
#include "k2c/Planner/Evaluate.h"

using namespace k2c;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Expected<ModelSpec> spec = loadPublishedModel("deepseek-v2-lite");
  static const Expected<Topology> topology = loadTopology("4x8-h100");
  static const Workload workload;
  if (!spec || !topology)
    __builtin_trap();
  for (PlanPhase phase : {PlanPhase::Serve, PlanPhase::Train}) {
    Expected<ParallelLayout> layout = parseLayout({reinterpret_cast<const char *>(data), size}, phase);
    if (!layout)
      continue;
    PlanRequest request{*spec, *topology, workload};
    request.phase = phase;
    for (bool mustFit : {true, false}) {
      request.mustFit = mustFit;
      Expected<ClusterPlan> plan = evaluate(request, *layout);
      if (plan && mustFit && !plan->fits())
        __builtin_trap();
    }
  }
  return 0;
}

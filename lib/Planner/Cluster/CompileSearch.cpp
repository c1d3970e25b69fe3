//===- CompileSearch.cpp - The layouts of a program, the best first -----------===//
//
// The layouts of search(), and the default ones in every number of stages, which that space need not have: three ranks
// of a model without experts are three stages. Each that compiles is evaluated as the program would run: with the steps
// and the sequences of its limits, under requests that fill its longest sequence, 2,500 tokens at most.
//
// Memory is what the planner knows of it. The arena, which only the passes know, is the caller's to ask for.
//
//===----------------------------------------------------------------------===//

#include "Ranking.h"
#include "Space.h"
#include "k2c/Planner/Planner.h"

#include <algorithm>
#include <set>

using namespace k2c;
using namespace k2c::planner;

/// Each layout once, by its text, whole and with parts of embedding and head where the model has any.
static std::vector<ParallelLayout> programSpace(const PlanRequest &request) {
  std::vector<ParallelLayout> all = servingSpace(request), space;
  for (std::optional<int64_t> stages = 1; stages; stages = nextStages(request.spec, request.topology, *stages))
    for (bool overlap : {false, true}) {
      ParallelLayout layout = compileLayout(request.spec, request.topology, *stages);
      layout.overlap = overlap;
      all.push_back(layout);
    }
  for (size_t i = 0, whole = all.size(); i < whole; ++i)
    if (std::optional<ParallelLayout> divided = withVocabularyParts(request.spec, all[i]))
      all.push_back(std::move(*divided));
  std::set<std::string> known;
  for (const ParallelLayout &layout : all)
    if (known.insert(format(layout, PlanPhase::Serve)).second)
      space.push_back(layout);
  return space;
}

Expected<CompileSearch> k2c::searchCompiled(const ModelSpec &spec, const Topology &topology, const Limits &limits,
                                            const PlanOptions &options, const RouteBound &bound) {
  if (Status status = checkBinds(spec, topology, topology.nodes(), bound); !status)
    return status.takeError();
  Workload workload = defaultWorkload(spec, limits.maxContext);
  PlanRequest request{spec, topology, workload};
  request.compute = options.compute;
  request.cache = options.cache.value_or(options.compute);
  request.mustFit = false; // planHost judges it, with the limits
  if (Status status = checkRequest(request); !status)
    return status.takeError();
  const RequestModel context(request);
  CompileSearch found;
  std::optional<Bytes> least;
  PlanOptions tried = options;
  for (ParallelLayout layout : programSpace(request)) {
    ++found.candidates;
    if (!whyNotCompiled(request, layout).empty() ||
        !checkBinds(spec, topology, nodesOfStage(layout, topology.nodes()), bound))
      continue;
    ++found.compiling;
    layout.stepTokens = limits.stepTokens;
    tried.layout = layout;
    tried.mustFit = false;
    Expected<Plan> needed = planHost(spec, topology, limits, tried);
    if (!needed)
      return needed.takeError(); // of the limits or of sizes beyond 2^63, whatever the layout
    if (!least || needed->memory.total() < *least) {
      least = needed->memory.total();
      found.smallest = layout;
    }
    workload.serve.batch = limits.maxSequences * layout.dp * layout.replicas;
    Expected<ClusterPlan> plan = evaluateServe(context, layout);
    if (plan && needed->memory.total() <= topology.device.memory.value)
      found.holding.push_back(std::move(*plan));
  }
  std::stable_sort(found.holding.begin(), found.holding.end(), [](const ClusterPlan &a, const ClusterPlan &b) {
    return searchRank(a, Objective::Throughput) < searchRank(b, Objective::Throughput);
  });
  return found;
}

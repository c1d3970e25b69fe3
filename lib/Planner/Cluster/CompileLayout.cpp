//===- CompileLayout.cpp - Layouts that k2c compile accepts -------------------===//

#include "k2c/Planner/CompileLayout.h"

#include "base/Utf8.h"
#include "k2c/Planner/Evaluate.h"
#include <algorithm>

using namespace k2c;

/// Of a layer; 0: the model has none.
static int64_t routedExperts(const ModelSpec &spec) { return spec.moe ? spec.moe->experts : 0; }

/// Slots beyond the experts so that every rank has as many.
static int64_t fillingSlots(int64_t experts, int64_t ranks) { return (ranks - experts % ranks) % ranks; }

ParallelLayout k2c::compileLayout(const ModelSpec &spec, const Topology &topology) {
  ParallelLayout layout;
  if (!spec.moe)
    return layout;
  layout.ep = layout.dp = topology.ranks();
  layout.redundantExperts = fillingSlots(spec.moe->experts, layout.ep);
  return layout;
}

int64_t k2c::expertSlots(const ModelSpec &spec, const ParallelLayout &layout) {
  return (routedExperts(spec) + layout.redundantExperts + layout.ep - 1) / layout.ep;
}

PlacedModel k2c::placedModel(const ModelSpec &spec, const ParallelLayout &layout) {
  return {spec.name, spec.moeLayers(), routedExperts(spec), layout.ep, expertSlots(spec, layout)};
}

ExpertPlacement k2c::defaultPlacement(const PlacedModel &model, int64_t routeLimit, int64_t nodes) {
  return placedInOrder(model, /*hasCopies=*/routeLimit == 0 || routeLimit >= nodes);
}

std::string k2c::compiledText(ParallelLayout layout) {
  layout.stepTokens = 0;
  return layout.devices() == 1 ? oneRankLayout : format(layout, PlanPhase::Serve);
}

namespace {

/// `layout`, where its redundant slots are ones that compile, else those nearest to them; all else is the default's.
ParallelLayout nearestCompiled(const ModelSpec &spec, const Topology &topology, const ParallelLayout &layout) {
  ParallelLayout nearest = compileLayout(spec, topology);
  const int64_t experts = routedExperts(spec), most = (nearest.ep - 1) * experts;
  if (layout.redundantExperts > 0 && nearest.ep > 1) {
    const int64_t slots = experts + std::min(layout.redundantExperts, most);
    nearest.redundantExperts = slots + fillingSlots(slots, nearest.ep) - experts;
  }
  return nearest;
}

/// Keys of which this build compiles one value.
Status checkKeys(const ParallelLayout &layout, const std::string &remedy) {
  for (auto [key, value] : {std::pair{"tp", layout.tp}, std::pair{"etp", layout.etp}, std::pair{"cp", layout.cp},
                            std::pair{"pp", layout.pp}, std::pair{"replicas", layout.replicas}})
    if (value != 1)
      return Error{"--layout",
                   std::string(key) + " is " + std::to_string(value) + ", in this build programs have " + key + "=1",
                   remedy};
  if (layout.overlap && layout.ep == 1)
    return Error{"--layout", "overlap is 1, and the ranks of ep=1 exchange nothing that could cross meanwhile", remedy};
  return Status::success();
}

/// Each rank holds an expert once at most, and all have as many slots.
Status checkRedundant(const ModelSpec &spec, const ParallelLayout &layout, const std::string &remedy) {
  const int64_t experts = routedExperts(spec), redundant = layout.redundantExperts, most = (layout.ep - 1) * experts;
  if (redundant < 0 || redundant > most)
    return Error{"--layout",
                 "redundant is " + std::to_string(redundant) + ", must be 0 to " + std::to_string(most) + " for " +
                     std::to_string(experts) + " experts on " + std::to_string(layout.ep) +
                     (layout.ep == 1 ? " rank" : " ranks"),
                 remedy};
  if (redundant > 0 && (experts + redundant) % layout.ep != 0)
    return Error{"--layout",
                 "redundant is " + std::to_string(redundant) + ", which makes " + std::to_string(experts + redundant) +
                     " expert slots that " + std::to_string(layout.ep) + " ranks do not divide",
                 remedy};
  return Status::success();
}

} // namespace

Status k2c::checkCompiles(const ModelSpec &spec, const Topology &topology, const ParallelLayout &layout) {
  if (Status status = checkCompiles(topology); !status)
    return status;
  const int64_t ranks = topology.ranks();
  const std::string machines = "topology '" + shortened(topology.name) + "'";
  if (ranks > 1 && !spec.moe)
    return Error{machines,
                 "has " + std::to_string(ranks) + " ranks, and model '" + shortened(spec.name) +
                     "' no experts to divide: in this build its programs have 1 rank",
                 "use --topology host or cpu1"};
  const std::string remedy = "use " + compiledText(nearestCompiled(spec, topology, layout));
  if (layout.prefill || layout.role != PoolRole::Both)
    return Error{"--layout", "separate devices for prompts and for tokens are not in this build", remedy};
  if (Status status = checkKeys(layout, remedy); !status)
    return status;
  for (auto [key, value] : {std::pair{"ep", layout.ep}, std::pair{"dp", layout.dp}})
    if (value != ranks)
      return Error{"--layout",
                   std::string(key) + " is " + std::to_string(value) + ", " + machines + " has " +
                       std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks") +
                       ", and in this build programs are of all of them",
                   remedy};
  return checkRedundant(spec, layout, remedy);
}

Expected<ParallelLayout> k2c::parseCompileLayout(const std::string &text, const ModelSpec &spec,
                                                 const Topology &topology) {
  if (text.empty()) {
    const ParallelLayout layout = compileLayout(spec, topology);
    if (Status status = checkCompiles(spec, topology, layout); !status)
      return status.takeError();
    return layout;
  }
  const std::string remedy = "use " + compiledText(compileLayout(spec, topology));
  if (text == "search")
    return Error{"--layout search", "taking the planner's best layout is not in this build", remedy};
  Expected<ParallelLayout> layout = parseLayout(text, PlanPhase::Serve);
  if (!layout)
    return Error{layout.error().where, layout.error().message, remedy};
  if (Status status = checkCompiles(spec, topology, *layout); !status)
    return status.takeError();
  return layout;
}

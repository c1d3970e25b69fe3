//===- CompileLayout.cpp - Layouts that k2c compile accepts -------------------===//
//
// A refused layout is answered with the nearest one that compiles: as many stages where these divide ranks and layers,
// as many redundant slots as fill them, and the default's expert and data-parallel ranks.
//
//===----------------------------------------------------------------------===//

#include "k2c/Planner/CompileLayout.h"

#include "base/Utf8.h"
#include "k2c/Planner/Count.h"
#include "k2c/Planner/Evaluate.h"
#include <algorithm>

using namespace k2c;

/// Of a layer; 0: the model has none.
static int64_t routedExperts(const ModelSpec &spec) { return spec.moe ? spec.moe->experts : 0; }

/// Slots beyond the experts so that every rank has as many.
static int64_t fillingSlots(int64_t experts, int64_t ranks) { return (ranks - experts % ranks) % ranks; }

/// Stages have as many ranks each, which fill nodes, or several stages fill one, as groups of a node have equally many.
static bool dividesRanks(const Topology &topology, int64_t stages) {
  if (topology.ranks() % stages != 0)
    return false;
  const int64_t ofStage = topology.ranks() / stages, ofNode = topology.ranks() / topology.nodes();
  return ofStage % ofNode == 0 || ofNode % ofStage == 0;
}

ParallelLayout k2c::compileLayout(const ModelSpec &spec, const Topology &topology, int64_t stages) {
  ParallelLayout layout;
  layout.pp = spec.moe ? stages : topology.ranks();
  layout.ep = layout.dp = topology.ranks() / layout.pp;
  layout.redundantExperts = fillingSlots(routedExperts(spec), layout.ep);
  return layout;
}

std::optional<int64_t> k2c::nextStages(const ModelSpec &spec, const Topology &topology, int64_t stages) {
  for (int64_t more = stages + 1; more <= std::min(topology.ranks(), spec.layerCount()); ++more)
    if (dividesRanks(topology, more))
      return more;
  return std::nullopt;
}

std::vector<int64_t> k2c::stageBounds(const ModelSpec &spec, const ParallelLayout &layout) {
  std::vector<int64_t> bounds{0};
  for (const int64_t layers : stageLayers(spec.layerCount(), layout.pp, StagePartition::Balanced))
    bounds.push_back(bounds.back() + layers);
  return bounds;
}

int64_t k2c::nodesOfStage(const ParallelLayout &layout, int64_t nodes) {
  return std::max<int64_t>(nodes / (layout.pp * layout.replicas), 1);
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
  const bool areStages = layout.pp >= 1 && layout.pp <= spec.layerCount() && dividesRanks(topology, layout.pp);
  ParallelLayout nearest = compileLayout(spec, topology, areStages ? layout.pp : 1);
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
                            std::pair{"replicas", layout.replicas}})
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

/// Every stage has layers, and as many ranks.
Status checkStages(const ModelSpec &spec, const Topology &topology, const ParallelLayout &layout,
                   const std::string &remedy) {
  const int64_t ranks = topology.ranks();
  const std::string stages = "pp is " + std::to_string(layout.pp);
  if (layout.pp < 1 || layout.pp > spec.layerCount())
    return Error{"--layout",
                 stages + ", and model '" + shortened(spec.name) + "' has " + std::to_string(spec.layerCount()) +
                     " layers: every stage has one",
                 remedy};
  if (!dividesRanks(topology, layout.pp))
    return Error{"--layout",
                 stages + ", and topology '" + shortened(topology.name) + "' has " + std::to_string(ranks) +
                     " ranks on " + std::to_string(topology.nodes()) +
                     " nodes: stages have as many ranks each, which fill nodes or divide one",
                 remedy};
  return Status::success();
}

} // namespace

Status k2c::checkCompiles(const ModelSpec &spec, const Topology &topology, const ParallelLayout &layout) {
  if (Status status = checkCompiles(topology); !status)
    return status;
  const int64_t ranks = topology.ranks();
  const std::string machines = "topology '" + shortened(topology.name) + "'";
  if (ranks > spec.layerCount() && !spec.moe)
    return Error{machines,
                 "has " + std::to_string(ranks) + " ranks, and model '" + shortened(spec.name) + "' " +
                     std::to_string(spec.layerCount()) +
                     " layers and no experts to divide: in this build its programs have a layer on each rank",
                 "use a topology with fewer ranks, host or cpu1"};
  const std::string remedy = "use " + compiledText(nearestCompiled(spec, topology, layout));
  if (layout.prefill || layout.role != PoolRole::Both)
    return Error{"--layout", "separate devices for prompts and for tokens are not in this build", remedy};
  if (Status status = checkKeys(layout, remedy); !status)
    return status;
  if (Status status = checkStages(spec, topology, layout, remedy); !status)
    return status;
  const int64_t ofStage = ranks / layout.pp;
  for (auto [key, value] : {std::pair{"ep", layout.ep}, std::pair{"dp", layout.dp}})
    if (value != ofStage)
      return Error{"--layout",
                   std::string(key) + " is " + std::to_string(value) + ", " + machines + " has " +
                       std::to_string(ofStage) + (ofStage == 1 ? " rank" : " ranks") +
                       (layout.pp > 1 ? " a stage" : "") + ", and in this build programs are of all of them",
                   remedy};
  if (ofStage > 1 && !spec.moe)
    return Error{"--layout",
                 "a stage has " + std::to_string(ofStage) + " ranks, and model '" + shortened(spec.name) +
                     "' no experts to divide among them",
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
  Expected<ParallelLayout> layout = parseLayout(text, PlanPhase::Serve);
  if (!layout)
    return Error{layout.error().where, layout.error().message, remedy};
  if (Status status = checkCompiles(spec, topology, *layout); !status)
    return status.takeError();
  return layout;
}

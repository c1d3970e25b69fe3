//===- CompileLayout.cpp - Layouts that k2c compile accepts -------------------===//
//
// A refused layout is answered with the nearest one that compiles: as many stages where these divide ranks and layers,
// the nearest number of redundant slots that fills them, and the default's expert and data-parallel ranks.
//
//===----------------------------------------------------------------------===//

#include "k2c/Planner/CompileLayout.h"

#include "StageSplit.h"
#include "base/Utf8.h"
#include "k2c/Planner/Evaluate.h"
#include "k2c/Planner/TensorParts.h"
#include <algorithm>

using namespace k2c;

/// Of a layer; 0: the model has none.
static int64_t routedExperts(const ModelSpec &spec) { return spec.moe ? spec.moe->experts : 0; }

/// Slots beyond the experts so that every rank has as many.
static int64_t fillingSlots(int64_t experts, int64_t ranks) { return (ranks - experts % ranks) % ranks; }

int64_t k2c::nearestRedundant(int64_t experts, int64_t ranks, int64_t asked) {
  const int64_t slots = experts + std::clamp<int64_t>(asked, 0, (ranks - 1) * experts);
  const int64_t above = slots + fillingSlots(slots, ranks), below = std::max(experts, slots - slots % ranks);
  return (above - slots <= slots - below ? above : below) - experts;
}

/// Stages of all replicas have as many ranks each, which fill nodes, or several stages fill one, as groups of a node
/// have equally many.
static bool dividesRanks(const Topology &topology, int64_t stages) {
  if (topology.ranks() % stages != 0)
    return false;
  const int64_t ofStage = topology.ranks() / stages, ofNode = topology.ranks() / topology.nodes();
  return ofStage % ofNode == 0 || ofNode % ofStage == 0;
}

/// The most stages of one rank each, with a layer at least, that divide the ranks.
static int64_t stagesOfOneRank(const ModelSpec &spec, const Topology &topology) {
  int64_t stages = std::min(topology.ranks(), spec.layerCount());
  while (topology.ranks() % stages != 0)
    --stages;
  return stages;
}

static ParallelLayout layoutOf(const ModelSpec &spec, const Topology &topology, int64_t stages, int64_t replicas,
                               int64_t tp = 1, int64_t etp = 1) {
  ParallelLayout layout;
  layout.tp = tp;
  layout.etp = etp;
  layout.pp = stages;
  layout.replicas = replicas;
  const int64_t ofStage = topology.ranks() / (stages * replicas);
  layout.ep = spec.moe ? ofStage / etp : 1;
  layout.dp = ofStage / tp;
  layout.redundantExperts = fillingSlots(routedExperts(spec), layout.ep);
  return layout;
}

ParallelLayout k2c::compileLayout(const ModelSpec &spec, const Topology &topology, int64_t stages) {
  if (spec.moe)
    return layoutOf(spec, topology, stages, 1);
  const int64_t most = stagesOfOneRank(spec, topology);
  return layoutOf(spec, topology, most, topology.ranks() / most);
}

std::optional<ParallelLayout> k2c::withVocabularyParts(const ModelSpec &spec, ParallelLayout layout) {
  layout.vocab = layout.devicesOfStage();
  return layout.vocab > 1 && checkVocabularyParts(spec, layout.vocab) ? std::optional(layout) : std::nullopt;
}

std::optional<int64_t> k2c::nextStages(const ModelSpec &spec, const Topology &topology, int64_t stages) {
  for (int64_t more = stages + 1; more <= std::min(topology.ranks(), spec.layerCount()); ++more)
    if (dividesRanks(topology, more))
      return more;
  return std::nullopt;
}

std::vector<int64_t> k2c::stageBounds(const ModelSpec &spec, const ParallelLayout &layout) {
  std::vector<int64_t> bounds{0};
  for (const int64_t layers : planner::layersOfStages(spec, layout))
    bounds.push_back(bounds.back() + layers);
  return bounds;
}

int64_t k2c::nodesOfStage(const ParallelLayout &layout, int64_t nodes) {
  return std::max<int64_t>(nodes / (layout.pp * layout.replicas), 1);
}

std::array<int64_t, 2> k2c::hopsOfReplica(const ParallelLayout &layout, int64_t nodes, int64_t replica) {
  const int64_t ofNode = layout.devices() / nodes, ofReplica = layout.devicesOfReplica();
  std::array<int64_t, 2> hops{};
  for (int64_t stage = 1; stage < layout.pp; ++stage) {
    const int64_t first = replica * ofReplica + stage * (ofReplica / layout.pp);
    ++hops[(first - ofReplica / layout.pp) / ofNode != first / ofNode];
  }
  return hops;
}

int64_t k2c::expertSlots(const ModelSpec &spec, const ParallelLayout &layout) {
  return (routedExperts(spec) + layout.redundantExperts + layout.ep - 1) / layout.ep;
}

PlacedModel k2c::placedModel(const ModelSpec &spec, const ParallelLayout &layout) {
  return {spec.name, spec.moeLayers(), routedExperts(spec), layout.ep, expertSlots(spec, layout)};
}

ExpertPlacement k2c::defaultPlacement(const PlacedModel &model, int64_t routeLimit) {
  return placedInOrder(model, /*hasCopies=*/routeLimit == 0);
}

std::string k2c::compiledText(ParallelLayout layout) {
  layout.stepTokens = 0;
  return layout.devices() == 1 ? oneRankLayout : format(layout, PlanPhase::Serve);
}

namespace {

/// Whether the ranks can be so many stages of so many replicas.
bool isDivided(const ModelSpec &spec, const Topology &topology, int64_t stages, int64_t replicas) {
  return stages >= 1 && stages <= spec.layerCount() && replicas >= 1 && replicas <= topology.ranks() &&
         dividesRanks(topology, stages * replicas);
}

/// An error of the model's parts, at the layout.
Status asLayoutError(Status parts, const std::string &remedy) {
  return parts ? std::move(parts) : Error{"--layout", parts.error().where + " " + parts.error().message, remedy};
}

/// Groups of `key` ranks next to each other divide a stage and a node, as their rows travel between each two linears.
Status checkGroups(const char *key, int64_t group, const Topology &topology, int64_t ofStage,
                   const std::string &remedy) {
  const int64_t ofNode = topology.ranks() / topology.nodes();
  if (group < 1 || ofStage % group != 0 || ofNode % group != 0)
    return Error{"--layout",
                 std::string(key) + " is " + std::to_string(group) + ", and topology '" + shortened(topology.name) +
                     "' has " + std::to_string(ofStage) + (ofStage == 1 ? " rank" : " ranks") + " a stage and " +
                     std::to_string(ofNode) + " a node: groups divide both",
                 remedy};
  return Status::success();
}

/// And the model's heads and leaves.
Status checkTensorGroups(const ModelSpec &spec, const Topology &topology, int64_t ofStage, int64_t tp,
                         const std::string &remedy) {
  Status groups = checkGroups("tp", tp, topology, ofStage, remedy);
  return groups ? asLayoutError(checkTensorParts(spec, tp), remedy) : std::move(groups);
}

/// And the leaves of an expert.
Status checkExpertGroups(const ModelSpec &spec, const Topology &topology, int64_t ofStage, int64_t etp,
                         const std::string &remedy) {
  Status groups = checkGroups("etp", etp, topology, ofStage, remedy);
  return groups && spec.moe ? asLayoutError(checkExpertParts(spec, etp), remedy) : std::move(groups);
}

/// `layout`, where its redundant slots are ones that compile, else those nearest to them; all else is the default's.
ParallelLayout nearestCompiled(const ModelSpec &spec, const Topology &topology, const ParallelLayout &layout) {
  ParallelLayout nearest = compileLayout(spec, topology);
  const auto tryFor = [&](int64_t replicas, int64_t tp) {
    if (!isDivided(spec, topology, layout.pp, replicas))
      return false;
    const int64_t ofStage = topology.ranks() / (layout.pp * replicas);
    const bool fits = checkTensorGroups(spec, topology, ofStage, tp, "") && (spec.moe || ofStage == tp);
    if (fits)
      nearest = layoutOf(spec, topology, layout.pp, replicas, tp);
    return fits;
  };
  bool found = false;
  for (int64_t tp = std::min(layout.tp, topology.ranks()); !found && tp >= 1; --tp)
    found = tryFor(layout.replicas, tp) || tryFor(1, tp);
  int64_t etp = spec.moe ? std::clamp<int64_t>(layout.etp, 1, nearest.devicesOfStage()) : 1;
  while (!checkExpertGroups(spec, topology, nearest.devicesOfStage(), etp, ""))
    --etp;
  nearest = layoutOf(spec, topology, nearest.pp, nearest.replicas, nearest.tp, etp);
  if (layout.vocab > 1)
    nearest = withVocabularyParts(spec, nearest).value_or(nearest);
  if (layout.redundantExperts > 0 && nearest.ep > 1)
    nearest.redundantExperts = nearestRedundant(routedExperts(spec), nearest.ep, layout.redundantExperts);
  return nearest;
}

/// Keys of which this build compiles one value, and those of experts that a model has not.
Status checkKeys(const ModelSpec &spec, const ParallelLayout &layout, const std::string &remedy) {
  if (layout.cp != 1)
    return Error{"--layout", "cp is " + std::to_string(layout.cp) + ", in this build programs have cp=1", remedy};
  for (auto [key, value] : {std::pair{"ep", layout.ep}, std::pair{"etp", layout.etp}})
    if (value > 1 && !spec.moe)
      return Error{"--layout",
                   std::string(key) + " is " + std::to_string(value) + ", and model '" + shortened(spec.name) +
                       "' has no experts",
                   remedy};
  if (layout.overlap && !layout.dividesExperts() && layout.tp == 1)
    return Error{"--layout", "overlap is 1, and the ranks of ep=1 exchange nothing that could cross meanwhile", remedy};
  return Status::success();
}

/// Each rank, or group that shares experts, holds an expert once at most, and all have as many slots.
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

/// "topology 'cpu4x2' has 4 ranks a stage".
std::string ranksOfStage(const Topology &topology, const ParallelLayout &layout) {
  const int64_t ofStage = topology.ranks() / (layout.pp * layout.replicas);
  return "topology '" + shortened(topology.name) + "' has " + std::to_string(ofStage) +
         (ofStage == 1 ? " rank" : " ranks") + (layout.pp > 1 ? " a stage" : "") +
         (layout.replicas > 1 ? " of each replica" : "");
}

/// All ranks of a stage, or each by itself, have embedding and head.
Status checkVocabulary(const ModelSpec &spec, const Topology &topology, const ParallelLayout &layout,
                       const std::string &remedy) {
  if (layout.vocab != 1 && layout.vocab != layout.devicesOfStage())
    return Error{"--layout",
                 "vocab is " + std::to_string(layout.vocab) + ", " + ranksOfStage(topology, layout) +
                     ", and embedding and head are whole on each or divided among all of them",
                 remedy};
  return asLayoutError(checkVocabularyParts(spec, layout.vocab), remedy);
}

/// Experts and sequences are divided among all ranks of a stage.
Status checkWays(const ModelSpec &spec, const Topology &topology, const ParallelLayout &layout, int64_t ofStage,
                 const std::string &remedy) {
  struct {
    const char *key;
    int64_t value, group, wanted;
  } ways[] = {{"ep", layout.ep, layout.etp > 1 ? layout.etp : layout.tp, spec.moe ? ofStage / layout.etp : 1},
              {"dp", layout.dp, layout.tp, ofStage / layout.tp}};
  for (const auto &way : ways)
    if (way.value != way.wanted)
      return Error{"--layout",
                   std::string(way.key) + " is " + std::to_string(way.value) + ", " + ranksOfStage(topology, layout) +
                       (way.group > 1 ? " in groups of " + std::to_string(way.group) : "") +
                       ", and in this build programs are of all of them",
                   remedy};
  if (ofStage > layout.tp && !spec.moe)
    return Error{"--layout",
                 "a stage has " + std::to_string(ofStage) + " ranks, and model '" + shortened(spec.name) +
                     "' no experts to divide among them",
                 remedy};
  return Status::success();
}

/// Every stage has layers, and all stages of all replicas as many ranks.
Status checkStages(const ModelSpec &spec, const Topology &topology, const ParallelLayout &layout,
                   const std::string &remedy) {
  const int64_t ranks = topology.ranks();
  const std::string stages =
      "pp is " + std::to_string(layout.pp) +
      (layout.replicas == 1 ? "" : " in each of " + std::to_string(layout.replicas) + " replicas");
  if (layout.pp < 1 || layout.pp > spec.layerCount())
    return Error{"--layout",
                 stages + ", and model '" + shortened(spec.name) + "' has " + std::to_string(spec.layerCount()) +
                     " layers: every stage has one",
                 remedy};
  if (layout.replicas < 1 || layout.replicas > ranks || !dividesRanks(topology, layout.pp * layout.replicas))
    return Error{"--layout",
                 stages + ", and topology '" + shortened(topology.name) + "' has " +
                     (ranks == 1 ? std::string("1 rank")
                                 : std::to_string(ranks) + " ranks on " + std::to_string(topology.nodes()) + " nodes") +
                     ": stages have as many ranks each, which fill nodes or divide one",
                 remedy};
  if (layout.layers.empty())
    return Status::success();
  Status split = planner::checkSplit(spec, layout, PlanPhase::Serve);
  return split ? std::move(split) : Error{"--layout", "layers " + split.error().message, remedy};
}

} // namespace

Status k2c::checkCompiles(const ModelSpec &spec, const Topology &topology, const ParallelLayout &layout) {
  if (Status status = checkCompiles(topology); !status)
    return status;
  const int64_t ranks = topology.ranks();
  const std::string remedy = "use " + compiledText(nearestCompiled(spec, topology, layout));
  if (layout.prefill || layout.role != PoolRole::Both)
    return Error{"--layout", "separate devices for prompts and for tokens are not in this build", remedy};
  if (Status status = checkKeys(spec, layout, remedy); !status)
    return status;
  if (Status status = checkStages(spec, topology, layout, remedy); !status)
    return status;
  const int64_t ofStage = ranks / (layout.pp * layout.replicas);
  if (Status status = checkTensorGroups(spec, topology, ofStage, layout.tp, remedy); !status)
    return status;
  if (Status status = checkExpertGroups(spec, topology, ofStage, layout.etp, remedy); !status)
    return status;
  if (Status status = checkWays(spec, topology, layout, ofStage, remedy); !status)
    return status;
  if (Status status = checkVocabulary(spec, topology, layout, remedy); !status)
    return status;
  return checkRedundant(spec, layout, remedy);
}

/// Whether each size is one that products of all of them can be made of.
static bool isSmall(const ParallelLayout &layout, int64_t ranks) {
  const int64_t sizes[] = {layout.tp, layout.ep, layout.etp, layout.dp, layout.pp, layout.replicas};
  return std::all_of(std::begin(sizes), std::end(sizes), [&](int64_t size) { return size >= 1 && size <= ranks; });
}

ParallelLayout k2c::withReplicas(ParallelLayout layout, bool hasExperts, int64_t ranks) {
  if (!isSmall(layout, ranks) || layout.cp != 1 || layout.devices() != ranks)
    return layout;
  const int64_t shared = layout.tp * layout.dp, group = hasExperts ? layout.ep * layout.etp : layout.tp,
                copies = shared / group;
  if (shared % group != 0 || layout.dp % copies != 0)
    return layout;
  layout.dp /= copies;
  layout.replicas *= copies;
  if (layout.vocab == shared)
    layout.vocab = layout.devicesOfStage();
  return layout;
}

bool k2c::isOfProgram(const ParallelLayout &layout, int64_t ranks, int64_t layers) {
  if (layout.prefill || layout.cp != 1 || !isSmall(layout, ranks) || (layout.etp & (layout.etp - 1)) != 0)
    return false;
  if (layout.vocab != 1 && layout.vocab != layout.devicesOfStage())
    return false;
  const bool isDense = !layout.dividesExperts() && layout.dp == 1;
  const bool isShared = layout.ep * layout.etp == layout.tp * layout.dp;
  if ((!isShared && !isDense) || layout.pp > layers || layout.devices() != ranks)
    return false;
  int64_t sum = 0;
  for (const int64_t each : layout.layers)
    sum += each < 1 || each > layers ? layers + 1 : each;
  return layout.layers.empty() || (int64_t(layout.layers.size()) == layout.pp && sum == layers);
}

std::optional<ParallelLayout> k2c::readCompiledLayout(const std::string &text, int64_t ranks, int64_t layers) {
  Expected<ParallelLayout> layout = parseLayout(text, PlanPhase::Serve);
  return layout && isOfProgram(*layout, ranks, layers) ? std::optional(*layout) : std::nullopt;
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
  layout = withReplicas(*layout, spec.moe.has_value(), topology.ranks());
  if (Status status = checkCompiles(spec, topology, *layout); !status)
    return status.takeError();
  return layout;
}

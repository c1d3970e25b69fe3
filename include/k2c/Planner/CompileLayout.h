//===- CompileLayout.h - Layouts that k2c compile accepts ---------------------===//
//
// A program of one rank, or of several: replicas of the model, in each of them stages (pp) with a part of the layers,
// whose ranks have sequences of their own (dp) and a part of the experts (ep). Both are as many as a stage has ranks;
// or groups of `tp` ranks next to each other have them, each with a part of heads and MLPs (TensorParts.h). Experts may
// be divided among as many groups of `etp` ranks next to each other, each with a part of every expert of its group. All
// ranks of a stage may have a part of embedding and head (vocab). What else a plan may divide is planned, and not
// compiled in this build. The one list, for k2c compile and for the notes of plans (whyNotCompiled).
//
//===----------------------------------------------------------------------===//
#ifndef K2C_PLANNER_COMPILELAYOUT_H
#define K2C_PLANNER_COMPILELAYOUT_H

#include "base/ExpertPlacement.h"
#include "k2c/Cluster/Topology.h"
#include "k2c/Model/ModelSpec.h"
#include "k2c/Planner/ClusterPlan.h"
#include <array>
#include <optional>
#include <vector>

namespace k2c {

/// The layout of a compile that names none: one rank; on several ranks one replica over all of them, in `stages`
/// stages, with redundant slots that fill the last rank. A model without experts has a stage on each rank, in as many
/// replicas as it takes where its layers are too few.
ParallelLayout compileLayout(const ModelSpec &spec, const Topology &topology, int64_t stages = 1);

/// `layout` whose ranks have parts of embedding and head, all of a stage. Nothing where a stage is one rank, or the
/// model does not divide both.
std::optional<ParallelLayout> withVocabularyParts(const ModelSpec &spec, ParallelLayout layout);

/// More stages than `stages`, the fewest into which the ranks of `topology` and the layers of `spec` can be divided.
std::optional<int64_t> nextStages(const ModelSpec &spec, const Topology &topology, int64_t stages);

/// Of the numbers of redundant slots with which so many ranks compile, the one nearest to `asked`: none, or as many as
/// give all ranks equally many slots, at most a slot of each expert on each rank. Of two, the larger.
int64_t nearestRedundant(int64_t experts, int64_t ranks, int64_t asked);

/// What `--layout text` asks of a compile; "" is compileLayout. Errors: those of parseLayout, which take any key of a
/// serving layout, and of checkCompiles; each names the nearest layout that compiles.
Expected<ParallelLayout> parseCompileLayout(const std::string &text, const ModelSpec &spec, const Topology &topology);

/// `layout` of `ranks` ranks with data-parallel ranks that share nothing with others, no experts of a model that has
/// such, as those of other replicas. A vocab of all ranks that were one stage becomes that of a replica's stage.
ParallelLayout withReplicas(ParallelLayout layout, bool hasExperts, int64_t ranks);

/// Whether a program of `ranks` ranks and `layers` layers may have this layout, which anyone may have written: what
/// compiles divides nothing else, and ranks exactly.
bool isOfProgram(const ParallelLayout &layout, int64_t ranks, int64_t layers);

/// The layout that the manifest of a program of `ranks` ranks and `layers` layers says. Nothing where it is
/// none of a program.
std::optional<ParallelLayout> readCompiledLayout(const std::string &text, int64_t ranks, int64_t layers);

/// Whether this build compiles `spec` for all ranks of `topology` under `layout`; the error has both numbers and the
/// nearest layout that compiles.
Status checkCompiles(const ModelSpec &spec, const Topology &topology, const ParallelLayout &layout);

/// The first layer of each stage of `layout`, and the end of the last: {0, layers} of one.
std::vector<int64_t> stageBounds(const ModelSpec &spec, const ParallelLayout &layout);

/// On how many of a topology's `nodes` nodes the ranks of a stage are.
int64_t nodesOfStage(const ParallelLayout &layout, int64_t nodes);

/// How often a row goes from stage to stage of `replica` within a node, and between nodes, of `nodes` that have the
/// ranks of `layout`.
std::array<int64_t, 2> hopsOfReplica(const ParallelLayout &layout, int64_t nodes, int64_t replica);

/// Slots of a rank for the routed experts of a layer, of which those of a group have parts; 0: the model has none.
int64_t expertSlots(const ModelSpec &spec, const ParallelLayout &layout);

/// What a placement of the experts of a program has to be of: its ranks are the groups that share experts (ep).
PlacedModel placedModel(const ModelSpec &spec, const ParallelLayout &layout);

/// The placement of a program for which nobody says one: in order, and over again; once each where tokens are bound to
/// `routeLimit` nodes, 0: any, as an expert is on one node then.
ExpertPlacement defaultPlacement(const PlacedModel &model, int64_t routeLimit);

/// The text of `layout` in #dist.plan and in a bundle: without step, which is a limit. oneRankLayout for one rank.
std::string compiledText(ParallelLayout layout);

} // namespace k2c

#endif // K2C_PLANNER_COMPILELAYOUT_H

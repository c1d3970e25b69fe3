// What a manifest says of the ranks of a program: how many, how the model is divided among them, what they exchange.
#ifndef K2RT_PROGRAM_RANKFACTS_H
#define K2RT_PROGRAM_RANKFACTS_H

#include "base/JsonFields.h"
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace k2c::runtime {

/// The file that says which rank has which experts.
struct PlacementFacts {
  std::string file, hash;
  int64_t experts = 0; ///< of a MoE layer
  int64_t slots = 0;   ///< of a MoE layer, of all ranks
};

/// A site of the program at which ranks exchange rows.
struct CollectiveFacts {
  int32_t op = 0;        ///< K2RT_ALL_TO_ALL_ROWS, K2RT_GATHER_SLICES, K2RT_SCATTER_SLICES, K2RT_SEND or K2RT_RECEIVE
  std::string group;     ///< "ep", "etp", "tp", "pp", "node", "rail" or "stage"
  int32_t axis = 0;      ///< K2RT_AXIS_* of it
  int64_t members = 0;   ///< by the topology
  int64_t quotaRows = 0; ///< that a rank may send to another; 0: the program knows how many
  int64_t rowBytes = 0;
  std::string name; ///< of op
};

struct OneRankFacts {
  int64_t node = 0, stage = 0;
  int64_t firstLayer = 0, endLayer = 0;
  int64_t slots = 0;   ///< for experts of a MoE layer
  int64_t weights = 0; ///< bytes it maps
};

/// Of a program whose steps may go in two halves: rows of one rank.
struct HalvesFacts {
  int64_t rows = 0; ///< a half has at most; 0: steps are whole
  int64_t from = 0; ///< steps of which a rank has at least so many go in halves
};

/// Ranks that have the same layers.
struct StageFacts {
  int64_t firstLayer = 0, endLayer = 0;
  /// Of each plane of the cache, which of its layers: [first, end) in the order of the plane's.
  std::vector<std::array<int64_t, 2>> cache;
};

struct RankFacts {
  int64_t count = 1, nodes = 1;
  std::array<std::string, 2> tiers = {"node", "network"}; ///< links within a node, and between nodes
  std::array<std::vector<std::string>, 2>
      foldedTiers; ///< of the topology, where several are one of these; innermost first
  std::string layout = "dp=1";
  int64_t replicas = 1; ///< copies of the model, each with as many ranks
  int64_t tp = 1;       ///< ranks of a stage, next to each other, that have parts of weights and slices of one step
  int64_t vocab = 1;    ///< ranks of a stage that have parts of embedding and head: all, or 1
  int64_t etp = 1;      ///< ranks of a stage, next to each other, that have parts of the same experts
  bool divideExperts = false; ///< the ranks of a stage, those of a layer
  PlacementFacts placement;   ///< of several ranks
  std::vector<CollectiveFacts> collectives;
  std::vector<OneRankFacts> each; ///< of several ranks: an entry for each
  std::vector<StageFacts> stages; ///< two or more; none: every rank has all layers
  HalvesFacts halves;
  std::string collectivesJson = "[]";

  bool areSeveral() const { return count > 1; }
  int64_t stageCount() const { return std::max<int64_t>(static_cast<int64_t>(stages.size()), 1); }
  /// Of one stage of a replica: its ranks, and the nodes they are on.
  int64_t stageRanks() const { return count / (stageCount() * replicas); }
  /// That divide the experts of a layer: those with parts of the same ones count as one.
  int64_t expertRanks() const { return stageRanks() / etp; }
  int64_t expertRankOf(int64_t rank) const { return placeOf(rank) / etp; }
  int64_t stageNodes() const { return std::max<int64_t>(nodes / (stageCount() * replicas), 1); }
  int64_t stageOf(int64_t rank) const { return rank / stageRanks() % stageCount(); }
  /// Its number in its stage, by which experts are divided.
  int64_t placeOf(int64_t rank) const { return rank % stageRanks(); }
  int64_t replicaOf(int64_t rank) const { return rank / (stageRanks() * stageCount()); }
  /// Ranks that carry rows of their own: those of a stage, in all replicas. Those of one place and replica carry the
  /// same ones in all stages.
  int64_t sources() const { return stageRanks() * replicas; }
  int64_t sourceOf(int64_t rank) const { return replicaOf(rank) * stageRanks() + placeOf(rank); }
  /// Which of the ranks that carry the rows of `source` is in `stage`.
  int64_t rankOf(int64_t source, int64_t stage) const {
    return (source / stageRanks() * stageCount() + stage) * stageRanks() + placeOf(source);
  }
  /// Groups of `tp` sources, which have slices of one step and the sequences of one.
  int64_t dataRanks() const { return sources() / tp; }
  int64_t dataRankOf(int64_t rank) const { return sourceOf(rank) / tp; }
  /// Which slice of a step a rank carries, and which part of weights it has.
  int64_t sliceOf(int64_t rank) const { return placeOf(rank) % tp; }
  /// Of the model's `layers` layers, those of the rank.
  std::array<int64_t, 2> layersOf(int64_t rank, int64_t layers) const {
    if (stages.empty())
      return {0, layers};
    const StageFacts &stage = stages[static_cast<size_t>(stageOf(rank))];
    return {stage.firstLayer, stage.endLayer};
  }
  bool isFirstStage(int64_t rank) const { return stageOf(rank) == 0; }
  bool isLastStage(int64_t rank) const { return stageOf(rank) + 1 == stageCount(); }
};

/// Reads "topology", "layout", "stages", "placement", "collectives", "ranks" and "halves" of a manifest whose model has
/// so many layers and experts. Programs of one rank need none of them.
RankFacts readRankFacts(const JsonFields &root, int64_t layers, int64_t experts);

} // namespace k2c::runtime

#endif

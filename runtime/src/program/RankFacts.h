// What a manifest says of the ranks of a program: how many, how the model is divided among them, what they exchange.
#ifndef K2RT_PROGRAM_RANKFACTS_H
#define K2RT_PROGRAM_RANKFACTS_H

#include "base/JsonFields.h"
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
  std::string group;     ///< "ep", "node" or "rail"
  int32_t axis = 0;      ///< K2RT_AXIS_* of it
  int64_t members = 0;   ///< by the topology
  int64_t quotaRows = 0; ///< that a rank may send to another; 0: the program knows how many
  int64_t rowBytes = 0;
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

struct RankFacts {
  int64_t count = 1, nodes = 1;
  std::array<std::string, 2> tiers = {"node", "network"}; ///< links within a node, and between nodes
  std::string layout = "dp=1";
  PlacementFacts placement; ///< of several ranks
  std::vector<CollectiveFacts> collectives;
  std::vector<OneRankFacts> each; ///< of several ranks: an entry for each
  HalvesFacts halves;
  std::string collectivesJson = "[]";

  bool areSeveral() const { return count > 1; }
};

/// Reads "topology", "layout", "placement", "collectives", "ranks" and "halves" of a manifest whose model has so many
/// layers and experts. Programs of one rank need none of them.
RankFacts readRankFacts(const JsonFields &root, int64_t layers, int64_t experts);

} // namespace k2c::runtime

#endif

// placement.json: which rank holds which experts of each MoE layer, as the tables that kernels read.
#ifndef K2RT_PROGRAM_PLACEMENT_H
#define K2RT_PROGRAM_PLACEMENT_H

#include "program/Manifest.h"
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace k2c::runtime {

class Placement {
public:
  /// That of a program of one rank: no tables.
  Placement() = default;
  /// Reads the text of file `place`. Refuses one of another model or of other ranks, a MoE layer that is missing, a
  /// slot too many, and an expert that is in no slot of a layer or in two.
  static Expected<Placement> parse(std::string_view text, const std::string &place, const Manifest &manifest);

  /// For k2rt_ir_rank: a table of k2rt/placement.h for each MoE layer. Null without tables.
  const int32_t *tables() const { return entries.empty() ? nullptr : entries.data(); }
  /// Slots of a rank, for each MoE layer.
  int64_t slotsOfRank() const { return slots / ranks; }
  int64_t experts() const { return expertCount; }
  /// What is in the slots of `rank` in layer `layer` of the checkpoint: an expert each, -1: empty. Null for a layer
  /// without experts.
  const int32_t *expertsOf(int64_t layer, int64_t rank) const;

private:
  int32_t *tableOf(size_t moeLayer);

  std::vector<int64_t> moeLayers; ///< indices in the checkpoint, ascending
  int64_t expertCount = 0, slots = 0, ranks = 1;
  std::vector<int32_t> entries;
};

} // namespace k2c::runtime

#endif

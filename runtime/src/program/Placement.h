// Which rank holds which experts of each MoE layer, as the tables that kernels of one rank read: that of
// placement.json, or those of the files of --placement, and at which steps each holds.
#ifndef K2RT_PROGRAM_PLACEMENT_H
#define K2RT_PROGRAM_PLACEMENT_H

#include "base/ExpertPlacement.h"
#include "program/Manifest.h"
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace k2c::runtime {

/// A file that takes the place of placement.json from a step on.
struct PlacementFile {
  std::string path;
  int64_t fromStep = 0;
};
/// Its text.
struct PlacementText {
  std::string place, text;
  int64_t fromStep = 0;
};
/// Reads `files`, in the order of their steps. Refuses two from one step on.
Expected<std::vector<PlacementText>> readPlacementFiles(std::vector<PlacementFile> files);

class Placement {
public:
  /// That of a program of one rank: no tables.
  Placement() = default;
  /// Of `rank`, by `texts` in the order of their steps, the first from step 0. Refuses what readExpertPlacement does.
  static Expected<Placement> parse(const std::vector<PlacementText> &texts, const Manifest &manifest, int32_t rank);

  /// Tables of a run are numbered; 0 of them without experts on several ranks.
  size_t count() const { return numbered.size(); }
  /// The one of step `step`, which has more rows of prompts than of generated tokens or not.
  size_t tableAt(int64_t step, bool isPrefill) const;
  /// For k2rt_ir_rank: of k2rt/placement.h one for each MoE layer. Null without tables.
  const int32_t *entries(size_t table) const { return numbered.empty() ? nullptr : numbered[table].data(); }
  /// Slots of a rank, for each MoE layer.
  int64_t slotsOfRank() const { return slots / ranks; }
  int64_t experts() const { return expertCount; }
  /// What is in the slots of this rank in layer `layer` of the checkpoint: an expert each, -1: empty. Null for a layer
  /// without experts.
  const int32_t *expertsOf(size_t table, int64_t layer) const;

private:
  /// From a step on, the tables of steps of mostly prompt tokens, and of others.
  struct Period {
    int64_t fromStep;
    size_t prefill, decode;
  };
  std::vector<int32_t> fill(const ExpertPlacement &placement, std::vector<int32_t> PlacedExperts::*phase,
                            int64_t nodes) const;

  std::vector<int64_t> moeLayers; ///< indices in the checkpoint, ascending
  int64_t expertCount = 0, slots = 0, ranks = 1, rank = 0;
  std::vector<std::vector<int32_t>> numbered;
  std::vector<Period> periods; ///< by step
};

} // namespace k2c::runtime

#endif

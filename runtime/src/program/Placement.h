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
/// Its text, or that of the bundle's own.
struct PlacementText {
  std::string place, text;
  int64_t fromStep = 0;
  bool isOwn = false;
};
/// What goes by a file: from a step on, the tables of steps of mostly prompt tokens, and of others.
struct PlacementPeriod {
  std::string place;
  int64_t fromStep;
  size_t prefill, decode;
  bool isOwn; ///< the bundle's
};
/// The table of step `step`, which has more rows of prompts than of generated tokens or not.
size_t tableAt(const std::vector<PlacementPeriod> &periods, int64_t step, bool isPrefill);
/// Reads `files`, in the order of their steps. Refuses two from one step on, and standard input, which ranks that are
/// processes do not share.
Expected<std::vector<PlacementText>> readPlacementFiles(std::vector<PlacementFile> files);

class Placement {
public:
  /// That of a program of one rank: no tables.
  Placement() = default;
  /// Of `rank`, by `texts` in the order of their steps, the first from step 0. Refuses what readExpertPlacement does.
  static Expected<Placement> parse(const std::vector<PlacementText> &texts, const Manifest &manifest, int32_t rank);

  /// Tables of a run are numbered, 64 at most; 0 of them without experts on several ranks.
  size_t count() const { return numbered.size(); }
  /// When each holds, by step.
  const std::vector<PlacementPeriod> &periods() const { return inOrder; }
  /// For k2rt_ir_rank: of k2rt/placement.h one for each MoE layer. Null without tables.
  const int32_t *entries(size_t table) const { return numbered.empty() ? nullptr : numbered[table].data(); }
  /// Slots of a rank, for each MoE layer.
  int64_t slotsOfRank() const { return slots / ranks; }
  int64_t experts() const { return expertCount; }
  /// What is in the slots of this rank in layer `layer` of the checkpoint: an expert each, -1: empty. Null for a layer
  /// without experts.
  const int32_t *expertsOf(size_t table, int64_t layer) const;

private:
  std::vector<int32_t> fill(const ExpertPlacement &placement, std::vector<int32_t> PlacedExperts::*phase,
                            int64_t nodes) const;

  std::vector<int64_t> moeLayers;                          ///< indices in the checkpoint, ascending
  int64_t expertCount = 0, slots = 0, ranks = 1, rank = 0; ///< of a stage; this one's number in it
  std::vector<std::vector<int32_t>> numbered;
  std::vector<PlacementPeriod> inOrder;
};

} // namespace k2c::runtime

#endif

// Which experts are in the slots of each rank, as a file says it: a bundle's placement.json, and what --placement
// names.
#ifndef K2C_BASE_EXPERTPLACEMENT_H
#define K2C_BASE_EXPERTPLACEMENT_H

#include "base/Error.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace k2c {

/// Of a file.
inline constexpr int64_t maxPlacementBytes = int64_t(256) << 20;

/// What a placement is for.
struct PlacedModel {
  std::string name;
  std::vector<int64_t> layers; ///< with experts: indices in the checkpoint, ascending
  int64_t experts = 0, ranks = 1;
  std::optional<int64_t> slotsOfRank; ///< none: those of the file, as many on each rank
};

/// Of a layer: the expert in each slot of all ranks, -1: none. Steps of mostly prompt tokens go by the one, others by
/// the other.
struct PlacedExperts {
  std::vector<int32_t> prefill, decode;
};

struct ExpertPlacement {
  int64_t slotsOfRank = 0;
  std::map<int64_t, PlacedExperts> layers;

  /// Whether a layer has another placement for prompts than for generated tokens.
  bool hasPhases() const;
};

/// Experts in order, one a slot and, if `hasCopies`, over again while there are slots and a rank does not have the
/// expert already.
ExpertPlacement placedInOrder(const PlacedModel &model, bool hasCopies);
/// Refuses, with the field of file `place`, another model, number of experts or ranks, a layer that is missing, other
/// numbers of slots, an expert that is in no slot, or twice on a rank.
Expected<ExpertPlacement> readExpertPlacement(std::string_view text, const std::string &place, const PlacedModel &model,
                                              const char *remedy);
/// The text of the file.
std::string placementText(const PlacedModel &model, const ExpertPlacement &placement);

} // namespace k2c

#endif

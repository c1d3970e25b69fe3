// What ranks that are processes find out of one another before any of them maps a weight: that they have the same
// bundle, and who shares a host with whom.
#ifndef K2RT_ENGINE_AGREEMENT_H
#define K2RT_ENGINE_AGREEMENT_H

#include "exchange/Exchange.h"
#include "program/FileList.h"
#include "program/Manifest.h"
#include "program/PackedRanks.h"
#include "program/Placement.h"
#include <array>
#include <vector>

namespace k2c::runtime {

/// What a rank says of itself, as bytes that are the same in all processes.
struct RankPresence {
  /// Of manifest, program, placement and all files of the bundle but those of its weights; 0: it has none.
  std::array<uint64_t, 4> hashes{};
  uint64_t placements = 0; ///< of those beside the bundle; 0: there are none
  /// Of the weights that all ranks have; and of the index of all weights, 0: they are of some ranks.
  uint64_t commonWeights = 0, allWeights = 0;
  std::array<char, 64> host{}; ///< its name, cut where it is longer
  std::array<char, 40> boot{}; ///< of its system: ranks on one host have both in common
};

/// Of this process, with a bundle whose list and manifest are read, with `placements` and the weights of `packed`.
RankPresence presenceOf(const FileList &files, const Manifest &manifest, const std::vector<PlacementText> &placements,
                        const PackedRanks &packed);

/// This rank's place among those of its host.
struct HostPlace {
  int32_t index = 0, ranks = 1;
};

/// Where rank `own` of `all` is. Refuses, with the rank and both values, a bundle unlike that of rank 0, a number of
/// ranks unlike the manifest's and, where ranks are on several hosts, nodes of the plan that are not each on one.
Expected<HostPlace> placeAmong(const std::vector<RankPresence> &all, const RankFacts &ranks, int32_t own);

/// Gathers what all ranks say, and is told where this one is. Has patience while other ranks read their bundles.
Expected<HostPlace> agree(Exchange &exchange, const RankPresence &own, const RankFacts &ranks);

} // namespace k2c::runtime

#endif

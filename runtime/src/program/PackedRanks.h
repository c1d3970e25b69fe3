// weights/ranks.json: what the weights of all hosts have in common, and of which ranks a host's are, where k2c pack
// --ranks has left out the experts of others.
#ifndef K2RT_PROGRAM_PACKEDRANKS_H
#define K2RT_PROGRAM_PACKEDRANKS_H

#include "program/FileList.h"
#include "program/Manifest.h"
#include <vector>

namespace k2c::runtime {

/// The files that may differ between hosts which have the weights of different ranks.
inline constexpr const char *packedRanksFile = "weights/ranks.json";
inline constexpr const char *weightIndexFile = "weights/index.json";

struct PackedRanks {
  std::vector<int64_t> ranks; ///< ascending; none: all
  uint64_t common = 0;        ///< hash of the weights that all ranks have; 0: there are no weights
};

Expected<PackedRanks> readPackedRanks(const FileList &files, const Manifest &manifest);

/// Refuses a rank whose weights are not there.
Status checkPacked(const PackedRanks &packed, const std::string &folder, int32_t rank);

} // namespace k2c::runtime

#endif

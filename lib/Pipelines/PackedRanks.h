//===- PackedRanks.h - What some ranks read of the weights -----------------===//
#ifndef K2C_LIB_PIPELINES_PACKEDRANKS_H
#define K2C_LIB_PIPELINES_PACKEDRANKS_H

#include "k2c/Model/ModelSpec.h"
#include "k2c/Weights/WeightMap.h"
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace k2c {

/// The weights that the ranks of a host map: of their stages' layers, of their parts, and of their experts.
struct PackedRanks {
  std::vector<int64_t> ranks; ///< ascending; none: all
  /// By slot that one of them maps: of a table of experts those of the ranks that do.
  std::map<int64_t, std::set<int32_t>> slots;

  /// `expert`: -1 of a slot without.
  bool takes(const WeightSlot &slot, int64_t expert) const;
};

/// What the ranks of `list`, "8-15,20", read by the manifest and the placement of `bundle`, whose slots `map` has; "":
/// all. Errors: no list of ranks of the program, a manifest or a placement that is damaged.
Expected<PackedRanks> readPackedRanks(const std::string &bundle, const std::string &list,
                                      const nlohmann::json &manifest, const ModelSpec &spec, const WeightMap &map);

} // namespace k2c

#endif // K2C_LIB_PIPELINES_PACKEDRANKS_H

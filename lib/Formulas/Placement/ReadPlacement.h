//===- ReadPlacement.h - Loads and layouts that placement queries read ----===//
#ifndef K2C_LIB_FORMULAS_PLACEMENT_READPLACEMENT_H
#define K2C_LIB_FORMULAS_PLACEMENT_READPLACEMENT_H

#include "k2c/Formulas/Query.h"
#include "k2c/Planner/Placement.h"

namespace k2c::formulas {

/// One load for each expert of each layer, all layers equally many; empty after a mistake at `key`.
std::vector<ExpertLoad> readLoads(QueryInputs &in, const std::string &key);

/// Reads num_replicas (`replicas` where absent), num_groups, num_nodes and num_gpus, and checks them against the
/// experts.
ReplicaLayout readLayout(QueryInputs &in, int64_t experts, std::optional<int64_t> replicas);

/// Refuses more slots in all layers than a query places in a moment (2^20).
void limitSlots(QueryInputs &in, size_t layers, const ReplicaLayout &layout);

} // namespace k2c::formulas

#endif // K2C_LIB_FORMULAS_PLACEMENT_READPLACEMENT_H

//===- ReadPlacement.cpp - Loads and layouts that placement queries read ------===//

#include "ReadPlacement.h"
#include "base/JsonText.h"

using namespace k2c;
using nlohmann::json;

namespace {

constexpr int64_t mostSlots = 1 << 16; ///< of a layer
constexpr int64_t mostSlotsInAll = 1 << 20;
constexpr float mostLoad = 1e30f; ///< sums of a layer stay finite

} // namespace

std::vector<ExpertLoad> planner::readLoads(QueryInputs &in, const std::string &key) {
  const json *table = in.raw(key);
  if (!table || !table->is_array() || table->empty()) {
    in.fail(key, table ? "must be a list of layers" : "is missing", "give [[load of each expert], ..]");
    return {};
  }
  std::vector<ExpertLoad> loads;
  for (const json &row : *table) {
    std::string layer = "layer " + std::to_string(loads.size());
    if (!row.is_array() || row.empty() || int64_t(row.size()) > mostSlots)
      in.fail(key, layer + " must be a list of 1 to " + std::to_string(mostSlots) + " loads");
    else if (!loads.empty() && row.size() != loads[0].size())
      in.fail(key,
              layer + " has " + std::to_string(row.size()) + " experts, layer 0 has " + std::to_string(loads[0].size()),
              "give one load for each expert");
    if (!in.ok())
      return {};
    ExpertLoad load;
    for (const json &item : row) {
      float value = item.is_number() ? item.get<float>() : -1;
      if (!(value >= 0 && value <= mostLoad)) {
        in.fail(key,
                layer + ", expert " + std::to_string(load.size()) + " must be 0 to 1e+30, got " + shortenedJson(item));
        return {};
      }
      load.push_back(value);
    }
    loads.push_back(std::move(load));
  }
  return loads;
}

ReplicaLayout planner::readLayout(QueryInputs &in, int64_t experts, std::optional<int64_t> replicas) {
  ReplicaLayout layout;
  layout.replicas = in.whole("num_replicas", replicas, 1, mostSlots);
  layout.groups = in.whole("num_groups", 1, 1, mostSlots);
  layout.nodes = in.whole("num_nodes", 1, 1, mostSlots);
  layout.gpus = in.whole("num_gpus", 1, mostSlots);
  if (in.ok())
    if (Status status = checkLayout(layout, experts); !status)
      in.fail(status.error().where, status.error().message, status.error().remedy);
  return layout;
}

void planner::limitSlots(QueryInputs &in, size_t layers, const ReplicaLayout &layout) {
  int64_t slots = int64_t(layers) * layout.replicas;
  if (in.ok() && slots > mostSlotsInAll)
    in.fail("weight",
            "and its layout have " + std::to_string(slots) + " slots in all, at most " + std::to_string(mostSlotsInAll),
            "ask for fewer layers at once");
}

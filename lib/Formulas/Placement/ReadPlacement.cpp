//===- ReadPlacement.cpp - Loads and layouts that placement queries read --===//

#include "ReadPlacement.h"
#include "base/JsonText.h"

using namespace k2c;
using nlohmann::json;

namespace {

constexpr int64_t maxSlots = 1 << 16; ///< of a layer
constexpr int64_t maxSlotsInAll = 1 << 20;
constexpr float maxLoad = 1e30f; ///< sums of a layer stay finite

} // namespace

std::vector<ExpertLoad> formulas::readLoads(QueryInputs &in, const std::string &key) {
  const json *table = in.raw(key);
  if (!table || !table->is_array() || table->empty()) {
    in.fail(key, table ? "must be a list of layers" : "is missing", "give [[load of each expert], ..]");
    return {};
  }
  std::vector<ExpertLoad> loads;
  for (const json &row : *table) {
    std::string layer = "layer " + std::to_string(loads.size());
    if (!row.is_array() || row.empty() || int64_t(row.size()) > maxSlots)
      in.fail(key, layer + " must be a list of 1 to " + std::to_string(maxSlots) + " loads");
    else if (!loads.empty() && row.size() != loads[0].size())
      in.fail(key,
              layer + " has " + std::to_string(row.size()) + " experts, layer 0 has " + std::to_string(loads[0].size()),
              "give one load for each expert");
    if (!in.ok())
      return {};
    ExpertLoad load;
    for (const json &item : row) {
      float value = item.is_number() ? item.get<float>() : -1;
      if (!(value >= 0 && value <= maxLoad)) {
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

ReplicaLayout formulas::readLayout(QueryInputs &in, int64_t experts, std::optional<int64_t> replicas) {
  ReplicaLayout layout;
  layout.replicas = in.whole("num_replicas", replicas, 1, maxSlots);
  layout.groups = in.whole("num_groups", 1, 1, maxSlots);
  layout.nodes = in.whole("num_nodes", 1, 1, maxSlots);
  layout.gpus = in.whole("num_gpus", 1, maxSlots);
  if (in.ok())
    if (Status status = checkLayout(layout, experts); !status)
      in.fail(status.error().where, status.error().message, status.error().remedy);
  return layout;
}

void formulas::limitSlots(QueryInputs &in, size_t layers, const ReplicaLayout &layout) {
  int64_t slots = int64_t(layers) * layout.replicas;
  if (in.ok() && slots > maxSlotsInAll)
    in.fail("weight",
            "and its layout have " + std::to_string(slots) + " slots in all, at most " + std::to_string(maxSlotsInAll),
            "ask for fewer layers at once");
}

//===- PlacementQueries.cpp - Queries about where experts lie -----------------===//

#include "../Query/Parts.h"
#include "k2c/Planner/Placement.h"
#include <algorithm>

using namespace k2c;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

constexpr int64_t mostSlots = 1 << 16;   ///< of a layer
constexpr int64_t mostNumbers = 1 << 22; ///< of an answer
constexpr float mostLoad = 1e30f;        ///< sums of a layer stay finite

/// One load for each expert of each layer; empty after a mistake.
std::vector<ExpertLoad> readLoads(QueryInputs &in, const std::string &key) {
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
        in.fail(key, layer + ", expert " + std::to_string(load.size()) + " must be 0 to 1e+30, got " +
                         item.dump().substr(0, 60));
        return {};
      }
      load.push_back(value);
    }
    loads.push_back(std::move(load));
  }
  return loads;
}

ReplicaLayout readLayout(QueryInputs &in, int64_t experts) {
  ReplicaLayout layout;
  layout.replicas = in.whole("num_replicas", 1, mostSlots);
  layout.groups = in.whole("num_groups", 1, 1, mostSlots);
  layout.nodes = in.whole("num_nodes", 1, 1, mostSlots);
  layout.gpus = in.whole("num_gpus", 1, mostSlots);
  if (in.ok())
    if (Status status = checkLayout(layout, experts); !status)
      in.fail(status.error().where, status.error().message, status.error().remedy);
  return layout;
}

/// Slots of each expert, padded with -1 to the most replicas of any layer.
ordered_json paddedSlots(const std::vector<ReplicaPlacement> &layers, int64_t width) {
  ordered_json table = ordered_json::array();
  for (const ReplicaPlacement &layer : layers) {
    ordered_json experts = ordered_json::array();
    for (std::vector<int32_t> slots : layer.slotsOfExpert) {
      slots.resize(width, -1);
      experts.push_back(slots);
    }
    table.push_back(std::move(experts));
  }
  return table;
}

QueryAnswer eplb(QueryInputs &in) {
  std::vector<ExpertLoad> loads = readLoads(in, "weight");
  ReplicaLayout layout = readLayout(in, loads.empty() ? 1 : int64_t(loads[0].size()));
  if (in.ok() && int64_t(loads.size()) * layout.replicas > mostNumbers)
    in.fail("num_replicas",
            "gives " + std::to_string(int64_t(loads.size()) * layout.replicas) + " slots in all, at most " +
                std::to_string(mostNumbers),
            "ask for fewer layers");
  if (!in.ok())
    return QueryAnswer();
  std::vector<ReplicaPlacement> layers;
  ordered_json expertOfSlot = ordered_json::array(), counts = ordered_json::array();
  int64_t width = 1;
  for (const ExpertLoad &load : loads) {
    layers.push_back(rebalanceExperts(load, layout));
    expertOfSlot.push_back(layers.back().expertOfSlot);
    counts.push_back(ordered_json::array());
    for (size_t expert = 0; expert < load.size(); ++expert) {
      counts.back().push_back(layers.back().count(int64_t(expert)));
      width = std::max(width, layers.back().count(int64_t(expert)));
    }
  }
  int64_t numbers = int64_t(loads.size() * loads[0].size()) * width;
  if (numbers > mostNumbers) {
    in.fail("weight",
            "gives a log2phy of " + std::to_string(numbers) + " numbers, at most " + std::to_string(mostNumbers),
            "ask for fewer layers at once");
    return QueryAnswer();
  }
  QueryAnswer answer;
  answer.fields = {{"phy2log", std::move(expertOfSlot)}, {"log2phy", paddedSlots(layers, width)}, {"logcnt", counts}};
  return answer;
}

} // namespace

std::vector<QueryFunction> planner::placementQueries() {
  return {
      {"eplb", "slots", "expert-parallel load balancer of DeepSeek V3",
       "weight num_replicas num_groups num_nodes num_gpus", eplb},
  };
}

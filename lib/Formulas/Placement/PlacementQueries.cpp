//===- PlacementQueries.cpp - Queries about where experts lie -------------===//

#include "../Parts.h"
#include "ReadPlacement.h"
#include <algorithm>
#include <set>

using namespace k2c;
using namespace k2c::formulas;
using nlohmann::ordered_json;

namespace {

constexpr int64_t maxNumbers = 1 << 22; ///< of an answer

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
  ReplicaLayout layout = readLayout(in, loads.empty() ? 1 : int64_t(loads[0].size()), std::nullopt);
  limitSlots(in, loads.size(), layout);
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
  if (numbers > maxNumbers) {
    in.fail("weight",
            "gives a log2phy of " + std::to_string(numbers) + " numbers, at most " + std::to_string(maxNumbers),
            "ask for fewer layers at once");
    return QueryAnswer();
  }
  QueryAnswer answer;
  answer.fields = {{"phy2log", std::move(expertOfSlot)}, {"log2phy", paddedSlots(layers, width)}, {"logcnt", counts}};
  return answer;
}

/// Experts that each GPU holds in a phase, layer by layer, without doubles.
using Held = std::vector<std::set<std::pair<size_t, int32_t>>>;

/// One phase: its placement, how evenly it loads GPUs, and the weights that a GPU holds.
ordered_json placePhase(const std::vector<ExpertLoad> &loads, const ReplicaLayout &layout, double expertBytes,
                        Held &held) {
  ordered_json expertOfSlot = ordered_json::array(), balance = ordered_json::array();
  int64_t gpuSlots = layout.replicas / layout.gpus;
  held.assign(layout.gpus, {});
  for (size_t layer = 0; layer < loads.size(); ++layer) {
    ReplicaPlacement placement = rebalanceExperts(loads[layer], layout);
    for (int64_t slot = 0; slot < layout.replicas; ++slot)
      held[slot / gpuSlots].insert({layer, placement.expertOfSlot[slot]});
    balance.push_back(balancedness(gpuLoads(loads[layer], placement, layout.gpus)));
    expertOfSlot.push_back(std::move(placement.expertOfSlot));
  }
  return {{"phy2log", std::move(expertOfSlot)},
          {"balancedness", std::move(balance)},
          {"gpu_weight_bytes", double(gpuSlots) * double(loads.size()) * expertBytes}};
}

/// Placements of prefill, with replicas, and of decode, by default without: prefill is bound by its fullest GPU,
/// decode by the weights it reads. GPUs that serve both phases hold the union.
QueryAnswer phases(QueryInputs &in) {
  std::vector<ExpertLoad> prefill = readLoads(in, "weight");
  std::vector<ExpertLoad> decode = in.has("decode_weight") ? readLoads(in, "decode_weight") : prefill;
  int64_t experts = prefill.empty() ? 1 : int64_t(prefill[0].size());
  if (in.ok() && (decode.size() != prefill.size() || int64_t(decode[0].size()) != experts))
    in.fail("decode_weight", "is a table of " + std::to_string(decode.size()) + " x " +
                                 std::to_string(decode[0].size()) + ", 'weight' of " + std::to_string(prefill.size()) +
                                 " x " + std::to_string(experts));
  ReplicaLayout layout = readLayout(in, experts, std::nullopt), decodeLayout = layout;
  decodeLayout.replicas = in.whole("decode_replicas", experts, experts, layout.replicas);
  double expertBytes = in.number("expert_bytes", 0, 1e15);
  if (in.ok() && decodeLayout.replicas % layout.gpus)
    in.fail(in.has("decode_replicas") ? "decode_replicas" : "num_gpus",
            "leaves " + std::to_string(decodeLayout.replicas) + " slots of decode on " + std::to_string(layout.gpus) +
                " GPUs, not equally many on each",
            "give decode_replicas as a multiple of num_gpus");
  limitSlots(in, prefill.size(), layout);
  if (!in.ok())
    return QueryAnswer();
  Held heldInPrefill, heldInDecode;
  QueryAnswer answer;
  answer.fields["prefill"] = placePhase(prefill, layout, expertBytes, heldInPrefill);
  answer.fields["decode"] = placePhase(decode, decodeLayout, expertBytes, heldInDecode);
  size_t most = 0;
  for (int64_t gpu = 0; gpu < layout.gpus; ++gpu) {
    heldInPrefill[gpu].merge(heldInDecode[gpu]);
    most = std::max(most, heldInPrefill[gpu].size());
  }
  answer.fields["shared_gpu_weight_bytes"] = double(most) * expertBytes;
  return answer;
}

} // namespace

std::vector<QueryFunction> formulas::placementQueries() {
  return {
      {"eplb", "slots", "expert-parallel load balancer of DeepSeek V3",
       "weight num_replicas num_groups num_nodes num_gpus", eplb},
      {"eplb_phases", "slots and bytes of a GPU", "replicas for prefill only, as DeepSeek V3 is served",
       "weight decode_weight num_replicas decode_replicas num_groups num_nodes num_gpus expert_bytes", phases},
  };
}

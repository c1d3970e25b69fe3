//===- Balance.cpp - Replicas of hot experts, packed evenly -------------------===//
//
// The policy published with DeepSeek V3 (expert-parallel load balancer), in three steps for a layer:
//
//   groups   the router's expert groups go to nodes, heaviest first to the emptiest node with room, so that a
//            group-limited token stays on few nodes;
//   replicas on each node, the expert with most load per replica gets one more until all slots are used;
//   GPUs     on each node, replicas go to GPUs, heaviest first to the emptiest GPU with room.
//
// When groups do not divide over nodes, all experts are one group on one node whose GPUs are all GPUs. Sums and
// quotients are float32 in ascending order and ties go to the lowest index, so placements are the same everywhere.
//
//===----------------------------------------------------------------------===//

#include "k2c/Planner/Placement.h"

#include <algorithm>
#include <numeric>
#include <queue>

using namespace k2c;

namespace {

/// Where an item went: its pack and its place there.
struct Packed {
  int64_t pack = 0;
  int64_t place = 0;
};

/// Packs equally many items into each pack: in falling weight, each into the emptiest pack that has room.
std::vector<Packed> pack(const std::vector<float> &weights, int64_t packs) {
  int64_t perPack = int64_t(weights.size()) / packs;
  std::vector<Packed> result(weights.size());
  if (perPack == 1) { // the policy leaves single items where they are
    for (size_t item = 0; item < weights.size(); ++item)
      result[item].pack = int64_t(item);
    return result;
  }
  std::vector<int64_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return weights[a] > weights[b]; });

  using Filled = std::pair<float, int64_t>; // weight so far, pack
  std::priority_queue<Filled, std::vector<Filled>, std::greater<Filled>> open;
  for (int64_t p = 0; p < packs; ++p)
    open.push({0.0f, p});
  std::vector<int64_t> used(packs, 0);
  for (int64_t item : order) {
    auto [filled, p] = open.top();
    open.pop();
    result[item] = {p, used[p]++};
    if (used[p] < perPack)
      open.push({filled + weights[item], p});
  }
  return result;
}

/// Experts of the slots of one node, first one slot each in order, then the replicas as they are made.
std::vector<int64_t> replicate(const std::vector<float> &weights, int64_t slots, std::vector<int64_t> &counts) {
  std::vector<int64_t> experts(weights.size());
  std::iota(experts.begin(), experts.end(), 0);
  counts.assign(weights.size(), 1);
  using Heavy = std::pair<float, int64_t>; // load of a replica, -expert: the lowest expert wins a tie
  std::priority_queue<Heavy> heaviest;
  for (size_t expert = 0; expert < weights.size(); ++expert)
    heaviest.push({weights[expert], -int64_t(expert)});
  while (int64_t(experts.size()) < slots) {
    int64_t expert = -heaviest.top().second;
    heaviest.pop();
    experts.push_back(expert);
    heaviest.push({weights[expert] / float(++counts[expert]), -expert});
  }
  return experts;
}

/// Experts in the order of their nodes: groups packed onto nodes by load, a group's experts side by side.
std::vector<int64_t> nodeOrder(const ExpertLoad &load, const ReplicaLayout &layout) {
  int64_t groupSize = int64_t(load.size()) / layout.groups, groupsPerNode = layout.groups / layout.nodes;
  std::vector<float> groupLoad(layout.groups, 0.0f);
  for (size_t expert = 0; expert < load.size(); ++expert)
    groupLoad[expert / groupSize] += load[expert];
  std::vector<Packed> groups = pack(groupLoad, layout.nodes);
  std::vector<int64_t> order(load.size());
  for (size_t expert = 0; expert < load.size(); ++expert) {
    const Packed &at = groups[expert / groupSize];
    order[(at.pack * groupsPerNode + at.place) * groupSize + expert % groupSize] = int64_t(expert);
  }
  return order;
}

} // namespace

static std::string against(int64_t number, const std::string &what, int64_t other) {
  return std::to_string(number) + " " + what + " " + std::to_string(other);
}

Status k2c::checkLayout(const ReplicaLayout &layout, int64_t experts) {
  if (layout.replicas < experts)
    return Error{"num_replicas", against(layout.replicas, "is less than the experts", experts),
                 "give a slot to each expert"};
  if (layout.replicas % layout.gpus)
    return Error{"num_replicas", against(layout.replicas, "cannot be divided by the GPUs", layout.gpus),
                 "give each GPU equally many slots"};
  if (!layout.isHierarchical())
    return Status::success();
  if (experts % layout.groups)
    return Error{"num_groups", against(layout.groups, "does not divide the experts", experts),
                 "give a divisor of the experts"};
  if (layout.gpus % layout.nodes)
    return Error{"num_gpus", against(layout.gpus, "cannot be divided by the nodes", layout.nodes),
                 "give each node equally many GPUs"};
  return Status::success();
}

ReplicaPlacement k2c::rebalanceExperts(const ExpertLoad &load, const ReplicaLayout &asked) {
  ReplicaLayout layout = asked;
  if (!layout.isHierarchical())
    layout.groups = layout.nodes = 1;
  int64_t nodeExperts = int64_t(load.size()) / layout.nodes, nodeSlots = layout.replicas / layout.nodes;
  int64_t gpuSlots = layout.replicas / layout.gpus;
  std::vector<int64_t> order = nodeOrder(load, layout);

  ReplicaPlacement placement;
  placement.expertOfSlot.resize(layout.replicas);
  placement.slotsOfExpert.resize(load.size());
  for (int64_t node = 0; node < layout.nodes; ++node) {
    const int64_t *expertOf = order.data() + node * nodeExperts;
    std::vector<float> weights(nodeExperts);
    for (int64_t i = 0; i < nodeExperts; ++i)
      weights[i] = load[expertOf[i]];
    std::vector<int64_t> counts;
    std::vector<int64_t> replicas = replicate(weights, nodeSlots, counts);
    std::vector<float> replicaLoad(nodeSlots);
    for (int64_t r = 0; r < nodeSlots; ++r)
      replicaLoad[r] = weights[replicas[r]] / float(counts[replicas[r]]);
    std::vector<Packed> packed = pack(replicaLoad, layout.gpus / layout.nodes);
    for (int64_t r = 0; r < nodeSlots; ++r) {
      int64_t slot = node * nodeSlots + packed[r].pack * gpuSlots + packed[r].place;
      int64_t expert = expertOf[replicas[r]];
      placement.expertOfSlot[slot] = int32_t(expert);
      placement.slotsOfExpert[expert].push_back(int32_t(slot));
    }
  }
  return placement;
}

ReplicaPlacement k2c::placeOnceInOrder(int64_t experts) {
  ReplicaPlacement placement;
  for (int32_t expert = 0; expert < experts; ++expert) {
    placement.expertOfSlot.push_back(expert);
    placement.slotsOfExpert.push_back({expert});
  }
  return placement;
}

std::vector<double> k2c::gpuLoads(const ExpertLoad &load, const ReplicaPlacement &placement, int64_t gpus) {
  std::vector<double> loads(gpus, 0.0);
  int64_t gpuSlots = int64_t(placement.expertOfSlot.size()) / gpus;
  for (size_t slot = 0; slot < placement.expertOfSlot.size(); ++slot) {
    int32_t expert = placement.expertOfSlot[slot];
    loads[slot / gpuSlots] += double(load[expert]) / double(placement.count(expert));
  }
  return loads;
}

double k2c::balancedness(const std::vector<double> &loads) {
  double most = *std::max_element(loads.begin(), loads.end());
  double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  return most > 0 ? sum / double(loads.size()) / most : 1;
}

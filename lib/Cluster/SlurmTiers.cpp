//===- SlurmTiers.cpp - Switches and blocks of Slurm as tiers ---------------===//
//
// Slurm says which nodes are near each other, not how fast: the k-th tier above a node gets the link of the k-th such
// tier of the topology it is like, or of its last. A tier has one count, so that units of one level must be equal.
//
//===----------------------------------------------------------------------===//
#include "Importers.h"
#include "base/Utf8.h"

#include <algorithm>
#include <map>
#include <set>

namespace k2c::cluster {

namespace {

/// The inside of a node, device and names.
Topology nodeOf(const Topology &like) {
  Topology topology;
  topology.name = "imported";
  topology.device = like.device;
  topology.host = like.host;
  int64_t devices = 1;
  for (const Tier &tier : like.tiers) {
    if (devices == like.devicesPerNode())
      break;
    devices *= tier.count;
    topology.tiers.push_back(tier);
  }
  return topology;
}

/// Adds a tier of `count` units; `level` counts from the node outwards, -1: the last.
Status addTier(Topology &topology, const Topology &like, size_t inner, int level, std::string name, size_t count,
               const std::string &file) {
  if (like.tiers.size() == inner)
    return Error{file, "joins nodes, but '" + shortened(like.name) + "' has no link between nodes",
                 "name one that has, as --like 4x8-h100"};
  size_t last = like.tiers.size() - 1;
  Tier tier = like.tiers[level < 0 ? last : std::min(last, inner + size_t(level))];
  tier.name = std::move(name);
  tier.count = int64_t(count);
  topology.tiers.push_back(std::move(tier));
  return Status::success();
}

std::string described(const SlurmUnit &unit) {
  bool leaf = !unit.nodes.empty();
  return "'" + shortened(unit.name) + "' has " + std::to_string(leaf ? unit.nodes.size() : unit.children.size()) +
         (leaf ? " nodes" : " switches");
}

/// All of one level alike: leaves of as many nodes, or switches of as many switches.
Status checkEqual(const std::vector<const SlurmUnit *> &level) {
  for (const SlurmUnit *unit : level)
    if (unit->nodes.size() != level[0]->nodes.size() || unit->children.size() != level[0]->children.size())
      return Error{unit->where, described(*unit) + ", " + described(*level[0]), "import a part whose units are equal"};
  return Status::success();
}

Status checkUnits(const std::vector<SlurmUnit> &units) {
  std::set<std::string> names, nodes;
  for (const SlurmUnit &unit : units) {
    if (!names.insert(unit.name).second)
      return Error{unit.where, "'" + shortened(unit.name) + "' is defined twice", ""};
    if (unit.nodes.empty() == unit.children.empty())
      return Error{unit.where, "'" + shortened(unit.name) + "' must have either nodes or switches", ""};
    for (const std::string &node : unit.nodes)
      if (!nodes.insert(node).second)
        return Error{unit.where, "node '" + shortened(node) + "' is named twice", ""};
  }
  return Status::success();
}

/// The switch that no other has, and every switch by name.
Expected<const SlurmUnit *> rootOf(const std::vector<SlurmUnit> &units,
                                   std::map<std::string, const SlurmUnit *> &byName) {
  for (const SlurmUnit &unit : units)
    byName[unit.name] = &unit;
  std::set<std::string> children;
  for (const SlurmUnit &unit : units)
    for (const std::string &child : unit.children) {
      if (!byName.count(child))
        return Error{unit.where, "switch '" + shortened(child) + "' is not defined", ""};
      if (!children.insert(child).second)
        return Error{unit.where, "switch '" + shortened(child) + "' has two parents", ""};
    }
  const SlurmUnit *root = nullptr;
  for (const SlurmUnit &unit : units) {
    if (children.count(unit.name))
      continue;
    if (root)
      return Error{unit.where, "'" + shortened(unit.name) + "' and '" + shortened(root->name) + "' are not joined",
                   "define a switch over both"};
    root = &unit;
  }
  if (!root)
    return Error{units[0].where, "the switches form a circle", ""};
  return root;
}

} // namespace

Expected<Topology> topologyOfTree(const std::vector<SlurmUnit> &units, const std::string &file, const Topology &like) {
  if (units.empty())
    return Error{file, "defines no switch", ""};
  if (Status status = checkUnits(units); !status)
    return status.takeError();
  std::map<std::string, const SlurmUnit *> byName;
  Expected<const SlurmUnit *> root = rootOf(units, byName);
  if (!root)
    return root.takeError();
  std::vector<std::vector<const SlurmUnit *>> levels; // from the root; each switch has one parent, so this ends
  size_t reached = 0;
  for (std::vector<const SlurmUnit *> level = {*root}; !level.empty();) {
    if (Status status = checkEqual(level); !status)
      return status.takeError();
    std::vector<const SlurmUnit *> below;
    for (const SlurmUnit *unit : level)
      for (const std::string &child : unit->children)
        below.push_back(byName[child]);
    reached += level.size();
    levels.push_back(std::move(level));
    level = std::move(below);
  }
  if (reached < units.size())
    return Error{file, std::to_string(units.size() - reached) + " switches form a circle", ""};
  Topology topology = nodeOf(like);
  size_t inner = topology.tiers.size();
  for (const SlurmUnit *leaf : levels.back())
    topology.nodeNames.insert(topology.nodeNames.end(), leaf->nodes.begin(), leaf->nodes.end());
  for (size_t i = levels.size(); i-- > 0;) {
    size_t level = levels.size() - 1 - i, count = std::max(levels[i][0]->nodes.size(), levels[i][0]->children.size());
    std::string name = level == 0 ? "leaf" : level == 1 ? "spine" : "spine" + std::to_string(level);
    if (Status status = addTier(topology, like, inner, int(level), std::move(name), count, file); !status)
      return status.takeError();
  }
  topology.description = "from Slurm's switches; devices and links of " + like.name;
  return topology;
}

Expected<Topology> topologyOfBlocks(const std::vector<SlurmUnit> &blocks, const std::string &file,
                                    const Topology &like) {
  if (blocks.empty())
    return Error{file, "defines no block", ""};
  if (Status status = checkUnits(blocks); !status)
    return status.takeError();
  Topology topology = nodeOf(like);
  size_t inner = topology.tiers.size();
  std::vector<const SlurmUnit *> level;
  for (const SlurmUnit &block : blocks) {
    level.push_back(&block);
    topology.nodeNames.insert(topology.nodeNames.end(), block.nodes.begin(), block.nodes.end());
  }
  if (Status status = checkEqual(level); !status)
    return status.takeError();
  if (Status status = addTier(topology, like, inner, 0, "block", blocks[0].nodes.size(), file); !status)
    return status.takeError();
  if (Status status = addTier(topology, like, inner, -1, "network", blocks.size(), file); !status)
    return status.takeError();
  topology.description = "from Slurm's blocks; devices and links of " + like.name;
  return topology;
}

} // namespace k2c::cluster

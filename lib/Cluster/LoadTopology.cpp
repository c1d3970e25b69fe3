//===- LoadTopology.cpp - Topologies by name or file ----------------------===//
#include "EmbeddedTopologies.h"
#include "base/Json.h"
#include "base/Utf8.h"
#include "k2c/Cluster/Topology.h"
#include "k2c/Support/Join.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <regex>

namespace k2c {

/// What programs can be compiled for: the one list.
static constexpr DeviceKind compiledKinds[] = {DeviceKind::Cpu};
static constexpr int64_t compiledRanks = 1;

Status checkCompiles(const Topology &topology) {
  std::string where = "topology '" + shortened(topology.name) + "'", remedy = "use --topology host or cpu1";
  if (std::find(std::begin(compiledKinds), std::end(compiledKinds), topology.device.kind) == std::end(compiledKinds))
    return Error{where,
                 "compiling for devices of kind " + std::string(name(topology.device.kind)) + " is not in this build",
                 remedy};
  if (topology.ranks() > compiledRanks)
    return Error{where, "has " + std::to_string(topology.ranks()) + " ranks; several ranks are not in this build",
                 remedy};
  return Status::success();
}

int64_t Topology::ranks() const {
  int64_t ranks = 1;
  for (const Tier &tier : tiers)
    ranks *= tier.count;
  return ranks;
}

int64_t Topology::devicesPerNode() const {
  int64_t devices = 1;
  for (const Tier &tier : tiers) {
    devices *= tier.count;
    if (tier.name == "node")
      return devices;
  }
  return 1;
}

static std::string topologyNameOf(const EmbeddedFile &file) {
  std::string name = file.name;
  return name.substr(0, name.rfind(".yaml"));
}

std::vector<TopologyName> knownTopologies() {
  std::vector<TopologyName> names = {{"host", "this machine's CPU, one process"}};
  for (const EmbeddedFile &file : embeddedTopologies())
    if (Expected<Topology> topology = parseTopology(file.text, file.name))
      names.push_back({topologyNameOf(file), topology->description});
  return names;
}

/// A size that was asked for, and the device that a built-in topology of nodes in a network has: "12x8-h200", twelve
/// nodes of eight; "h200x8", one node.
struct SizedName {
  int64_t nodes = 1, devices = 0;
  std::string device;
};

static std::optional<SizedName> sizedName(const std::string &text) {
  static const std::regex nodes("([1-9][0-9]{0,6})x([1-9][0-9]{0,6})-(.+)"), node("([a-z].*)x([1-9][0-9]{0,6})");
  std::smatch parts;
  if (std::regex_match(text, parts, nodes))
    return SizedName{std::stoll(parts[1]), std::stoll(parts[2]), parts[3]};
  if (std::regex_match(text, parts, node))
    return SizedName{1, std::stoll(parts[2]), parts[1]};
  return std::nullopt;
}

/// The first built-in topology of the same device in nodes and a network, with the sizes of `sized`; none: there is no
/// such topology.
static std::optional<Topology> resized(const std::string &name, const SizedName &sized) {
  for (const EmbeddedFile &file : embeddedTopologies()) {
    const std::string known = topologyNameOf(file);
    const size_t dash = known.find('-');
    if (dash == std::string::npos || known.substr(dash + 1) != sized.device)
      continue;
    Expected<Topology> topology = parseTopology(file.text, file.name);
    if (!topology || topology->tiers.size() != 2 || topology->tiers[0].name != "node")
      continue;
    topology->name = name;
    topology->description = "sizes as named, otherwise " + known;
    topology->tiers[0].count = sized.devices;
    topology->tiers[1].count = sized.nodes;
    if (sized.nodes == 1)
      topology->tiers.pop_back();
    return *topology;
  }
  return std::nullopt;
}

static bool isPath(const std::string &text) {
  std::error_code error;
  return text.find('/') != std::string::npos || text.find(".yaml") != std::string::npos ||
         text.find(".yml") != std::string::npos || text.find(".json") != std::string::npos ||
         std::filesystem::exists(text, error);
}

Expected<Topology> loadTopology(const std::string &nameOrPath) {
  if (nameOrPath == "host")
    return hostTopology();
  for (const EmbeddedFile &file : embeddedTopologies())
    if (topologyNameOf(file) == nameOrPath)
      return parseTopology(file.text, file.name);
  if (isPath(nameOrPath)) {
    Expected<std::string> text = readTextFile(nameOrPath, size_t(4) << 20);
    if (!text)
      return text.takeError();
    return parseTopology(*text, nameOrPath);
  }
  if (const std::optional<SizedName> sized = sizedName(nameOrPath))
    if (const std::optional<Topology> topology = resized(nameOrPath, *sized))
      return parseTopology(printTopology(*topology), nameOrPath); // its limits are a file's
  const std::string known = joined(knownTopologies(), [](const TopologyName &each) { return each.name; });
  return Error{"topology '" + shortened(nameOrPath) + "'", "is not known",
               "use one of " + known +
                   ", one of their GPUs in other numbers (12x8-h200, h200x8), or the path of a YAML file"};
}

} // namespace k2c

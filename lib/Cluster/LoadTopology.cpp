//===- LoadTopology.cpp - Topologies by name or file ----------------------===//
//
// A name is `host`, `gpu`, a built-in, or a built-in's device in other numbers: 12x8-h200 and h200x8 are nodes of the
// first built-in topology of H200 in nodes and a network, with nothing else of it changed; 256-gb200 is as many devices
// of the first one in racks. Letters may have any case.
//
//===----------------------------------------------------------------------===//
#include "EmbeddedTopologies.h"
#include "Mapping.h"
#include "base/Json.h"
#include "base/Utf8.h"
#include "k2c/Cluster/Topology.h"
#include "k2c/Support/Join.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <regex>
#include <set>

namespace k2c {

/// What programs can be compiled for: the one list.
static constexpr DeviceKind compiledKinds[] = {DeviceKind::Cpu, DeviceKind::Nvidia};

Status checkCompiles(const Topology &topology) {
  const std::string where = "topology '" + shortened(topology.name) + "'";
  if (std::find(std::begin(compiledKinds), std::end(compiledKinds), topology.device.kind) == std::end(compiledKinds))
    return Error{where,
                 "compiling for devices of kind " + std::string(name(topology.device.kind)) + " is not in this build",
                 "use --topology host or cpu1"};
  if (topology.device.kind != DeviceKind::Cpu && topology.ranks() > 1)
    return Error{where, "has " + std::to_string(topology.ranks()) + " GPUs; programs of several are not in this build",
                 "use --topology h200x1, or --topology host"};
  if (topology.ranks() > maxCompiledRanks)
    return Error{where,
                 "has " + std::to_string(topology.ranks()) + " ranks; in this build programs have at most " +
                     std::to_string(maxCompiledRanks),
                 "choose a smaller topology"};
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
  std::vector<TopologyName> names = {{"host", "this machine's CPU, one process"},
                                     {"gpu", "this machine's NVIDIA GPU, asked through its driver"}};
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
  static const std::regex nodes("([1-9][0-9]{0,17})x([1-9][0-9]{0,17})-(.+)"), node("([a-z].*)x([1-9][0-9]{0,17})");
  std::smatch parts;
  if (std::regex_match(text, parts, nodes))
    return SizedName{std::stoll(parts[1]), std::stoll(parts[2]), parts[3]};
  if (std::regex_match(text, parts, node))
    return SizedName{1, std::stoll(parts[2]), parts[1]};
  return std::nullopt;
}

static std::string lowered(std::string text) {
  for (char &letter : text)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

/// What people call a device: "h100" is "H100 SXM".
static std::string calledBy(const Device &device) { return lowered(device.model.substr(0, device.model.find(' '))); }

/// The built-in topologies with these tiers, whose devices have a name.
static std::vector<Topology> withTiers(const std::vector<std::string> &tiers) {
  auto hasThem = [&](const Topology &topology) {
    return std::equal(tiers.begin(), tiers.end(), topology.tiers.begin(), topology.tiers.end(),
                      [](const std::string &name, const Tier &tier) { return name == tier.name; });
  };
  std::vector<Topology> all;
  for (const EmbeddedFile &file : embeddedTopologies())
    if (Expected<Topology> topology = parseTopology(file.text, file.name);
        topology && hasThem(*topology) && !topology->device.model.empty())
      all.push_back(std::move(*topology));
  return all;
}

static std::vector<Topology> networks() { return withTiers({"node", "network"}); }
static std::vector<Topology> racks() { return withTiers({"node", "rack", "network"}); }

/// "a100, b200, h100": devices that are had in any numbers.
static std::string devicesOf(const std::vector<Topology> &topologies) {
  std::set<std::string> words;
  for (const Topology &topology : topologies)
    words.insert(calledBy(topology.device));
  return joined(words);
}

/// The built-in topology of a device in nodes and a network: the first whose nodes have as many devices, else the
/// first.
static std::optional<Topology> builtInOf(const std::string &device, int64_t devices) {
  std::optional<Topology> found;
  for (Topology &topology : networks())
    if (calledBy(topology.device) == device &&
        (!found || (found->tiers[0].count != devices && topology.tiers[0].count == devices)))
      found = std::move(topology);
  return found;
}

/// `built` with the sizes of `sized`, under `name`. Error: more devices than a topology may have.
static Expected<Topology> resized(const std::string &name, Topology built, const SizedName &sized) {
  if (sized.devices > cluster::maxRanks / sized.nodes)
    return Error{"topology '" + shortened(name) + "'",
                 (sized.nodes > 1 ? formatCount(sized.nodes) + " nodes of " : "one node of ") +
                     formatCount(sized.devices) + " devices are more than the " + formatCount(cluster::maxRanks) +
                     " devices that a topology may have",
                 "ask for fewer"};
  built.description = "sizes as named, otherwise " + built.name;
  built.name = name;
  built.tiers[0].count = sized.devices;
  built.tiers[1].count = sized.nodes;
  if (sized.nodes == 1)
    built.tiers.pop_back();
  return parseTopology(printTopology(built), name);
}

/// `devices` of the rack topology `built`, in as few racks as share them evenly.
static Expected<Topology> inRacks(const std::string &name, Topology built, int64_t devices) {
  Tier &node = built.tiers[0], &rack = built.tiers[1], &network = built.tiers[2];
  const std::string where = "topology '" + shortened(name) + "'";
  if (devices > cluster::maxRanks)
    return Error{where, "has more than the " + formatCount(cluster::maxRanks) + " devices that a topology may have",
                 "ask for fewer"};
  if (devices % node.count != 0)
    return Error{where, formatCount(devices) + " devices are no whole number of nodes of " + formatCount(node.count),
                 "ask for a multiple of " + formatCount(node.count)};
  const int64_t nodes = devices / node.count;
  int64_t count = (nodes + rack.count - 1) / rack.count;
  while (nodes % count != 0)
    ++count;
  built.description = formatCount(count) + (count == 1 ? " rack of " : " racks of ") + formatCount(devices / count) +
                      " devices, otherwise " + built.name;
  built.name = name;
  rack.count = nodes / count;
  network.count = count;
  return parseTopology(printTopology(built), name);
}

/// "256-gb200", in racks; none: `name` is no such name. Error: of racks, but not in a form that has a meaning.
static std::optional<Expected<Topology>> racksNamed(const std::string &name) {
  static const std::regex form("([1-9][0-9]{0,17})-([a-z0-9]+)"), any("(.*-)?([a-z]+[0-9]+)(x[0-9]+|-nvl[0-9]+)?");
  std::smatch parts;
  const bool isForm = std::regex_match(name, parts, form);
  if (!isForm && !std::regex_match(name, parts, any))
    return std::nullopt;
  for (Topology &topology : racks())
    if (const std::string device = calledBy(topology.device); parts[2] == device) {
      if (isForm)
        return inRacks(name, std::move(topology), std::stoll(parts[1]));
      return Expected<Topology>(Error{"topology '" + shortened(name) + "'",
                                      "is not known; " + device + " comes in racks of " +
                                          formatCount(topology.tiers[0].count * topology.tiers[1].count),
                                      "use " + topology.name + ", or a number of devices: 256-" + device});
    }
  return std::nullopt;
}

/// A built-in, or one in other numbers; none: `name` is no name of these.
static std::optional<Expected<Topology>> topologyNamed(const std::string &name) {
  for (const EmbeddedFile &file : embeddedTopologies())
    if (topologyNameOf(file) == name)
      return parseTopology(file.text, file.name);
  if (const std::optional<SizedName> sized = sizedName(name))
    if (std::optional<Topology> built = builtInOf(sized->device, sized->devices))
      return resized(name, std::move(*built), *sized);
  return racksNamed(name);
}

bool isBuiltIn(const Topology &topology) {
  const std::optional<Expected<Topology>> named = topologyNamed(topology.name);
  return named && *named && isSameMachine(topology, **named);
}

std::optional<Topology> resizedTopology(const Topology &topology, int64_t devices) {
  const std::string device = calledBy(topology.device);
  const std::optional<Topology> built = builtInOf(device, topology.devicesPerNode());
  if (!built || !isBuiltIn(topology) || built->device.model != topology.device.model ||
      built->device.memory.value != topology.device.memory.value)
    return std::nullopt;
  const int64_t node = (topology.devicesPerNode() > 1 ? topology : *built).devicesPerNode();
  const int64_t nodes = (devices + node - 1) / node;
  const std::string name = nodes > 1 ? std::to_string(nodes) + "x" + std::to_string(node) + "-" + device
                                     : device + "x" + std::to_string(devices);
  Expected<Topology> loaded = loadTopology(name);
  return loaded ? std::optional(std::move(*loaded)) : std::nullopt;
}

static bool isPath(const std::string &text) {
  std::error_code error;
  return text.find('/') != std::string::npos || text.find(".yaml") != std::string::npos ||
         text.find(".yml") != std::string::npos || text.find(".json") != std::string::npos ||
         std::filesystem::exists(text, error);
}

Expected<Topology> loadTopology(const std::string &nameOrPath) {
  const std::string name = lowered(nameOrPath);
  if (name == "host")
    return hostTopology();
  if (name == "gpu")
    return gpuTopology();
  for (const EmbeddedFile &file : embeddedTopologies())
    if (topologyNameOf(file) == name)
      return parseTopology(file.text, file.name);
  if (isPath(nameOrPath)) {
    Expected<std::string> text = readTextFile(nameOrPath, size_t(4) << 20);
    if (!text)
      return text.takeError();
    return parseTopology(*text, nameOrPath);
  }
  if (std::optional<Expected<Topology>> named = topologyNamed(name))
    return std::move(*named);
  const std::string known = joined(knownTopologies(), [](const TopologyName &each) { return each.name; });
  return Error{"topology '" + shortened(nameOrPath) + "'", "is not known",
               "use one of " + known + ", nodes of one of " + devicesOf(networks()) +
                   " in other numbers (12x8-h200, h200x8), as many of one of " + devicesOf(racks()) +
                   " in racks (256-gb200), or the path of a YAML file"};
}

} // namespace k2c

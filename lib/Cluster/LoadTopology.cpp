//===- LoadTopology.cpp - Topologies by name or file ----------------------===//
#include "EmbeddedTopologies.h"
#include "base/Json.h"
#include "base/Utf8.h"
#include "k2c/Cluster/Topology.h"
#include "k2c/Support/Join.h"

#include <algorithm>
#include <filesystem>

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
  const std::string known = joined(knownTopologies(), [](const TopologyName &each) { return each.name; });
  return Error{"topology '" + shortened(nameOrPath) + "'", "is not known",
               "use one of " + known + ", or the path of a YAML file"};
}

} // namespace k2c

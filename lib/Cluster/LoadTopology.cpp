//===- LoadTopology.cpp - Topologies by name or file ----------------------===//
#include "EmbeddedTopologies.h"
#include "k2c/Cluster/Topology.h"
#include "k2c/Support/Json.h"

#include <algorithm>

namespace k2c {

/// Names that belong to GPU topologies of later builds.
static const char *const laterNames[] = {"cpu4x2",   "h100x1",    "h200x1",      "h100x8",    "4x8-h100",
                                         "9x8-h100", "12x4-b200", "gb200-nvl72", "2048-h800", "256-h800"};

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

static bool looksLikePath(const std::string &text) {
  return text.find('/') != std::string::npos || text.find(".yaml") != std::string::npos ||
         text.find(".yml") != std::string::npos;
}

Expected<Topology> loadTopology(const std::string &nameOrPath) {
  if (nameOrPath == "host")
    return hostTopology();
  if (looksLikePath(nameOrPath)) {
    Expected<std::string> text = readTextFile(nameOrPath, size_t(4) << 20);
    if (!text)
      return text.takeError();
    return parseTopology(*text, nameOrPath);
  }
  for (const EmbeddedFile &file : embeddedTopologies())
    if (topologyNameOf(file) == nameOrPath)
      return parseTopology(file.text, file.name);
  if (std::find(std::begin(laterNames), std::end(laterNames), nameOrPath) != std::end(laterNames))
    return Error{"topology '" + nameOrPath + "'", "is not in this build", "use host, or a YAML file of CPU devices"};
  std::string known;
  for (const TopologyName &name : knownTopologies())
    known += (known.empty() ? "" : ", ") + name.name;
  return Error{"topology '" + nameOrPath + "'", "is not known", "use one of " + known + ", or the path of a YAML file"};
}

} // namespace k2c

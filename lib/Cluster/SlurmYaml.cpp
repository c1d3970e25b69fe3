//===- SlurmYaml.cpp - Slurm's topology.yaml --------------------------------===//
//
// A list of topologies; the one with cluster_default counts, else the first. A flat one says nothing about nodes.
//
//===----------------------------------------------------------------------===//
#include "Importers.h"
#include "base/Utf8.h"
#include "k2c/Support/Yaml.h"

namespace k2c::cluster {

namespace {

/// A list of names under `key`, when there is one.
Status readNames(const YamlDocument &document, const YAML::Node &node, const char *key, std::vector<std::string> &names,
                 size_t &total) {
  if (!node[key])
    return Status::success();
  Expected<std::string> text = document.asString(node[key], key);
  if (!text)
    return text.takeError();
  Expected<std::vector<std::string>> list = expandHostList(*text, document.place(node[key]), total);
  if (!list)
    return list.takeError();
  names = std::move(*list);
  return Status::success();
}

/// The units of `parent[list]`, each called by `name`.
Expected<std::vector<SlurmUnit>> readUnits(const YamlDocument &document, const YAML::Node &parent, const char *list,
                                           const char *name) {
  std::vector<SlurmUnit> units;
  size_t total = 0;
  if (!parent.IsMap() || !parent[list] || !parent[list].IsSequence())
    return document.error(parent, std::string("needs a list '") + list + "'");
  for (const YAML::Node &node : parent[list]) {
    if (Status status = document.checkKeys(node, name, {name, "nodes", "children"}); !status)
      return status.takeError();
    if (!node[name])
      return document.error(node, std::string("lacks '") + name + "'");
    Expected<std::string> text = document.asString(node[name], name);
    if (!text)
      return text.takeError();
    SlurmUnit unit{std::move(*text), document.place(node), {}, {}};
    if (Status status = readNames(document, node, "nodes", unit.nodes, total); !status)
      return status.takeError();
    if (Status status = readNames(document, node, "children", unit.children, total); !status)
      return status.takeError();
    units.push_back(std::move(unit));
  }
  return units;
}

Expected<YAML::Node> chosen(const YamlDocument &document) {
  if (!document.root.IsSequence() || document.root.size() == 0)
    return document.error(document.root, "must be a list of topologies");
  YAML::Node result = document.root[0];
  bool found = false;
  for (const YAML::Node &node : document.root) {
    if (Status status =
            document.checkKeys(node, "a topology", {"topology", "cluster_default", "tree", "block", "flat"});
        !status)
      return status.takeError();
    if (found || !node["cluster_default"])
      continue;
    Expected<std::string> text = document.asString(node["cluster_default"], "cluster_default");
    if (!text)
      return text.takeError();
    if (*text != "true" && *text != "false")
      return document.error(node["cluster_default"],
                            "cluster_default is '" + shortened(*text) + "', must be true or false");
    found = *text == "true";
    if (found)
      result.reset(node);
  }
  return result;
}

} // namespace

Expected<Topology> importSlurmYaml(const std::string &text, const std::string &file, const Topology &like) {
  Expected<YamlDocument> document = parseYaml(text, file);
  if (!document)
    return document.takeError();
  Expected<YAML::Node> node = chosen(*document);
  if (!node)
    return node.takeError();
  bool tree = bool((*node)["tree"]);
  if (tree == bool((*node)["block"]))
    return document->error(*node, tree ? "has both 'tree' and 'block'" : "has neither 'tree' nor 'block'",
                           "a flat topology does not say which nodes are near; write tiers by hand");
  YAML::Node part = (*node)[tree ? "tree" : "block"];
  if (Status status = document->checkKeys(part, tree ? "tree" : "block",
                                          tree ? std::vector<std::string>{"switches"}
                                               : std::vector<std::string>{"block_sizes", "blocks"});
      !status)
    return status.takeError();
  Expected<std::vector<SlurmUnit>> units =
      readUnits(*document, part, tree ? "switches" : "blocks", tree ? "switch" : "block");
  if (!units)
    return units.takeError();
  return tree ? topologyOfTree(*units, file, like) : topologyOfBlocks(*units, file, like);
}

} // namespace k2c::cluster

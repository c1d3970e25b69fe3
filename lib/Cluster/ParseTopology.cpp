//===- ParseTopology.cpp - Topology files ---------------------------------===//
//
// One function a level of the file. A reader keeps the first mistake, so that each level is a list of assignments.
//
//===----------------------------------------------------------------------===//
#include "Quantity.h"
#include "k2c/Cluster/Topology.h"
#include "k2c/Support/Yaml.h"

namespace k2c {

using namespace cluster;

namespace {

/// A mapping of the document; remembers the first mistake.
class Mapping {
public:
  Mapping(const YamlDocument &document, YAML::Node node, std::string what, const std::vector<std::string> &known)
      : document(document), node(std::move(node)), what(std::move(what)) {
    keep(document.checkKeys(this->node, this->what, known));
  }

  bool has(const char *key) const { return node.IsMap() && node[key]; }
  YAML::Node at(const char *key) {
    if (has(key))
      return node[key];
    keep(document.error(node, what + " lacks '" + key + "'"));
    return YAML::Node();
  }

  void text(const char *key, std::string &value) {
    if (YAML::Node child = at(key); !mistake)
      keep(document.asString(child, key), value);
  }
  void count(const char *key, int64_t &value) {
    YAML::Node child = at(key);
    if (mistake)
      return;
    keep(document.asInt(child, key), value);
    if (!mistake && (value < 1 || value > maxCount))
      keep(document.error(child, std::string(key) + " is " + std::to_string(value) + ", must be 1 to " +
                                     std::to_string(maxCount)));
  }
  /// `key: 48 KiB` or `key: {value: 48 KiB, source: "..."}`.
  double quantity(const char *key, Dimension dimension, std::string &source) {
    YAML::Node child = at(key);
    if (mistake)
      return 0;
    source = "stated in " + document.place(child);
    if (!child.IsMap())
      return scalar(child, key, dimension);
    Mapping pair(document, child, key, {"value", "source"});
    if (pair.has("source"))
      pair.text("source", source);
    double value = pair.mistake ? 0 : scalar(pair.at("value"), key, dimension);
    if (pair.mistake)
      keep(std::move(*pair.mistake));
    return value;
  }
  template <class Tag> void number(const char *key, Dimension dimension, Sourced<Quantity<Tag, double>> &to) {
    to.value = Quantity<Tag, double>(quantity(key, dimension, to.source));
  }
  void number(const char *key, Sourced<Bytes> &to) {
    to.value = Bytes(static_cast<int64_t>(quantity(key, Dimension::Bytes, to.source)));
  }

  void keep(Status status) {
    if (!status && !mistake)
      mistake = status.takeError();
  }
  std::optional<Error> mistake;

private:
  static constexpr int64_t maxCount = 1 << 20;

  template <class T> void keep(Expected<T> result, T &value) {
    if (result)
      value = std::move(*result);
    else
      keep(Status(result.takeError()));
  }
  double scalar(const YAML::Node &child, const char *key, Dimension dimension) {
    std::string text;
    keep(document.asString(child, key), text);
    if (mistake)
      return 0;
    Expected<double> value = parseQuantity(text, dimension, document.place(child));
    if (value && *value <= 9e18)
      return *value;
    keep(value ? Status(document.error(child, "'" + text + "' is too large")) : Status(value.takeError()));
    return 0;
  }

  const YamlDocument &document;
  YAML::Node node;
  std::string what;
};

Expected<Device> readDevice(const YamlDocument &document, const YAML::Node &node) {
  Mapping in(document, node, "device", {"kind", "cores", "memory", "memory_read", "f32", "bf16", "l1", "l2", "l3"});
  Device device;
  in.text("kind", device.kind);
  if (!in.mistake && device.kind != "cpu")
    return document.error(node["kind"], "device kind '" + device.kind + "' is not in this build", "use kind: cpu");
  in.count("cores", device.cores);
  in.number("memory", device.memory);
  in.number("memory_read", Dimension::BytesPerSecond, device.memoryRead);
  in.number("f32", Dimension::FlopPerSecond, device.f32);
  in.number("bf16", Dimension::FlopPerSecond, device.bf16);
  in.number("l1", device.l1);
  in.number("l2", device.l2);
  in.number("l3", device.l3);
  if (in.mistake)
    return std::move(*in.mistake);
  return device;
}

Expected<Link> readLink(const YamlDocument &document, const YAML::Node &node, const char *name) {
  Mapping in(document, node, name, {"bandwidth", "latency", "source"});
  Link link;
  std::string source;
  link.bandwidth = Bandwidth(in.quantity("bandwidth", Dimension::BytesPerSecond, link.source));
  link.latency = Seconds(in.quantity("latency", Dimension::Seconds, source));
  if (in.has("source"))
    in.text("source", link.source);
  if (in.mistake)
    return std::move(*in.mistake);
  return link;
}

/// Reads `key` of `links` into `to`. `needed`: more than one device at that level, so the planner needs the link.
Status readLinkInto(const YamlDocument &document, const YAML::Node &links, const char *key, bool needed,
                    std::optional<Link> &to) {
  bool present = links && links.IsMap() && links[key];
  if (needed && !present)
    return document.error(links ? links : document.root, std::string("several devices need the link '") + key + "'");
  if (!present)
    return Status::success();
  Expected<Link> link = readLink(document, links[key], key);
  if (!link)
    return link.takeError();
  to = std::move(*link);
  return Status::success();
}

} // namespace

Expected<Topology> parseTopology(const std::string &text, const std::string &file) {
  Expected<YamlDocument> document = parseYaml(text, file);
  if (!document)
    return document.takeError();
  Mapping in(*document, document->root, "the topology",
             {"name", "description", "nodes", "devices_per_node", "device", "links"});
  Topology topology;
  in.text("name", topology.name);
  if (in.has("description"))
    in.text("description", topology.description);
  in.count("nodes", topology.nodes);
  in.count("devices_per_node", topology.devicesPerNode);
  YAML::Node deviceNode = in.at("device");
  YAML::Node links = in.has("links") ? in.at("links") : YAML::Node(YAML::NodeType::Undefined);
  if (in.has("links"))
    in.keep(document->checkKeys(links, "links", {"node", "network"}));
  if (in.mistake)
    return std::move(*in.mistake);
  Expected<Device> device = readDevice(*document, deviceNode);
  if (!device)
    return device.takeError();
  topology.device = std::move(*device);
  if (Status status = readLinkInto(*document, links, "node", topology.devicesPerNode > 1, topology.node); !status)
    return status.takeError();
  if (Status status = readLinkInto(*document, links, "network", topology.nodes > 1, topology.network); !status)
    return status.takeError();
  return topology;
}

} // namespace k2c

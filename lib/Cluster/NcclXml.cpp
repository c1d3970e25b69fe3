//===- NcclXml.cpp - NCCL's topology XML ------------------------------------===//
//
// system > cpu > pci (nested) > gpu > nvlink, and nic > net. Devices are numbered in the order of the file. Links to an
// NVSwitch count for every other device, links to a GPU for that pair. The fastest network adapters, shared equally,
// are the way out of the node.
//
//===----------------------------------------------------------------------===//
#include "Importers.h"
#include "XmlDocument.h"
#include "base/Utf8.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace k2c::cluster {

namespace {

constexpr size_t maxGpus = 576; // of one NVLink domain

struct Gpu {
  pugi::xml_node element;
  std::string bus;
};

struct Found {
  const XmlDocument &document;
  std::vector<Gpu> gpus;
  std::vector<pugi::xml_node> nets;

  std::string where(pugi::xml_node element) const { return document.where(element); }
  /// A whole attribute from 1 to `max`.
  Expected<int64_t> number(pugi::xml_node element, const char *name, int64_t max) const;
};

Expected<int64_t> Found::number(pugi::xml_node element, const char *name, int64_t max) const {
  const pugi::xml_attribute attribute = element.attribute(name);
  if (!attribute)
    return Error{where(element), shortened(element.name()) + " lacks '" + name + "'", ""};
  const std::string text = attribute.value();
  bool digits = !text.empty() && text.size() < 12 && text.find_first_not_of("0123456789") == std::string::npos;
  int64_t value = digits ? std::atoll(text.c_str()) : -1;
  if (value < 1 || value > max)
    return Error{where(element),
                 std::string(name) + " is '" + shortened(text) + "', must be 1 to " + std::to_string(max), ""};
  return value;
}

/// Every gpu with the bus of the pci above it, every net. Depth is bounded by XmlDocument.
void find(pugi::xml_node element, const std::string &bus, Found &found) {
  const std::string name = element.name();
  if (name == "gpu")
    found.gpus.push_back({element, bus});
  if (name == "net")
    found.nets.push_back(element);
  const pugi::xml_attribute own = name == "pci" ? element.attribute("busid") : pugi::xml_attribute();
  const std::string bound = own ? own.value() : bus;
  for (pugi::xml_node child : element.children())
    find(child, bound, found);
}

/// Adds the links of device `i`.
Status countLinks(size_t i, const Found &found, const std::map<std::string, size_t> &byBus, NodeLinks &node) {
  for (pugi::xml_node link : found.gpus[i].element.children("nvlink")) {
    Expected<int64_t> count = found.number(link, "count", 64);
    if (!count)
      return count.takeError();
    const pugi::xml_attribute tclass = link.attribute("tclass"), target = link.attribute("target");
    const std::string type = tclass.value();
    if (!tclass || !target)
      return Error{found.where(link), "nvlink lacks 'tclass' or 'target'", ""};
    if (type == "0x068000") { // an NVSwitch
      node.switched = true;
      for (size_t j = 0; j < found.gpus.size(); ++j)
        node.counts[i][j] += i == j ? 0 : *count;
    } else if (type.compare(0, 4, "0x03") == 0) { // a GPU
      auto other = byBus.find(target.value());
      if (other == byBus.end() || other->second == i)
        return Error{found.where(link), "target '" + shortened(target.value()) + "' is not another GPU of the file",
                     ""};
      node.counts[i][other->second] += *count;
    }
  }
  return Status::success();
}

Expected<std::vector<Tier>> readNode(const Found &found, int64_t sm, const std::string &file) {
  Expected<NvLinkRate> rate = nvLinkRate(sm, found.where(found.gpus[0].element));
  if (!rate)
    return rate.takeError();
  size_t gpus = found.gpus.size();
  NodeLinks node{file, *rate, std::vector<std::vector<int64_t>>(gpus, std::vector<int64_t>(gpus)), false};
  std::map<std::string, size_t> byBus;
  for (size_t i = 0; i < gpus; ++i)
    if (!byBus.emplace(found.gpus[i].bus, i).second)
      return Error{found.where(found.gpus[i].element), "a second gpu at busid '" + shortened(found.gpus[i].bus) + "'",
                   ""};
  for (size_t i = 0; i < gpus; ++i)
    if (Status status = countLinks(i, found, byBus, node); !status)
      return status.takeError();
  return tiersOfNode(node);
}

/// The way out of the node, when the file has adapters.
Status addNetwork(const Found &found, Topology &topology, const std::string &file) {
  int64_t fastest = 0, adapters = 0;
  for (pugi::xml_node net : found.nets) {
    Expected<int64_t> speed = found.number(net, "speed", 10000000);
    if (!speed)
      return speed.takeError();
    adapters = *speed > fastest ? 1 : adapters + (*speed == fastest);
    fastest = std::max(fastest, *speed);
  }
  if (adapters == 0)
    return Status::success();
  size_t gpus = found.gpus.size();
  Tier tier;
  tier.name = "network";
  tier.bandwidth = {Bandwidth(double(fastest) * 1e6 / 8 * double(adapters) / double(gpus)),
                    file + ": " + std::to_string(adapters) + " adapters of " + std::to_string(fastest) +
                        " Mbit/s for " + std::to_string(gpus) + " devices"};
  tier.latency = {Seconds(5e-6), "estimate: a small RDMA write over two switches"};
  topology.tiers.push_back(std::move(tier));
  return Status::success();
}

/// A built-in with devices of a compute capability.
Expected<Device> deviceOf(int64_t sm, const std::string &where) {
  const char *name = sm == 90 ? "h100x1" : sm == 100 ? "12x4-b200" : nullptr;
  if (!name)
    return Error{where, "no built-in topology has devices of compute capability " + std::to_string(sm),
                 "name a topology with the same devices: --like FILE"};
  Expected<Topology> topology = loadTopology(name);
  if (!topology)
    return topology.takeError();
  return topology->device;
}

} // namespace

Expected<Topology> importNcclXml(const std::string &text, const std::string &file,
                                 const std::optional<Topology> &like) {
  Expected<XmlDocument> document = XmlDocument::parse(text, file);
  if (!document)
    return document.takeError();
  const pugi::xml_node root = document->root();
  if (std::string(root.name()) != "system")
    return Error{document->where(root), "the root is '" + shortened(root.name()) + "', not 'system'",
                 "give what NCCL_TOPO_DUMP_FILE wrote"};
  Found found{*document, {}, {}};
  find(root, "", found);
  if (found.gpus.empty() || found.gpus.size() > maxGpus)
    return Error{
        document->where(root),
        "has " + std::to_string(found.gpus.size()) + " gpu elements, must have 1 to " + std::to_string(maxGpus), ""};
  Expected<int64_t> sm = found.number(found.gpus[0].element, "sm", 999);
  if (!sm)
    return sm.takeError();
  for (const Gpu &gpu : found.gpus) {
    Expected<int64_t> other = found.number(gpu.element, "sm", 999);
    if (!other)
      return other.takeError();
    if (*other != *sm)
      return Error{found.where(gpu.element),
                   "sm is " + std::to_string(*other) + ", of the first gpu " + std::to_string(*sm),
                   "only equal devices are imported"};
  }
  Expected<Device> device = like ? Expected<Device>(like->device) : deviceOf(*sm, found.where(found.gpus[0].element));
  if (!device)
    return device.takeError();
  Expected<std::vector<Tier>> tiers = readNode(found, *sm, file);
  if (!tiers)
    return tiers.takeError();
  Topology topology;
  topology.name = "imported";
  topology.description = "from NCCL's topology XML; devices as " + device->model;
  topology.device = std::move(*device);
  topology.tiers = std::move(*tiers);
  if (Status status = addNetwork(found, topology, file); !status)
    return status.takeError();
  return topology;
}

} // namespace k2c::cluster

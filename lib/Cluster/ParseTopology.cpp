//===- ParseTopology.cpp - Topology files ---------------------------------===//
//
// One function a level of the file. A reader keeps the first mistake, so that each level is a list of assignments.
//
//===----------------------------------------------------------------------===//
#include "Mapping.h"
#include "base/Utf8.h"

namespace k2c {

using namespace cluster;

std::string_view name(DeviceKind kind) {
  constexpr std::string_view names[] = {"cpu", "nvidia", "amd"};
  return names[static_cast<uint8_t>(kind)];
}

const char *coresKey(DeviceKind kind) {
  constexpr const char *keys[] = {"cores", "sms", "cus"};
  return keys[static_cast<uint8_t>(kind)];
}

std::string wordOf(DeviceKind kind) { return kind == DeviceKind::Cpu ? "device" : "GPU"; }

std::optional<DeviceKind> parseDeviceKind(std::string_view word) {
  for (DeviceKind kind : {DeviceKind::Cpu, DeviceKind::Nvidia, DeviceKind::Amd})
    if (word == name(kind))
      return kind;
  return std::nullopt;
}

namespace {

constexpr int64_t maxTiers = 8;

void readRates(Mapping &in, Device &device) {
  in.number("f32", Dimension::FlopPerSecond, device.f32);
  in.number("bf16", Dimension::FlopPerSecond, device.bf16);
  for (auto [key, rate] : {std::pair{"fp8", &device.fp8}, std::pair{"fp4", &device.fp4}})
    if (in.has(key))
      in.number(key, Dimension::FlopPerSecond, rate->emplace());
}

/// Cores of each node, at least one node, `device.cores` in all.
Status readNuma(const YamlDocument &document, const YAML::Node &list, Device &device) {
  constexpr size_t maxNodes = 1024;
  if (!list.IsSequence() || list.size() == 0 || list.size() > maxNodes)
    return document.error(list, "numa must be a list of 1 to " + std::to_string(maxNodes) +
                                    " numbers, the cores of each NUMA node");
  int64_t sum = 0;
  for (const YAML::Node &node : list) {
    Expected<int64_t> cores = document.asInt(node, "cores of a NUMA node");
    if (!cores)
      return cores.takeError();
    if (*cores < 1 || *cores > Mapping::maxCount)
      return document.error(node, "cores of a NUMA node is " + std::to_string(*cores) + ", must be 1 to " +
                                      std::to_string(Mapping::maxCount));
    device.numa.push_back(*cores);
    sum += *cores;
  }
  if (sum != device.cores)
    return document.error(list,
                          "numa has " + std::to_string(sum) + " cores, the device " + std::to_string(device.cores),
                          "list the cores of every NUMA node, or leave numa out");
  return Status::success();
}

void readCpu(Mapping &in, Device &device) {
  in.count("cores", device.cores);
  in.number("memory", device.memory);
  in.number("memory_read", Dimension::BytesPerSecond, device.memoryRead);
  readRates(in, device);
  in.number("l1", device.l1);
  in.number("l2", device.l2);
  in.number("l3", device.l3);
  if (in.has("numa"))
    in.keep(readNuma(in.document, in.at("numa"), device));
  if (in.has("measured"))
    readCalibration(in, in.at("measured"), device.measured.emplace());
}

void readReachedRates(Mapping &device, int64_t sms, ReachedRates &rates) {
  Mapping in(device.document, device.at("kernels"), "kernels",
             {"memory", "bf16", "fp8", "attention", "attention_backward", "launch", "fill", "attention_fill",
              "tile_rows", "transfer_sms", "transfer_rate", "send_receive"});
  for (auto [key, share] :
       {std::pair{"memory", &rates.memory}, std::pair{"bf16", &rates.bf16}, std::pair{"fp8", &rates.fp8},
        std::pair{"attention", &rates.attention}, std::pair{"attention_backward", &rates.attentionBackward},
        std::pair{"transfer_rate", &rates.transferRate}})
    if (in.has(key))
      in.share(key, *share);
  for (auto [key, time] : {std::pair{"launch", &rates.launch}, std::pair{"send_receive", &rates.sendReceive}})
    if (in.has(key))
      in.number(key, Dimension::Seconds, *time);
  if (in.has("fill"))
    in.number("fill", rates.fill);
  for (auto [key, count] : {std::pair{"attention_fill", &rates.attentionFill}, std::pair{"tile_rows", &rates.tileRows}})
    if (in.has(key))
      in.whole(key, 1 << 20, *count);
  if (in.has("transfer_sms"))
    in.whole("transfer_sms", sms - 1, rates.transferSms);
  device.take(in);
}

void readGpu(Mapping &in, Device &device) {
  in.text("arch", device.arch);
  if (!in.mistake)
    device.archPlace = in.document.place(in.at("arch"));
  in.count(coresKey(device.kind), device.cores);
  in.number("memory", device.memory);
  in.number("memory_read", Dimension::BytesPerSecond, device.memoryRead);
  readRates(in, device);
  if (in.has("l2"))
    in.number("l2", device.l2);
  if (in.has("l2_read"))
    in.number("l2_read", Dimension::BytesPerSecond, device.l2Read.emplace());
  if (in.has("kernels"))
    readReachedRates(in, device.cores, device.kernels);
}

Expected<Device> readDevice(const YamlDocument &document, const YAML::Node &node) {
  std::vector<std::string> keys = {"kind", "model", "memory", "memory_read", "f32", "bf16", "fp8", "fp4", "l2"};
  Device device;
  if (!node.IsMap() || !node["kind"])
    return document.error(node, node.IsMap() ? "device lacks 'kind'" : "device must be a mapping");
  Expected<std::string> word = document.asString(node["kind"], "kind");
  if (!word)
    return word.takeError();
  const std::optional<DeviceKind> kind = parseDeviceKind(*word);
  if (!kind)
    return document.error(node["kind"], "device kind '" + shortened(*word) + "' is not known",
                          "use cpu, nvidia or amd");
  device.kind = *kind;
  const bool isCpu = device.kind == DeviceKind::Cpu;
  keys.emplace_back(coresKey(device.kind));
  if (isCpu)
    keys.insert(keys.end(), {"numa", "l1", "l3", "measured"});
  else
    keys.insert(keys.end(), {"arch", "l2_read", "kernels"});
  Mapping in(document, node, "device", keys);
  if (in.has("model"))
    in.text("model", device.model);
  isCpu ? readCpu(in, device) : readGpu(in, device);
  if (in.mistake)
    return std::move(*in.mistake);
  return device;
}

Expected<Host> readHost(const YamlDocument &document, const YAML::Node &node) {
  Mapping in(document, node, "host", {"memory", "memory_bandwidth", "link", "bandwidth", "efficiency"});
  Host host;
  in.number("memory", host.memory);
  if (in.has("link"))
    in.text("link", host.link);
  if (in.has("memory_bandwidth"))
    in.number("memory_bandwidth", Dimension::BytesPerSecond, host.memoryBandwidth.emplace());
  in.number("bandwidth", Dimension::BytesPerSecond, host.bandwidth);
  if (in.has("efficiency"))
    in.share("efficiency", host.efficiency);
  if (in.mistake)
    return std::move(*in.mistake);
  return host;
}

Expected<Tier> readTier(const YamlDocument &document, const YAML::Node &node) {
  Mapping in(document, node, "a tier", {"name", "count", "link", "bandwidth", "latency", "efficiency", "source"});
  Tier tier;
  in.text("name", tier.name);
  in.count("count", tier.count);
  if (in.has("link"))
    in.text("link", tier.link);
  in.number("bandwidth", Dimension::BytesPerSecond, tier.bandwidth);
  in.number("latency", Dimension::Seconds, tier.latency);
  if (in.has("efficiency"))
    in.share("efficiency", tier.efficiency);
  if (in.has("source")) { // of the numbers that state none of their own
    std::string source;
    in.text("source", source);
    for (auto [key, of] : {std::pair{"bandwidth", &tier.bandwidth.source}, std::pair{"latency", &tier.latency.source},
                           std::pair{"efficiency", &tier.efficiency.source}})
      if (node[key] && !(node[key].IsMap() && node[key]["source"]))
        *of = source;
  }
  if (in.mistake)
    return std::move(*in.mistake);
  return tier;
}

Status readTiers(const YamlDocument &document, const YAML::Node &nodes, Topology &topology) {
  if (!nodes.IsSequence())
    return document.error(nodes, "tiers must be a list, the innermost first");
  if (int64_t(nodes.size()) > maxTiers)
    return document.error(nodes, "tiers has " + std::to_string(nodes.size()) + " entries, at most " +
                                     std::to_string(maxTiers) + " are accepted");
  for (const YAML::Node &node : nodes) {
    Expected<Tier> tier = readTier(document, node);
    if (!tier)
      return tier.takeError();
    for (const Tier &inner : topology.tiers)
      if (inner.name == tier->name)
        return document.error(node["name"], "two tiers are called '" + shortened(tier->name) + "'",
                              "rename one of them");
    int64_t inner = topology.ranks();
    if (inner * tier->count > maxRanks)
      return document.error(node["count"], std::to_string(tier->count) + " units of " + std::to_string(inner) +
                                               " devices are more than the " + std::to_string(maxRanks) + " accepted");
    topology.tiers.push_back(std::move(*tier));
  }
  return Status::success();
}

Status readNodeNames(const YamlDocument &document, const YAML::Node &nodes, Topology &topology) {
  if (!nodes.IsSequence())
    return document.error(nodes, "nodes must be a list of host names");
  for (const YAML::Node &node : nodes) {
    Expected<std::string> name = document.asString(node, "a node");
    if (!name)
      return name.takeError();
    topology.nodeNames.push_back(std::move(*name));
  }
  if (int64_t(nodes.size()) != topology.nodes())
    return document.error(
        nodes, "names " + std::to_string(nodes.size()) + " nodes, the tiers make " + std::to_string(topology.nodes()),
        "call the tier that ends at one host 'node'");
  return Status::success();
}

} // namespace

Expected<Topology> parseTopology(const std::string &text, const std::string &file) {
  Expected<YamlDocument> document = parseYaml(text, file);
  if (!document)
    return document.takeError();
  Mapping in(*document, document->root, "the topology",
             {"k2topo", "name", "description", "device", "host", "tiers", "nodes"});
  Topology topology;
  int64_t version = 1;
  in.count("k2topo", version);
  if (!in.mistake && version != 1)
    return document->error(document->root["k2topo"], "is format " + std::to_string(version) + ", this build reads 1");
  in.text("name", topology.name);
  if (in.has("description"))
    in.text("description", topology.description);
  YAML::Node deviceNode = in.at("device");
  if (in.mistake)
    return std::move(*in.mistake);
  Expected<Device> device = readDevice(*document, deviceNode);
  if (!device)
    return device.takeError();
  topology.device = std::move(*device);
  if (in.has("host")) {
    if (topology.device.kind == DeviceKind::Cpu)
      return document->error(in.at("host"), "a cpu is its own host", "leave host out");
    Expected<Host> host = readHost(*document, in.at("host"));
    if (!host)
      return host.takeError();
    topology.host = std::move(*host);
  }
  if (in.has("tiers"))
    if (Status status = readTiers(*document, in.at("tiers"), topology); !status)
      return status.takeError();
  if (in.has("nodes"))
    if (Status status = readNodeNames(*document, in.at("nodes"), topology); !status)
      return status.takeError();
  return topology;
}

} // namespace k2c

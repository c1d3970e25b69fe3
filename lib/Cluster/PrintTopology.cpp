//===- PrintTopology.cpp - A topology as a file ---------------------------===//
#include "PrintCalibration.h"
#include "base/JsonText.h"
#include "k2c/Cluster/Quantity.h"
#include "k2c/Cluster/Topology.h"

namespace k2c {

using namespace cluster;

std::string cluster::quoted(const std::string &text) {
  std::string out = jsonText(nlohmann::json(text));
  for (size_t at; (at = out.find('\x7f')) != std::string::npos;)
    out.replace(at, 1, "\\u007f"); // JSON has it as it is, YAML must not
  return out;
}

namespace {

std::string pair(const std::string &value, const std::string &source) {
  return "{value: " + value + ", source: " + quoted(source) + "}";
}

template <class Q> std::string line(const char *key, const Sourced<Q> &of, Dimension dimension) {
  return "  " + std::string(key) + ": " + pair(printQuantity(double(of.value.value), dimension), of.source) + "\n";
}

/// Shares and counts have no unit; what a file left out is left out.
std::string printReachedRates(const ReachedRates &rates) {
  std::string out;
  for (auto [key, share] :
       {std::pair{"memory", &rates.memory}, std::pair{"bf16", &rates.bf16}, std::pair{"fp8", &rates.fp8},
        std::pair{"attention", &rates.attention}, std::pair{"attention_backward", &rates.attentionBackward},
        std::pair{"transfer_rate", &rates.transferRate}})
    if (share->value < 1)
      out += "    " + std::string(key) + ": " + pair(printNumber(share->value), share->source) + "\n";
  for (auto [key, time] : {std::pair{"launch", &rates.launch}, std::pair{"send_receive", &rates.sendReceive}})
    if (time->value > Seconds(0))
      out += "  " + line(key, *time, Dimension::Seconds);
  if (rates.fill.value > Bytes(0))
    out += "  " + line("fill", rates.fill, Dimension::Bytes);
  for (auto [key, count] : {std::pair{"attention_fill", &rates.attentionFill}, std::pair{"tile_rows", &rates.tileRows},
                            std::pair{"transfer_sms", &rates.transferSms}})
    if (!count->source.empty())
      out += "    " + std::string(key) + ": " + pair(std::to_string(count->value), count->source) + "\n";
  return out.empty() ? out : "  kernels:\n" + out;
}

std::string printDevice(const Device &device) {
  bool cpu = device.kind == DeviceKind::Cpu;
  std::string out = "device:\n  kind: " + std::string(name(device.kind)) + "\n";
  if (!device.model.empty())
    out += "  model: " + quoted(device.model) + "\n";
  if (!cpu)
    out += "  arch: " + quoted(device.arch) + "\n";
  out += std::string("  ") + coresKey(device.kind) + ": " + std::to_string(device.cores) + "\n";
  for (size_t node = 0; node < device.numa.size(); ++node)
    out += (node == 0 ? "  numa: [" : ", ") + std::to_string(device.numa[node]);
  out += device.numa.empty() ? "" : "]\n";
  out += line("memory", device.memory, Dimension::Bytes);
  out += line("memory_read", device.memoryRead, Dimension::BytesPerSecond);
  out += line("f32", device.f32, Dimension::FlopPerSecond);
  out += line("bf16", device.bf16, Dimension::FlopPerSecond);
  if (device.fp8)
    out += line("fp8", *device.fp8, Dimension::FlopPerSecond);
  if (device.fp4)
    out += line("fp4", *device.fp4, Dimension::FlopPerSecond);
  if (cpu)
    out += line("l1", device.l1, Dimension::Bytes);
  if (cpu || device.l2.value > Bytes(0))
    out += line("l2", device.l2, Dimension::Bytes);
  if (device.l2Read)
    out += line("l2_read", *device.l2Read, Dimension::BytesPerSecond);
  if (cpu)
    out += line("l3", device.l3, Dimension::Bytes);
  out += printReachedRates(device.kernels);
  if (device.measured)
    out += printCalibration(*device.measured);
  return out;
}

std::string printHost(const Host &host) {
  std::string out = "host:\n" + line("memory", host.memory, Dimension::Bytes);
  if (host.memoryBandwidth)
    out += line("memory_bandwidth", *host.memoryBandwidth, Dimension::BytesPerSecond);
  if (!host.link.empty())
    out += "  link: " + quoted(host.link) + "\n";
  out += line("bandwidth", host.bandwidth, Dimension::BytesPerSecond);
  return out + "  efficiency: " + pair(printNumber(host.efficiency.value), host.efficiency.source) + "\n";
}

std::string printTier(const Tier &tier) {
  std::string out = "  - name: " + quoted(tier.name) + "\n    count: " + std::to_string(tier.count) + "\n";
  if (!tier.link.empty())
    out += "    link: " + quoted(tier.link) + "\n";
  out += "  " + line("bandwidth", tier.bandwidth, Dimension::BytesPerSecond);
  out += "  " + line("latency", tier.latency, Dimension::Seconds);
  return out + "    efficiency: " + pair(printNumber(tier.efficiency.value), tier.efficiency.source) + "\n";
}

} // namespace

std::string printTopology(const Topology &topology) {
  std::string out = "k2topo: 1\nname: " + quoted(topology.name) + "\n";
  if (!topology.description.empty())
    out += "description: " + quoted(topology.description) + "\n";
  out += printDevice(topology.device);
  if (topology.host)
    out += printHost(*topology.host);
  if (!topology.tiers.empty())
    out += "tiers:\n";
  for (const Tier &tier : topology.tiers)
    out += printTier(tier);
  if (!topology.nodeNames.empty())
    out += "nodes:\n";
  for (const std::string &name : topology.nodeNames)
    out += "  - " + quoted(name) + "\n";
  return out;
}

} // namespace k2c

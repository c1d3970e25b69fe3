//===- SplitHost.cpp - A measured machine as several ranks ----------------===//
#include "k2c/Cluster/SplitHost.h"
#include "base/Utf8.h"

#include <numeric>

namespace k2c {

/// Gives each rank its part of the machine.
static void shareDevice(Device &device, int64_t ranks) {
  std::string part = ", one of " + std::to_string(ranks) + " equal parts";
  device.cores /= ranks;
  device.memory = {Bytes(device.memory.value.value / ranks), device.memory.source + part};
  device.memoryRead = {device.memoryRead.value * (1 / double(ranks)), device.memoryRead.source + part};
  device.measured.reset(); // rates of all processors as one rank
}

Expected<std::vector<Tier>> tiersBetween(const std::vector<LinkRates> &links, int64_t cores, int64_t ranks) {
  std::string where = std::to_string(ranks) + " ranks";
  int64_t joined = 1, within = cores / ranks; // `within`: processors of a rank that are not joined yet
  for (const LinkRates &link : links)
    joined *= link.count;
  if (joined != cores)
    return Error{where,
                 "the " + std::to_string(cores) + " processors are not joined evenly: the tiers make " +
                     std::to_string(joined),
                 "give the process the processors of equal units"};
  if (ranks < 1 || cores % ranks != 0)
    return Error{where, "do not divide the " + std::to_string(cores) + " processors", "name a divisor"};
  std::vector<Tier> tiers;
  for (const LinkRates &link : links) {
    int64_t inside = std::gcd(within, link.count);
    if (inside != link.count && inside != within)
      return Error{where, "cut a " + link.name + " of " + std::to_string(link.count) + " units unevenly",
                   "name a multiple or a divisor of them"};
    within /= inside;
    if (inside == link.count)
      continue;
    tiers.push_back({link.name, link.count / inside, "shared-memory", {}, {link.latency, ""}, {1, ""}});
    if (!link.read.empty())
      tiers.back().bandwidth.value = link.read.back().rate;
  }
  if (!tiers.empty())
    tiers.back().name = "node";
  return tiers;
}

Expected<Topology> splitHost(const Topology &host, int64_t ranks) {
  if (!host.device.measured)
    return Error{std::to_string(ranks) + " ranks", "topology '" + shortened(host.name) + "' has no measured links",
                 "run k2c calibrate"};
  auto tiers = tiersBetween(host.device.measured->links, host.device.cores, ranks);
  if (!tiers)
    return tiers.takeError();
  Topology topology = host;
  topology.tiers = std::move(*tiers);
  for (Tier &tier : topology.tiers)
    tier.bandwidth.source = tier.latency.source = tier.efficiency.source =
        "measured by k2c calibrate, " + host.device.measured->date;
  shareDevice(topology.device, ranks);
  return topology;
}

} // namespace k2c

//===- NodeLinks.cpp - Links between the devices of a node as tiers ---------===//
#include "Importers.h"
#include "k2c/Support/Join.h"

#include <algorithm>

namespace k2c::cluster {

namespace {

/// One way; src/graph/topo.h of NCCL 2.30. Links of a device: datasheets of A100, H100, B200.
const NvLinkRate rates[] = {
    {70, Bandwidth(20.0e9), 6}, {80, Bandwidth(20.0e9), 12}, {90, Bandwidth(20.6e9), 18}, {100, Bandwidth(40.1e9), 18}};
const char *const rateSource = "NCCL 2.30, src/graph/topo.h";
const Bandwidth pciRate(12e9); // the same file: a gen3 x16 link

Tier tierOf(const char *name, int64_t count, const char *link, Sourced<Bandwidth> bandwidth) {
  Tier tier;
  tier.name = name;
  tier.count = count;
  tier.link = link;
  tier.bandwidth = std::move(bandwidth);
  tier.latency = {Seconds(2e-6), "estimate: a put and a flag between two devices of a node"};
  tier.efficiency = {1, "the bandwidth is what NCCL reaches"};
  return tier;
}

std::string device(size_t index) { return "GPU" + std::to_string(index); }

} // namespace

Expected<NvLinkRate> nvLinkRate(int64_t sm, const std::string &where) {
  for (const NvLinkRate &rate : rates)
    if (rate.sm == sm)
      return rate;
  return Error{where, "compute capability " + std::to_string(sm) + " has no known NVLink rate",
               "known are " + joined(rates, [](const NvLinkRate &rate) { return std::to_string(rate.sm); })};
}

Expected<std::vector<Tier>> tiersOfNode(const NodeLinks &node) {
  const auto &counts = node.counts;
  size_t devices = counts.size(), group = 1;
  for (size_t j = 1; j < devices; ++j)
    group += counts[0][j] > 0;
  int64_t links = 0;
  for (size_t i = 0; i < devices; ++i) {
    size_t size = 1;
    for (size_t j = 0; j < devices; ++j) {
      if (i == j || counts[i][j] == 0)
        continue;
      ++size;
      links = links ? links : counts[i][j];
      if (counts[i][j] != links)
        return Error{node.file,
                     device(i) + " and " + device(j) + " have " + std::to_string(counts[i][j]) + " links, others " +
                         std::to_string(links),
                     "only devices joined alike are imported"};
      for (size_t k = 0; k < devices; ++k)
        if (k != i && k != j && (counts[i][k] > 0) != (counts[j][k] > 0))
          return Error{node.file, device(i) + " is joined to " + device(j) + " but not to the same others",
                       "only groups joined all to all are imported"};
    }
    if (size != group)
      return Error{node.file,
                   device(i) + " is in a group of " + std::to_string(size) + ", " + device(0) + " in one of " +
                       std::to_string(group),
                   "only equal groups are imported"};
  }
  std::vector<Tier> tiers;
  Sourced<Bandwidth> pci{pciRate, std::string(rateSource) + ": a PCIe gen3 x16 link"};
  if (group > 1) {
    int64_t all = node.switched ? links : links * int64_t(group - 1);
    Sourced<Bandwidth> bandwidth{node.rate.link * double(all),
                                 node.file + ": " + std::to_string(all) + " links of a device; " + rateSource};
    tiers.push_back(tierOf(group == devices ? "node" : "nvlink", int64_t(group), "nvlink", std::move(bandwidth)));
  }
  if (group < devices)
    tiers.push_back(tierOf("node", int64_t(devices / group), "pcie", std::move(pci)));
  return tiers;
}

} // namespace k2c::cluster

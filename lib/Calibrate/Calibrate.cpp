//===- Calibrate.cpp - Measures this machine with the compiler's own kernels -===//
//
// Teams of the runtime's workers run the compiler's kernels, pinned threads exchange cache lines: in rounds, of which
// the fastest numbers stay.
//
//===----------------------------------------------------------------------===//
#include "k2c/Calibrate/Calibrate.h"

#include "Clock.h"
#include "Links.h"
#include "Measurement.h"
#include "base/Container.h"
#include "k2c/Cluster/SplitHost.h"
#include <algorithm>

namespace k2c {

using namespace calibration;

namespace {

/// The rates that a topology has without `measured`: the best that kernels reached.
void summarize(Device &device, const Calibration &calibration) {
  std::string source = std::string(measuredSource) + ", " + calibration.date;
  const TeamRates &all = calibration.teams.back();
  device.memoryRead = {all.read.back().rate, source};
  for (auto [type, rate] : {std::pair{DType::F32, &device.f32}, std::pair{DType::BF16, &device.bf16}})
    for (const KernelRates &kernel : all.kernels)
      if (kernel.kind == "linear" && kernel.x == type) {
        double best = *std::max_element(kernel.near.begin(), kernel.near.end());
        bool first = rate->source != source;
        *rate = {FlopRate(first ? best : std::max(best, rate->value.value)), source};
      }
}

std::vector<Probe> allProbes(const TargetInfo &info, bool quick, int64_t maxWorkers) {
  std::vector<Probe> probes = linearProbes(info, quick, maxWorkers);
  for (std::vector<Probe> more : {attentionProbes(info, maxWorkers), rowProbes(info)})
    std::move(more.begin(), more.end(), std::back_inserter(probes));
  return probes;
}

/// Room for what one trial reads and writes besides weights.
constexpr Bytes bufferBytes = mebibytes(48);
constexpr int rounds = 2;

/// The teams, largest last.
std::vector<int64_t> teamSizes(const CalibrateOptions &options, const Device &device) {
  if (!options.workers.empty())
    return options.workers;
  return device.cores > 1 ? std::vector<int64_t>{1, device.cores} : std::vector<int64_t>{1};
}

/// Whether links of these tiers can be cut for as many ranks.
Status checkRanks(const std::vector<HostTier> &tiers, const CalibrateOptions &options, const Device &device) {
  std::vector<LinkRates> links;
  for (const HostTier &tier : tiers)
    links.push_back({tier.name, tier.count, {}, {}, {}});
  if (options.ranks == 1)
    return {};
  auto split = tiersBetween(links, device.cores, options.ranks);
  return split ? Status() : Status(split.takeError());
}

/// What calibration works with: kernels, memory, and where it writes.
struct Session {
  const CalibrateOptions &options;
  const Device &device;
  const std::vector<HostTier> &tiers;
  std::vector<Probe> probes;
  Kernels kernels;
  Bench bench;
  Calibration &calibration;

  Seconds budget() const { return Seconds(options.quick ? 2e-3 : 5e-3); }
  Status measureTeams(const std::vector<int64_t> &sizes) const;
  Status measureLinks() const; ///< one round
};

Status Session::measureTeams(const std::vector<int64_t> &sizes) const {
  int64_t done = 0, total = int64_t(probes.size() * sizes.size()) * rounds;
  for (int64_t size : sizes) {
    Expected<Team> team = Team::start(size, kernels.scratch);
    if (!team)
      return team.takeError();
    Measurement measurement(probes, kernels, bench, *team, budget());
    for (int round = 0; round < rounds; ++round) {
      if (Status status = measureLinks(); !status)
        return status;
      Status status = measurement.round(device.l2.value, [&] {
        if (options.progress)
          options.progress("rates", ++done, total);
      });
      if (!status)
        return status;
    }
    calibration.teams.push_back(measurement.rates());
  }
  return {};
}

Status Session::measureLinks() const {
  ThreadLinkProbe probe(budget());
  Expected<std::vector<LinkRates>> links = calibration::measureLinks(tiers, device.l2.value * 4, probe);
  if (!links)
    return links.takeError();
  keepFastest(calibration.links, *links);
  return {};
}

void roundLinks(std::vector<LinkRates> &links) {
  for (LinkRates &link : links) {
    link.latency = Seconds(rounded(link.latency.value));
    for (auto *rates : {&link.read, &link.write})
      for (ReadRate &each : *rates)
        each.rate = Bandwidth(rounded(each.rate.value));
  }
}

} // namespace

Expected<Topology> calibrate(const CalibrateOptions &options) {
  Expected<HostTarget> host = HostTarget::detect();
  if (!host)
    return host.takeError();
  Topology topology = hostTopology();
  Device &device = topology.device;
  std::vector<int64_t> sizes = teamSizes(options, device);
  int64_t maxWorkers = *std::max_element(sizes.begin(), sizes.end());
  if (Status status = checkWorkers(maxWorkers); !status)
    return status.takeError();
  std::vector<HostTier> tiers = hostTiers(readContainer().processors);
  if (Status status = checkRanks(tiers, options, device); !status)
    return status.takeError();
  TargetInfo info = host->tileTarget();
  std::vector<Probe> probes = allProbes(info, options.quick, maxWorkers);
  Expected<Kernels> kernels = Kernels::compile(probes, *host, options);
  if (!kernels)
    return kernels.takeError();
  Bytes caches(device.l3.value.value + maxWorkers * device.l2.value.value);
  Expected<Memory> buffers = Memory::map(bufferBytes), large = Memory::map(caches * 3);
  for (Expected<Memory> *memory : {&buffers, &large})
    if (!*memory)
      return memory->takeError();
  Buffers parts(*buffers);
  Calibration calibration{options.tool, today(), host->cpu, {}, {}};
  Session session{options, device, tiers, std::move(probes), std::move(*kernels), {info, parts, *large}, calibration};
  if (Status status = session.measureTeams(sizes); !status)
    return status.takeError();
  roundLinks(calibration.links);
  summarize(device, calibration);
  topology.description += ", measured " + calibration.date;
  device.measured = std::move(calibration);
  return topology;
}

} // namespace k2c

// `run links`: what the links between a program's ranks carry, written as the topology that it was compiled for, with
// other numbers in its tiers. All ranks run the command; rank 0 alone prints and writes. No weights are mapped.
//
//   agree on the bundle -> each tier of its topology.yaml, innermost first: LinkProbe -> end of the run -> the file
//
// A pair of ranks alone gives the bandwidth of a tier. What each gets of it while all ranks send is its efficiency: of
// ranks that share the link of a node a part. The planner calculates with the product of both.
#include "base/Utf8.h"
#include "exchange/LinkProbe.h"
#include "program/TopologyFile.h"
#include "run/Interrupt.h"
#include "run/Run.h"
#include <algorithm>
#include <array>
#include <system_error>
#include <thread>

namespace k2c::runtime {

namespace {

/// What is measured, and between whom.
struct LinksOfProgram {
  TopologyFile topology;
  int64_t ranks = 0, nodes = 1;
  bool isOneHost = false;
  std::string transport, folder; ///< of the bundle
};

struct Unit {
  const char *name;
  double factor;
};

/// In the largest unit of which there is one, or in the last.
template <size_t n> std::string quantityText(double value, const std::array<Unit, n> &units) {
  const auto fits = [&](const Unit &unit) { return value >= unit.factor; };
  const auto found = std::find_if(units.begin(), units.end() - 1, fits);
  char text[48];
  std::snprintf(text, sizeof text, "%.4g %s", value / found->factor, found->name);
  return text;
}

std::string rateText(double bytesPerSecond) {
  constexpr std::array<Unit, 5> units = {{{"TB/s", 1e12}, {"GB/s", 1e9}, {"MB/s", 1e6}, {"KB/s", 1e3}, {"B/s", 1}}};
  return quantityText(bytesPerSecond, units);
}

std::string timeText(double seconds) {
  constexpr std::array<Unit, 4> units = {{{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}}};
  return quantityText(seconds, units);
}

std::string sizeText(int64_t bytes) {
  constexpr std::array<Unit, 2> units = {{{"MiB", 1 << 20}, {"KiB", 1 << 10}}};
  return quantityText(static_cast<double>(bytes), units);
}

/// As lines of a topology file.
TierNumbers numbersOf(const LinkRates &rates, const LinksOfProgram &links) {
  const std::string by = "\"measured by links over " + links.transport + ": ";
  const double share = std::min(1.0, rates.togetherBytesPerSecond / rates.aloneBytesPerSecond);
  char efficiency[32];
  std::snprintf(efficiency, sizeof efficiency, "%.3g", share);
  return {"{value: " + rateText(rates.aloneBytesPerSecond) + ", source: " + by + "a rank to another one, messages of " +
              sizeText(rates.aloneBytes) + "\"}",
          "{value: " + timeText(rates.latencySeconds) + ", source: " + by + "half of a round trip\"}",
          std::string("{value: ") + efficiency + ", source: " + by + rateText(rates.togetherBytesPerSecond) +
              " each while " + std::to_string(links.ranks) + " ranks send, messages of " +
              sizeText(rates.togetherBytes) + "\"}"};
}

/// Of all tiers that join several units, by tier. `tells`: says what was found, on stderr.
Expected<std::vector<LinkRates>> measureTiers(LinkProbe &probe, const TopologyFile &topology, bool tells) {
  std::vector<LinkRates> all;
  LinkTier between{1, 1};
  for (const TopologyTier &tier : topology.tiers()) {
    between.inner *= between.count;
    between.count = static_cast<int32_t>(tier.count);
    all.emplace_back();
    if (tier.count == 1)
      continue;
    Expected<LinkRates> rates = probe.measure(between);
    if (!rates)
      return rates.takeError();
    all.back() = *rates;
    if (tells)
      std::fprintf(stderr, "run: %s: %s from a rank to another one, %s each while all ranks send, latency %s\n",
                   shortened(tier.name).c_str(), rateText(rates->aloneBytesPerSecond).c_str(),
                   rateText(rates->togetherBytesPerSecond).c_str(), timeText(rates->latencySeconds).c_str());
  }
  if (Status closed = probe.close(); !closed)
    return closed.takeError();
  return all;
}

void write(const std::vector<LinkRates> &rates, const LinksOfProgram &links, FILE *file) {
  std::vector<TierNumbers> numbers;
  for (const LinkRates &each : rates)
    numbers.push_back(each.latencySeconds > 0 ? numbersOf(each, links) : TierNumbers());
  std::fprintf(
      file,
      "# Links between %lld ranks on %lld hosts, measured over %s. The bandwidth of a tier is that from a rank "
      "to\n# another one; its efficiency is the part of it that each rank gets while all of them send.\n",
      static_cast<long long>(links.ranks), static_cast<long long>(links.isOneHost ? 1 : links.nodes),
      links.transport.c_str());
  std::fputs(links.topology.with(numbers).c_str(), file);
}

/// What rank 0 does around `measure`, which returns the rates of all tiers.
template <class Measure> Status measureAndWrite(const LinksOfProgram &links, const std::string &path, Measure measure) {
  const bool isToStdout = path == "-";
  OutputFile file;
  if (!isToStdout) {
    if (Status leaves = leavesBundle("-o", path, links.folder); !leaves)
      return leaves;
    Expected<OutputFile> created = OutputFile::create("-o", path);
    if (!created)
      return created.takeError();
    file = std::move(*created);
  }
  if (links.isOneHost && links.nodes > 1)
    std::fprintf(stderr,
                 "run: note: all %lld ranks are on one host, so links between the %lld nodes of the program are "
                 "measured within it; DIR/launch.sh --hosts FILE starts them on several\n",
                 static_cast<long long>(links.ranks), static_cast<long long>(links.nodes));
  Expected<std::vector<LinkRates>> rates = measure();
  if (!rates)
    return rates.takeError();
  write(*rates, links, isToStdout ? stdout : file.stream());
  return isToStdout ? Status() : file.finish();
}

Expected<LinksOfProgram> linksOf(const ListedManifest &read, bool isOneHost, const RunOptions &options) {
  const RankFacts &ranks = read.manifest.ranks;
  if (!ranks.areSeveral())
    return Error{K2RT_UNSUPPORTED, "links", "the program has 1 rank, which has no links to others",
                 "compile it for a topology of several ranks"};
  if (options.transport.empty())
    return startedAlone(options.folder, ranks);
  Expected<TopologyFile> topology = TopologyFile::read(read.files, ranks.count);
  if (!topology)
    return topology.takeError();
  return LinksOfProgram{std::move(*topology), ranks.count, ranks.nodes, isOneHost, options.transport, options.folder};
}

/// This process is a rank of several.
Status measureProcesses(const RunOptions &options, const std::string &path) {
  Expected<AgreedBundle> agreed = options.process->meet(filesOf(options), onCpuOf(options));
  if (!agreed)
    return agreed.takeError();
  const bool isOneHost = agreed->place.ranks == agreed->read.manifest.ranks.count;
  Expected<LinksOfProgram> links = linksOf(agreed->read, isOneHost, options);
  if (!links)
    return links.takeError();
  const bool isFirst = options.process->rank() == 0;
  // Up to the end of the process: MPI and UCX of another one read its buffers through the system, and end that process
  // where they are gone.
  static std::unique_ptr<LinkProbe> probe;
  probe = std::make_unique<LinkProbe>(options.process->takeExchange());
  interruptStops(probe.get());
  const auto measure = [&] { return measureTiers(*probe, links->topology, isFirst); };
  Status done;
  if (isFirst)
    done = measureAndWrite(*links, path, measure);
  else if (Expected<std::vector<LinkRates>> measured = measure(); !measured)
    done = measured.takeError();
  interruptStops(static_cast<LinkProbe *>(nullptr));
  probe->leave();
  return done;
}

/// All ranks are threads of this process.
Status measureThreads(const RunOptions &options, const std::string &path) {
  Expected<ListedManifest> read = readListedManifest(options.folder);
  if (!read)
    return read.takeError();
  Expected<LinksOfProgram> links = linksOf(*read, /*isOneHost=*/true, options);
  if (!links)
    return links.takeError();
  const Container host = readContainer();
  CpuOptions onCpu = onCpuOf(options);
  onCpu.share.ranks = static_cast<int32_t>(links->ranks);
  Expected<int32_t> threads = threadsOf(read->manifest, onCpu, host);
  if (!threads)
    return threads.takeError();
  auto exchanges = localExchanges(read->manifest.ranks, read->files.hashOf("program.so"), deadlineOf(options),
                                  spinsOf(onCpu.share, host, *threads));
  if (!exchanges)
    return exchanges.takeError();
  std::vector<std::unique_ptr<LinkProbe>> probes;
  for (std::unique_ptr<Exchange> &exchange : *exchanges)
    probes.push_back(std::make_unique<LinkProbe>(std::move(exchange)));
  interruptStops(probes[0].get());
  Status done = measureAndWrite(*links, path, [&] {
    std::vector<std::thread> others;
    try {
      for (size_t rank = 1; rank < probes.size(); ++rank)
        others.emplace_back([&, rank] { (void)measureTiers(*probes[rank], links->topology, false); });
    } catch (const std::system_error &refused) {
      probes[0]->fail(systemError("thread of rank " + std::to_string(others.size() + 1), "cannot be started",
                                  refused.code().value()));
    }
    Expected<std::vector<LinkRates>> measured = measureTiers(*probes[0], links->topology, true);
    for (std::thread &thread : others)
      thread.join();
    return measured;
  });
  interruptStops(static_cast<LinkProbe *>(nullptr));
  return done;
}

} // namespace

void addLinks(CLI::App &app, RunOptions &options, Command &command) {
  CLI::App *links = app.add_subcommand(
      "links", "measure the links between ranks, and write the program's topology with what was found");
  auto path = std::make_shared<std::string>("-");
  links->add_option("-o,--output", *path, "topology file to write (default: standard output)")->check(notEmpty());
  addRankFlags(*links, options);
  links->footer("Example: ./launch.sh --hosts hosts links -o measured.yaml\n"
                "Then `k2c plan` and `k2c compile` take it: --topology measured.yaml");
  links->callback([&options, &command, path] {
    options.isOfAllRanks = true;
    command = [&options, path] {
      return options.process ? measureProcesses(options, *path) : measureThreads(options, *path);
    };
  });
}

} // namespace k2c::runtime

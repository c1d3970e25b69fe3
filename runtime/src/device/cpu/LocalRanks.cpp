// All exchanges are opened before any rank begins, so that whatever goes wrong from there on is told to all.
#include "device/cpu/LocalRanks.h"
#include "transport/local/LocalTransport.h"
#include <system_error>

namespace k2c::runtime {

static Status checkLocal(const RankFacts &ranks) {
  if (ranks.count <= maxLocalRanks)
    return {};
  return Error{K2RT_UNSUPPORTED, "--transport local",
               "the bundle has " + std::to_string(ranks.count) + " ranks, one process has at most " +
                   std::to_string(maxLocalRanks),
               "compile for a smaller topology"};
}

Expected<std::vector<std::unique_ptr<Exchange>>> localExchanges(const RankFacts &ranks, uint64_t program,
                                                                Clock::duration deadline, int32_t spins) {
  if (Status fits = checkLocal(ranks); !fits)
    return fits.takeError();
  const Grid grid = gridOf(ranks);
  std::vector<std::unique_ptr<Transport>> transports = localTransports(grid.ranks());
  std::vector<std::unique_ptr<Exchange>> exchanges;
  for (std::unique_ptr<Transport> &transport : transports) {
    Expected<std::unique_ptr<Exchange>> exchange =
        Exchange::open([&]() -> Expected<std::unique_ptr<Transport>> { return std::move(transport); }, deadline);
    if (!exchange)
      return exchange.takeError();
    if (Status bound = (*exchange)->bind(grid, program, spins); !bound)
      return bound.takeError();
    exchanges.push_back(std::move(*exchange));
  }
  return exchanges;
}

Expected<std::unique_ptr<LocalRanks>> LocalRanks::start(const Bundle &bundle, const CpuOptions &onCpu,
                                                        Clock::duration deadline) {
  if (Status fits = checkLocal(bundle.manifest.ranks); !fits)
    return fits.takeError();
  const auto ranks = static_cast<int32_t>(bundle.manifest.ranks.count);
  std::unique_ptr<LocalRanks> local(new LocalRanks);
  local->onCpu = onCpu;
  if (!onCpu.container)
    local->onCpu.container = readContainer();
  local->onCpu.share = {0, ranks};
  const Container &host = *local->onCpu.container;
  Expected<int32_t> threads = threadsOf(bundle.manifest, local->onCpu, host);
  if (!threads)
    return threads.takeError();
  if (Status fits = checkMemoryFits(bundle.manifest, *threads, host, ranks); !fits)
    return fits.takeError();
  const int32_t spins = spinsOf(local->onCpu.share, host, *threads);
  auto opened = localExchanges(bundle.manifest.ranks, bundle.programHash, deadline, spins);
  if (!opened)
    return opened.takeError();
  local->exchanges = std::move(*opened);
  try {
    for (int32_t rank = 1; rank < ranks; ++rank)
      local->threads.emplace_back([self = local.get(), rank, folder = bundle.folder, texts = bundle.placements] {
        const auto open = [&] { return Bundle::open(folder, rank, texts); };
        (void)serveRank(open, self->optionsOf(rank), std::move(self->exchanges[rank])); // rank 0 hears what fails
      });
  } catch (const std::system_error &refused) {
    return systemError("thread of rank " + std::to_string(local->threads.size() + 1), "cannot be started",
                       refused.code().value());
  }
  return local;
}

LocalRanks::~LocalRanks() {
  if (!exchanges.empty())
    exchanges[0].reset(); // a rank 0 that never had an engine has left
  for (std::thread &thread : threads)
    thread.join();
}

CpuOptions LocalRanks::optionsOf(int32_t rank) const {
  CpuOptions own = onCpu;
  own.share.index = rank;
  return own;
}

Expected<CpuEngine> LocalRanks::createEngine(const Bundle &bundle, const EngineOptions &options) {
  return CpuEngine::create(bundle, optionsOf(0), options, std::move(exchanges[0]));
}

} // namespace k2c::runtime

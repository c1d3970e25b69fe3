// All exchanges are opened before any rank begins, so that whatever goes wrong from there on is told to all.
#include "device/cpu/LocalRanks.h"
#include "transport/local/LocalTransport.h"
#include <system_error>

namespace k2c::runtime {

Expected<std::unique_ptr<LocalRanks>> LocalRanks::start(const Bundle &bundle, const CpuOptions &onCpu,
                                                        Clock::duration deadline) {
  const auto ranks = static_cast<int32_t>(bundle.manifest.ranks.count);
  if (ranks > most)
    return Error{K2RT_UNSUPPORTED, "--transport local",
                 "the bundle has " + std::to_string(ranks) + " ranks, one process has at most " + std::to_string(most),
                 "compile for a smaller topology"};
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
  if (Status opened = local->openExchanges(bundle, deadline, spinsOf(local->onCpu.share, host, *threads)); !opened)
    return opened.takeError();
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

Status LocalRanks::openExchanges(const Bundle &bundle, Clock::duration deadline, int32_t spins) {
  const Grid grid = gridOf(bundle.manifest.ranks);
  std::vector<std::unique_ptr<Transport>> transports = localTransports(grid.ranks());
  for (std::unique_ptr<Transport> &transport : transports) {
    Expected<std::unique_ptr<Exchange>> exchange =
        Exchange::open([&]() -> Expected<std::unique_ptr<Transport>> { return std::move(transport); }, deadline);
    if (!exchange)
      return exchange.takeError();
    if (Status bound = (*exchange)->bind(grid, bundle.programHash, spins); !bound)
      return bound;
    exchanges.push_back(std::move(*exchange));
  }
  return {};
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

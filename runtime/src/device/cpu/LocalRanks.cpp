// A rank opens its exchange before its bundle, so that whatever goes wrong from there on is told to all.
#include "device/cpu/LocalRanks.h"
#include "transport/local/LocalTransport.h"
#include <new>
#include <system_error>

namespace k2c::runtime {

// Where each worker and each communication thread has a processor: as long as a barrier's.
static constexpr int32_t ownProcessorSpins = 4000;

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
  local->grid.dp = local->grid.ep = ranks;
  local->exchanging.program = bundle.programHash;
  local->exchanging.deadline = deadline;
  local->exchanging.spins = local->onCpu.share.isCrowded(host, *threads + 1) ? 0 : ownProcessorSpins;
  local->transports = localTransports(ranks);
  try {
    for (int32_t rank = 1; rank < ranks; ++rank)
      local->threads.emplace_back([self = local.get(), rank, folder = bundle.folder] {
        (void)self->serve(rank, folder); // whatever failed, rank 0 has heard of it
      });
  } catch (const std::system_error &refused) {
    return systemError("thread of rank " + std::to_string(local->threads.size() + 1), "cannot be started",
                       refused.code().value());
  }
  return local;
}

LocalRanks::~LocalRanks() {
  // A rank that was never opened has left.
  if (!transports.empty() && transports[0])
    (void)Exchange::open([this]() -> Expected<std::unique_ptr<Transport>> { return std::move(transports[0]); }, grid,
                         exchanging);
  for (std::thread &thread : threads)
    thread.join();
}

CpuOptions LocalRanks::optionsOf(int32_t rank) const {
  CpuOptions own = onCpu;
  own.share.index = rank;
  return own;
}

Expected<CpuEngine> LocalRanks::createEngine(const Bundle &bundle, const EngineOptions &options) {
  Expected<std::unique_ptr<Exchange>> exchange = Exchange::open(
      [this]() -> Expected<std::unique_ptr<Transport>> { return std::move(transports[0]); }, grid, exchanging);
  if (!exchange)
    return exchange.takeError();
  return CpuEngine::create(bundle, optionsOf(0), options, std::move(*exchange));
}

/// Opens and loads the rank, then takes part in steps up to the end of the run.
static Status serveOpened(const std::string &folder, int32_t rank, const CpuOptions &onCpu,
                          std::unique_ptr<Exchange> &exchange) {
  Expected<Bundle> bundle = Bundle::open(folder, rank);
  if (!bundle)
    return bundle.takeError();
  Expected<std::unique_ptr<CpuDevice>> device = CpuDevice::create(*bundle, onCpu);
  if (!device)
    return device.takeError();
  Expected<std::unique_ptr<RankMember>> member =
      RankMember::create(*bundle, std::move(*device), nullptr, std::move(exchange));
  return member ? (*member)->serve() : member.takeError();
}

Status LocalRanks::serve(int32_t rank, const std::string &folder) {
  Expected<std::unique_ptr<Exchange>> exchange = Exchange::open(
      [&]() -> Expected<std::unique_ptr<Transport>> { return std::move(transports[rank]); }, grid, exchanging);
  if (!exchange)
    return exchange.takeError();
  Status served;
  try {
    served = serveOpened(folder, rank, optionsOf(rank), *exchange);
  } catch (const std::bad_alloc &) {
    served = Error{K2RT_OUT_OF_MEMORY, "rank " + std::to_string(rank), "the system refuses memory", ""};
  }
  if (!served && *exchange) // else the member has told it
    (*exchange)->fail(served.error());
  return served;
}

} // namespace k2c::runtime

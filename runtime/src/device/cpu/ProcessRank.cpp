// The limits of the host are read before the ranks agree, as none of them has taken its memory then.
#include "device/cpu/ProcessRank.h"

namespace k2c::runtime {

Expected<std::unique_ptr<ProcessRank>> ProcessRank::join(const TransportMaker &maker, Clock::duration deadline) {
  Expected<std::unique_ptr<Exchange>> exchange = Exchange::open(maker, deadline);
  if (!exchange)
    return exchange.takeError();
  std::unique_ptr<ProcessRank> own(new ProcessRank);
  own->exchange = std::move(*exchange);
  own->number = own->exchange->rank();
  own->failed = own->exchange->failedRank();
  return own;
}

Expected<AgreedBundle> ProcessRank::agreeOn(const RankFiles &own, Exchange &among) {
  Expected<ListedManifest> read = readListedManifest(own.folder);
  if (!read)
    return read.takeError();
  Expected<std::vector<PlacementText>> placements = readPlacementFiles(own.placements);
  if (!placements)
    return placements.takeError();
  const auto &[files, manifest] = *read;
  Expected<PackedRanks> packed = readPackedRanks(files, manifest);
  if (!packed)
    return packed.takeError();
  Expected<HostPlace> place = agree(among, presenceOf(files, manifest, *placements, *packed), manifest.ranks);
  if (!place)
    return place.takeError();
  onCpu.share = {place->index, place->ranks};
  Expected<int32_t> threads = threadsOf(manifest, onCpu, *onCpu.container);
  if (!threads)
    return threads.takeError();
  const int32_t spins = spinsOf(onCpu.share, *onCpu.container, *threads);
  if (Status bound = among.bind(gridOf(manifest.ranks), files.hashOf("program.so"), spins); !bound)
    return bound.takeError();
  return AgreedBundle{std::move(*read), std::move(*placements), *place, *threads};
}

Expected<Bundle> ProcessRank::openAgreed(const RankFiles &own, Exchange &among) {
  Expected<AgreedBundle> agreed = agreeOn(own, among);
  if (!agreed)
    return agreed.takeError();
  if (agreed->place.index == 0)
    if (Status fits = checkMemoryFits(agreed->read.manifest, agreed->threads, *onCpu.container, agreed->place.ranks);
        !fits)
      return fits.takeError();
  return Bundle::open(std::move(agreed->read), rank(), std::move(agreed->placements));
}

void ProcessRank::choose(const CpuOptions &wholeHost) {
  onCpu = wholeHost;
  if (!onCpu.container)
    onCpu.container = readContainer();
}

Expected<Bundle> ProcessRank::open(const RankFiles &files, const CpuOptions &wholeHost) {
  choose(wholeHost);
  Expected<Bundle> bundle = openAgreed(files, *exchange);
  if (!bundle)
    exchange->fail(bundle.error());
  return bundle;
}

Expected<AgreedBundle> ProcessRank::meet(const RankFiles &files, const CpuOptions &wholeHost) {
  choose(wholeHost);
  Expected<AgreedBundle> agreed = agreeOn(files, *exchange);
  if (!agreed)
    exchange->fail(agreed.error());
  return agreed;
}

Expected<CpuEngine> ProcessRank::createEngine(const Bundle &bundle, const EngineOptions &options) {
  return CpuEngine::create(bundle, onCpu, options, std::move(exchange));
}

Status ProcessRank::serve(const RankFiles &files, const CpuOptions &wholeHost,
                          const std::function<void(RankMember *)> &whenServing) {
  choose(wholeHost);
  Exchange &among = *exchange;
  return serveRank([&] { return openAgreed(files, among); }, onCpu, std::move(exchange), whenServing);
}

} // namespace k2c::runtime

// A rank of a bundle that is this process: a launcher has started the others.
//
//   join -> open: agree with all -> rank 0: createEngine      others: serve
//        -> meet: agree with all, for a command of all ranks that needs no weights
#ifndef K2RT_DEVICE_CPU_PROCESSRANK_H
#define K2RT_DEVICE_CPU_PROCESSRANK_H

#include "device/cpu/CpuDevice.h"
#include "engine/Agreement.h"
#include "exchange/Exchange.h"
#include <memory>
#include <string>
#include <vector>

namespace k2c::runtime {

/// What a rank reads: the folder of its bundle, and placements beside that of the bundle.
struct RankFiles {
  std::string folder;
  std::vector<PlacementFile> placements;
};

/// What a rank knows when it has agreed with the others.
struct AgreedBundle {
  ListedManifest read;
  std::vector<PlacementText> placements;
  HostPlace place;
  int32_t threads = 1;
};

class ProcessRank {
public:
  /// Meets the others over the transport that `maker` makes. What fails from here on is told to all of them.
  static Expected<std::unique_ptr<ProcessRank>> join(const TransportMaker &maker, Clock::duration deadline);

  int32_t rank() const { return number; }
  /// Opens a bundle for this rank, with workers as `onCpu` says, which is of the whole host. Refuses what differs from
  /// the other ranks' bundles and placements, and what the memory of this host cannot hold.
  Expected<Bundle> open(const RankFiles &files, const CpuOptions &onCpu);
  /// Of rank 0: its engine, once all have loaded. `bundle`, which is what was opened, outlives it.
  Expected<CpuEngine> createEngine(const Bundle &bundle, const EngineOptions &options);
  /// Of the others: opens the bundle and takes part in the steps of rank 0. `whenServing`: as of serveRank.
  Status serve(
      const RankFiles &files, const CpuOptions &onCpu,
      const std::function<void(RankMember *)> &whenServing = [](RankMember *) {});
  /// The first part of open alone.
  Expected<AgreedBundle> meet(const RankFiles &files, const CpuOptions &onCpu);
  /// Behind meet: what the ranks exchange messages with. There is no other use of the object then.
  std::unique_ptr<Exchange> takeExchange() { return std::move(exchange); }
  /// Whose failure has ended the run; -1: this rank's, or none.
  int32_t failedRank() const { return *failed; }

private:
  ProcessRank() = default;
  void choose(const CpuOptions &wholeHost);
  Expected<AgreedBundle> agreeOn(const RankFiles &own, Exchange &among);
  Expected<Bundle> openAgreed(const RankFiles &files, Exchange &among);

  std::unique_ptr<Exchange> exchange; ///< until an engine has it
  int32_t number = 0;
  std::shared_ptr<const std::atomic<int32_t>> failed; ///< as failedRank
  CpuOptions onCpu;                                   ///< with this rank's share
};

} // namespace k2c::runtime

#endif

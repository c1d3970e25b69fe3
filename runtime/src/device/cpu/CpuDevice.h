// The processors of this machine as a device: a thread pool, memory that each of them touches first, and weights
// that each brings in.
//
// A machine or container that cannot hold the certificate is refused with both numbers.
#ifndef K2RT_DEVICE_CPU_CPUDEVICE_H
#define K2RT_DEVICE_CPU_CPUDEVICE_H

#include "base/Container.h"
#include "device/cpu/Executor.h"
#include "device/cpu/FirstTouch.h"
#include "device/cpu/HostShare.h"
#include "device/cpu/Region.h"
#include "engine/Engine.h"
#include "k2rt/WorkerPool.h"
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace k2c::runtime {

/// The largest team that may be asked for: no machine has more processors.
constexpr int32_t maxThreads = 4096;

struct CpuOptions {
  int32_t threads = 0;                ///< 0: what the container allows, of several ranks no more than `topology.cores`
  bool trust = false;                 ///< leaves the hashes of the weights unchecked
  bool traces = false;                ///< of a rank behind rank 0: keeps what ran when for rank 0's file
  std::optional<Container> container; ///< limits other than this process's own, for tests
  HostShare share; ///< of the container; of several ranks on it somebody has asked whether their memory fits
};

class CpuDevice : public Device {
public:
  /// Starts the team. `bundle` outlives the device.
  static Expected<std::unique_ptr<CpuDevice>> create(const Bundle &bundle, const CpuOptions &options);

  int32_t workers() const override { return pool->count(); }
  Expected<std::byte *> allocate(int64_t bytes, const char *purpose, MemoryUse use) override;
  Status load(const RankMemory &memory, Trace *trace) override;
  void use(const void *const *weights) override { executor->use(weights); }
  void upload(const k2rt_ir_step &step, bool) override { executor->upload(step); }
  bool chains() const override { return false; }
  Status submit(k2rt_ir_step_fn entry) override { return executor->run(entry); }
  Status collect() override { return {}; }
  StepResults results() const override { return executor->results(); }
  void interrupt() override { executor->interrupt(); }

  /// Where the weights lay when they were loaded; all zeros where the workers are on one node.
  const WeightPageCounts &weightPageCounts() const { return pageCounts; }
  /// The limits it was created within.
  const Container &container() const { return limits; }
  /// Runs `work(index)` on all workers between steps.
  template <class Work> void onWorkers(Work work) { pool->run(work); }
  /// All memory that the program may read but for the step: mapped weights, cache, arena and scratch; resident.
  /// (base, bytes) each.
  std::vector<std::pair<const std::byte *, int64_t>> memory() const;

private:
  CpuDevice(const Bundle &bundle, Container limits, bool trust)
      : bundle(bundle), limits(std::move(limits)), trust(trust) {}
  Status bringIn();
  void countMisplaced();

  const Bundle &bundle;
  const Container limits;
  const bool trust;
  WeightPageCounts pageCounts;
  std::vector<Region> ofProgram, ofEngine; ///< what was allocated, by its use
  std::vector<Region> scratch;             ///< one per worker
  std::unique_ptr<WorkerPool> pool;
  std::unique_ptr<Executor> executor; ///< last: its workers use all of the above
};

/// An engine whose rank runs on this machine's processors.
struct CpuEngine {
  std::unique_ptr<Engine> engine;
  CpuDevice *device = nullptr; ///< the engine's

  /// `bundle` outlives it. `exchange`: as for Engine::create; what fails is told to the other ranks.
  static Expected<CpuEngine> create(const Bundle &bundle, const CpuOptions &onCpu, const EngineOptions &options,
                                    std::unique_ptr<Exchange> exchange = nullptr);
};

/// Loads a rank that runs on this machine's processors from the bundle that `open` opens, and takes part in the steps
/// of rank 0 up to the end of the run. Whatever fails is told to the others. `whenServing` is called with the rank when
/// it has loaded, and with null before it is destroyed.
Status serveRank(
    const std::function<Expected<Bundle>()> &open, const CpuOptions &onCpu, std::unique_ptr<Exchange> exchange,
    const std::function<void(RankMember *)> &whenServing = [](RankMember *) {});

/// How many workers a rank with these options has.
Expected<int32_t> threadsOf(const Manifest &manifest, const CpuOptions &options, const Container &host);

/// Fails when `threads` workers of each of `ranks` ranks of this bundle need more than `container` allows.
Status checkMemoryFits(const Manifest &manifest, int32_t threads, const Container &container, int32_t ranks = 1);

} // namespace k2c::runtime

#endif

// The ranks of a bundle as threads of this process: the caller is rank 0, each other rank has a thread of its own,
// which opens the bundle for it and serves rank 0's steps.
#ifndef K2RT_DEVICE_CPU_LOCALRANKS_H
#define K2RT_DEVICE_CPU_LOCALRANKS_H

#include "device/cpu/CpuDevice.h"
#include "exchange/Exchange.h"
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace k2c::runtime {

/// As many ranks as a process may have.
constexpr int32_t maxLocalRanks = 256;

/// The exchanges of a program's ranks as threads of this process, by rank; more than a process may have are refused.
/// `program`: the hash of program.so; `spins`: as of Exchange::bind.
Expected<std::vector<std::unique_ptr<Exchange>>> localExchanges(const RankFacts &ranks, uint64_t program,
                                                                Clock::duration deadline, int32_t spins);

class LocalRanks {
public:
  /// Starts all but rank 0, each with workers as `onCpu` says, which is of the whole host. Refuses what the host's
  /// memory cannot hold. `bundle` is that of rank 0.
  static Expected<std::unique_ptr<LocalRanks>> start(const Bundle &bundle, const CpuOptions &onCpu,
                                                     Clock::duration deadline);
  /// Waits for their ends: behind that of rank 0's engine, whose exchange ends them.
  ~LocalRanks();
  LocalRanks(const LocalRanks &) = delete;
  LocalRanks &operator=(const LocalRanks &) = delete;

  /// Rank 0's engine, once all have loaded. `bundle` outlives it.
  Expected<CpuEngine> createEngine(const Bundle &bundle, const EngineOptions &options);

private:
  LocalRanks() = default;
  CpuOptions optionsOf(int32_t rank) const;

  CpuOptions onCpu;                                 ///< of the whole host
  std::vector<std::unique_ptr<Exchange>> exchanges; ///< by rank, until it takes its own
  std::vector<std::thread> threads;
};

} // namespace k2c::runtime

#endif

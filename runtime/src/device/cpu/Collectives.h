// The sites of a program on a rank: what its workers start and wait for, handed to the rank's exchange. The two halves
// of a step come to all sites each, and one may wait while the other is under way.
#ifndef K2RT_DEVICE_CPU_COLLECTIVES_H
#define K2RT_DEVICE_CPU_COLLECTIVES_H

#include "exchange/Exchange.h"
#include "k2rt/program.h"
#include <vector>

namespace k2c::runtime {

/// Of a step; one that is whole is its first.
enum class Half : uint8_t { first, second };

/// One worker at a time calls it.
class Collectives {
public:
  /// `exchange` may be null where the program has no sites. Both outlive it.
  Collectives(const k2rt_ir_program &program, Exchange *exchange);

  /// The steps of what arrives, by site: k2rt_ir_step.arrived of a half.
  k2rt_ir_step *arrived(Half half) { return program.n_collectives == 0 ? nullptr : &arrivedSteps[indexOf(half, 0)]; }
  /// As k2rt_ir_api has it, of step number `number`; `step`: the half. What fails is kept for the wait.
  void start(Half half, int32_t site, int64_t layer, int64_t number, const k2rt_ir_step &step, void *const *buffers);
  /// Fails as the start did, or as the exchange does.
  Status wait(Half half, int32_t site);

private:
  void startStage(Half half, int32_t site, int64_t number, int64_t rows, void *buffer);
  void startSlices(Half half, Collective &collective, const k2rt_ir_step &step, void *const *buffers);

  struct Pending {
    Expected<RequestId> request =
        Error{K2RT_KERNEL_FAILED, "program.so", "waits for a collective before its start", ""};
    const int64_t *incoming = nullptr; ///< rows from each member
    int32_t members = 0;
    std::vector<int64_t> counts{}; ///< of slices: what the program has not counted
  };
  const k2rt_ir_collective &siteOf(int32_t site) const {
    return static_cast<const k2rt_ir_collective *>(program.collectives)[site];
  }
  size_t indexOf(Half half, int32_t site) const {
    return static_cast<size_t>(half == Half::first ? site : program.n_collectives + site);
  }

  const k2rt_ir_program &program;
  Exchange *const exchange;
  std::vector<k2rt_ir_step> arrivedSteps; ///< by half and site
  std::vector<Pending> pending;           ///< the same
};

} // namespace k2c::runtime

#endif

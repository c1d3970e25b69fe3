// All that one rank of a program has: a device, and on it the memory of the certificate. A process has one rank today.
#ifndef K2RT_ENGINE_RANK_H
#define K2RT_ENGINE_RANK_H

#include "engine/Device.h"
#include "engine/PagePool.h"
#include "engine/StepArrays.h"
#include "program/Bundle.h"
#include <memory>
#include <vector>

namespace k2c::runtime {

class Rank {
public:
  /// Takes everything at once and loads it. `bundle` and `trace` (which may be null) outlive the rank.
  static Expected<std::unique_ptr<Rank>> create(const Bundle &bundle, std::unique_ptr<Device> device, Trace *trace);

  StepArrays &arrays() { return stepArrays; }
  /// Per cache group.
  std::vector<PagePool> &pages() { return freePages; }
  /// Uploads `step`, which refers to arrays(), and runs the program's step function on it.
  Expected<StepResults> run(const k2rt_ir_step &step);
  void interrupt() { device->interrupt(); }

private:
  Rank(const Bundle &bundle, StepArrays arrays)
      : serve(bundle.program.entry(serveEntry)), stepArrays(std::move(arrays)) {}

  const k2rt_ir_step_fn serve; ///< what steps enter
  StepArrays stepArrays;
  std::vector<PagePool> freePages;
  RankMemory memory;
  std::unique_ptr<Device> device; ///< last: it refers to the above
};

} // namespace k2c::runtime

#endif

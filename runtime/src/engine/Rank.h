// All that one rank of a program has: a device, and on it the memory of the certificate.
#ifndef K2RT_ENGINE_RANK_H
#define K2RT_ENGINE_RANK_H

#include "engine/Device.h"
#include "engine/PagePool.h"
#include "engine/StepArrays.h"
#include "engine/StepHalves.h"
#include "program/Bundle.h"
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace k2c::runtime {

class Rank {
public:
  /// Takes everything at once and loads it. `bundle`, `trace` and `exchange` (which may be null: the program's only
  /// rank) outlive the rank.
  static Expected<std::unique_ptr<Rank>> create(const Bundle &bundle, std::unique_ptr<Device> device, Trace *trace,
                                                Exchange *exchange = nullptr);

  StepArrays &arrays() { return stepArrays; }
  /// Per cache group.
  std::vector<PagePool> &pages() { return freePages; }
  /// Tables of its placement, at least one; the next step goes by table `table`.
  int64_t tables() const { return std::max<int64_t>(static_cast<int64_t>(bundle.placement.count()), 1); }
  void goBy(size_t table);
  /// The next step, which refers to arrays(); in two halves only where the manifest has them. `wantsLogits`: results()
  /// has them.
  void upload(const k2rt_ir_step &step, bool wantsLogits, bool inHalves = false);
  /// Whether steps may be under way beside each other, as Device::chains() says.
  bool chains() const { return device->chains(); }
  /// Runs the program's step function on it.
  Status submit() { return device->submit(entry); }
  Status collect() { return device->collect(); }
  Status run() {
    Status done = submit();
    return done ? collect() : std::move(done);
  }
  StepResults results() const { return device->results(); }
  /// Of the last run: of `rows` output rows, the log probability of the token that `targets` has for each; 0 of -1.
  void logProbabilities(const int32_t *targets, int64_t rows, float *to) const;
  void interrupt() { device->interrupt(); }

private:
  Rank(const Bundle &bundle, StepArrays arrays);
  const k2rt_ir_step &sliced(const k2rt_ir_step &whole);

  const Bundle &bundle;
  const k2rt_ir_step_fn serve, serveHalves; ///< what steps enter
  k2rt_ir_step_fn entry = nullptr;          ///< of these, the one that the next step enters
  StepArrays stepArrays;
  std::optional<StepHalves> halves; ///< where the manifest has them
  /// Of ranks in tensor-parallel groups, by half: what they have together, and the slice of this one.
  std::array<k2rt_ir_step, 2> gathered = {}, slices = {};
  std::vector<PagePool> freePages;
  size_t table = 0; ///< of the placement, by which the last step went
  k2rt_ir_rank facts = {};
  RankMemory memory;
  std::unique_ptr<Device> device; ///< last: it refers to the above
};

} // namespace k2c::runtime

#endif

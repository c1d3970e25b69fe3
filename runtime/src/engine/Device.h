// What runs a rank's program: the engine's whole view of processors or an accelerator. One class a kind, in device/.
//
//   allocate, allocate, ... -> load -> upload, submit, collect, results -> upload, submit, collect, results -> ...
//
// A device that chains steps takes one more before it has collected the one that runs:
//
//   upload, submit -> upload, submit, collect, results -> upload, submit, collect, results -> ... -> collect, results
#ifndef K2RT_ENGINE_DEVICE_H
#define K2RT_ENGINE_DEVICE_H

#include "base/Error.h"
#include "engine/Trace.h"
#include "exchange/Exchange.h"
#include "k2rt/program.h"
#include <cstddef>
#include <cstdint>
#include <vector>

namespace k2c::runtime {

/// Who works with memory: the program alone, or the engine, too, which fills or reads it between steps.
enum class MemoryUse { program, engine };

/// What the workers of a rank share, as k2rt_ir_worker names it, and what carries rows to other ranks.
struct RankMemory {
  void *arena = nullptr;
  std::vector<void *> planes;
  const void *const *weights = nullptr; ///< a base for each slot
  const k2rt_ir_rank *rank = nullptr;   ///< null where ranks exchange nothing, as `exchange`
  Exchange *exchange = nullptr;
};

/// What a step computed, where the engine can read it until the next one is uploaded or collected: rows in the order of
/// k2rt_ir_step's `outputs`.
struct StepResults {
  const float *logits = nullptr;
  const int32_t *samples = nullptr;
  const float *logProbabilities = nullptr; ///< of the tokens that were asked for; the engine's, a device has none
};

class Device {
public:
  virtual ~Device() = default;

  /// How many workers record launches.
  virtual int32_t workers() const = 0;
  /// Zeroed memory that lives as long as the device. `purpose` names it in the failure.
  virtual Expected<std::byte *> allocate(int64_t bytes, const char *purpose, MemoryUse use) = 0;
  /// After all allocations: brings memory and weights to where they are used. `memory` and `trace` (which may be null)
  /// outlive the device.
  virtual Status load(const RankMemory &memory, Trace *trace) = 0;
  /// From the next step on, weights are where another list of bases says.
  virtual void use(const void *const *weights) = 0;
  /// The arrays of the next step are filled. Unless its logits are wanted, results() need not have them.
  virtual void upload(const k2rt_ir_step &step, bool wantsLogits) = 0;
  /// Whether a step may be submitted while the one before it is under way, whose samples its ids may name
  /// (k2rt_ir_step.earlier_samples): where that one draws, captures and gives logits of nothing.
  virtual bool chains() const = 0;
  /// Begins `entry` on what was uploaded; a device that does not chain has done it then. Fails with the name of the
  /// kernel that failed, or K2RT_INTERRUPTED, or as the exchange does.
  virtual Status submit(k2rt_ir_step_fn entry) = 0;
  /// Waits for the one of those under way that was submitted first, if there is one. Fails like submit(), and then none
  /// is under way.
  virtual Status collect() = 0;
  /// Of the last that was collected.
  virtual StepResults results() const = 0;
  /// Ends the running or next step early. Safe in a signal handler.
  virtual void interrupt() = 0;
};

} // namespace k2c::runtime

#endif

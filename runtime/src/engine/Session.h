// A run of a bundle: all memory of the certificate, the workers, the cache pages.
//
// Everything is allocated here, once, and touched before the first step. A machine or container that cannot hold it is
// refused with both numbers. The scheduler (Scheduler.h) decides what a step contains; the session executes it.
#ifndef K2RT_ENGINE_SESSION_H
#define K2RT_ENGINE_SESSION_H

#include "base/Container.h"
#include "device/cpu/Executor.h"
#include "device/cpu/FirstTouch.h"
#include "device/cpu/WorkerPool.h"
#include "engine/PagePool.h"
#include "engine/StepArrays.h"
#include "engine/Trace.h"
#include "program/Bundle.h"
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace k2rt {

/// The largest team that may be asked for: no machine has more processors.
constexpr int32_t mostThreads = 4096;

struct SessionOptions {
  int32_t threads = 0;                ///< 0: what the container allows
  int64_t chunk = 0;                  ///< most prompt tokens of a sequence per step; 0: as many as fit
  std::string traceFile;              ///< "": no trace
  bool trust = false;                 ///< leaves the hashes of the weights unchecked
  std::optional<Container> container; ///< limits other than this process's own, for tests
};

class Session {
public:
  /// `bundle` outlives the session.
  static Result<std::unique_ptr<Session>> create(const Bundle &bundle, const SessionOptions &options);

  const Bundle &bundle() const { return theBundle; }
  const Manifest &manifest() const { return theBundle.manifest; }
  int32_t threads() const { return pool->count(); }
  int64_t chunk() const { return chunkTokens; }
  /// Where the weights lay when the session was ready; all zeros where its workers are on one node.
  const WeightCensus &weightCensus() const { return census; }
  /// The limits it was created within.
  const Container &container() const { return limits; }

  StepArrays arrays;
  std::vector<PagePool> pages; ///< per cache group

  Status run(const k2rt_ir_step &step) { return executor->run(step); }
  /// Runs `work(index)` on all workers between steps.
  template <class Work> void onWorkers(Work work) { pool->run(work); }
  void interrupt() { executor->interrupt(); }
  /// Writes the trace, if there is one. Once, after the last step.
  Status finishTrace();
  /// All memory that a step may read: mapped weights, cache, arena and scratch; resident. (base, bytes) each.
  std::vector<std::pair<const std::byte *, int64_t>> memory() const;

private:
  Session(const Bundle &bundle, StepArrays arrays, Container limits)
      : arrays(std::move(arrays)), theBundle(bundle), limits(std::move(limits)) {}
  Status allocate(bool trust);
  void countMisplaced();

  const Bundle &theBundle;
  const Container limits;
  int64_t chunkTokens = 0;
  WeightCensus census;
  std::vector<Region> regions; ///< planes, arena, scratch
  std::unique_ptr<Trace> trace;
  std::unique_ptr<WorkerPool> pool;
  std::unique_ptr<Executor> executor; ///< last: its workers use all of the above
};

/// Fails when `threads` workers of this bundle need more than `container` allows.
Status checkMemoryFits(const Manifest &manifest, int32_t threads, const Container &container);

} // namespace k2rt

#endif

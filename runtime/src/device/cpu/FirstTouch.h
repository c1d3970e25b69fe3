// Brings a program's mapped weights into memory: each worker what it will read, so that cold pages land on its node.
#ifndef K2RT_DEVICE_CPU_FIRSTTOUCH_H
#define K2RT_DEVICE_CPU_FIRSTTOUCH_H

#include "device/cpu/HugePages.h"
#include "device/cpu/PageNodes.h"
#include "device/cpu/WeightCheck.h"
#include "k2rt/WorkerBinding.h"
#include "program/Weights.h"
#include <optional>

namespace k2c::runtime {

/// How the system reads weights of which it has no page yet: in huge pages where the file system has them in the page
/// cache, and, while it lives and where `exact` is set, only what is asked for.
class ReadAdvice {
public:
  ReadAdvice(const Weights &weights, bool exact);
  ~ReadAdvice();
  ReadAdvice(const ReadAdvice &) = delete;
  ReadAdvice &operator=(const ReadAdvice &) = delete;

private:
  const Weights &weights;
  const bool exact;
};

/// Called by worker `worker` of `workers`, all side by side. With one node, `check` (may be null) compares each chunk
/// as it comes. Workers of a node take chunks in turn: of their node's range of every weight and, with those of other
/// nodes, of what belongs to none. Best effort: what is not brought in faults in the first step.
void populateWeights(const Weights &weights, const WorkerBinding &binding, int32_t worker, int32_t workers,
                     WeightCheck *check);

/// Where weights lie that belong to workers.
struct WeightPageCounts {
  int64_t bytes = 0;     ///< resident, the system named their node
  int64_t elsewhere = 0; ///< of these, on another node than the worker that reads them
  int refusal = 0;       ///< as in PageCounts

  void add(const WeightPageCounts &other);
};

/// Estimates from about 4,096 samples (exact for fewer pages) how much of what worker `worker` of `workers` alone reads
/// lies on another node than `node`.
WeightPageCounts countOwnPages(const Weights &weights, int32_t node, int32_t worker, int32_t workers,
                               PageQuery query = queryPages);

/// Bytes of weights that are mapped in huge pages, from at most 4,096 samples: exact up to 8 GiB. An older system has
/// only the sum of all files, for which it walks all page tables: it is asked where the weights are at most `walkable`
/// bytes; otherwise none, as where it tells nothing.
std::optional<int64_t> hugeWeightBytes(const Weights &weights, int64_t walkable, HugePageQuery query = queryHugePages);

} // namespace k2c::runtime

#endif

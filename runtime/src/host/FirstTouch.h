// Brings a session's mapped weights into memory: each worker what it will read, so that cold pages land on its node.
#ifndef K2RT_HOST_FIRSTTOUCH_H
#define K2RT_HOST_FIRSTTOUCH_H

#include "host/Placement.h"
#include "memory/PageNodes.h"
#include "program/Weights.h"

namespace k2rt {

/// While it lives, and where `exact` is set, the system reads of the weights only what is asked for.
class ExactReads {
public:
  ExactReads(const Weights &weights, bool exact);
  ~ExactReads();
  ExactReads(const ExactReads &) = delete;
  ExactReads &operator=(const ExactReads &) = delete;

private:
  void setAdvice(int advice) const;
  const Weights &weights;
  const bool exact;
};

/// Called by worker `worker` of `workers`, all side by side. On several nodes a worker takes its own range of every
/// weight and its share of what belongs to none; on one, chunks in turn. Best effort: what is not brought in faults in
/// the first step.
void populateWeights(const Weights &weights, const WorkerPlace &place, int32_t worker, int32_t workers);

/// Where weights lie that belong to workers.
struct WeightCensus {
  int64_t bytes = 0;     ///< resident, the system named their node
  int64_t elsewhere = 0; ///< of these, on another node than the worker that reads them
  int refusal = 0;       ///< as in PageCensus

  void add(const WeightCensus &other);
};

/// Estimates from about 4,096 samples (exact for fewer pages) how much of what worker `worker` of `workers` alone reads
/// lies on another node than `node`.
WeightCensus countOwnPages(const Weights &weights, int32_t node, int32_t worker, int32_t workers,
                           PageQuery query = queryPages);

} // namespace k2rt

#endif

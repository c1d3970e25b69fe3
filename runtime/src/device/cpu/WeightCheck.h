// The hashes of weights, compared while their pages come into memory: each chunk by one worker, once.
#ifndef K2RT_DEVICE_CPU_WEIGHTCHECK_H
#define K2RT_DEVICE_CPU_WEIGHTCHECK_H

#include "k2rt/WorkerBinding.h"
#include "program/Weights.h"
#include <atomic>
#include <memory>
#include <mutex>

namespace k2c::runtime {

class WeightCheck {
public:
  explicit WeightCheck(const Weights &weights);

  /// Compares chunk `chunk` of a range of the weights, unless another worker has. Workers call it side by side.
  void compare(const WeightRange &range, int64_t chunk);
  /// Called by worker `worker` of `workers`, all side by side, when all pages are in memory: compares chunks that begin
  /// in what its node reads, then takes its turn at those that nobody has compared.
  void compareRest(const WorkerBinding &binding, int32_t worker, int32_t workers);
  /// After the workers: the first chunk, in the order of the ranges, that has another hash than the index says.
  Status result() const;

private:
  const Weights &weights;
  std::unique_ptr<std::atomic<bool>[]> taken; ///< of each chunk
  std::mutex finding;
  size_t wrong;           ///< the first chunk that differs; the number of chunks: none
  uint64_t wrongHash = 0; ///< what it hashes to
};

} // namespace k2c::runtime

#endif

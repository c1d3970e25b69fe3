// Who brings a chunk into memory hashes it at once, while others read: with one node. With several, pages must first
// lie where their workers are, and a chunk may hold parts of two nodes: so all is read, then compared.
#include "device/cpu/WeightCheck.h"
#include "base/Hash.h"
#include <algorithm>

namespace k2c::runtime {

WeightCheck::WeightCheck(const Weights &weights) : weights(weights), wrong(0) {
  if (!weights.ranges().empty())
    wrong = weights.ranges().back().firstChunk + weights.ranges().back().hashes.size();
  taken.reset(new std::atomic<bool>[wrong]());
}

void WeightCheck::compare(const WeightRange &range, int64_t chunk) {
  const size_t number = range.firstChunk + static_cast<size_t>(chunk);
  if (taken[number].exchange(true, std::memory_order_relaxed))
    return;
  const int64_t begin = chunk * hugePageBytes, bytes = std::min(hugePageBytes, range.bytes - begin);
  const uint64_t hash = hashOf(range.base + begin, static_cast<size_t>(bytes));
  if (hash == range.hashes[chunk])
    return;
  std::lock_guard<std::mutex> hold(finding);
  if (number < wrong) {
    wrong = number;
    wrongHash = hash;
  }
}

void WeightCheck::compareRest(const WorkerBinding &binding, int32_t worker, int32_t workers) {
  int64_t chunkNumber = 0;
  const int64_t first = worker - binding.index;
  weights.visitOwn(first, first + binding.count, workers, [&](const WeightRange &range, int64_t begin, int64_t end) {
    for (int64_t chunk = (begin + hugePageBytes - 1) / hugePageBytes; chunk * hugePageBytes < end; ++chunk)
      if (chunkNumber++ % binding.count == binding.index)
        compare(range, chunk);
  });
  chunkNumber = 0;
  for (const WeightRange &range : weights.ranges())
    for (size_t chunk = 0; chunk < range.hashes.size(); ++chunk)
      if (binding.owns(chunkNumber++))
        compare(range, static_cast<int64_t>(chunk));
}

Status WeightCheck::result() const {
  for (const WeightRange &range : weights.ranges())
    if (const size_t chunk = wrong - range.firstChunk; chunk < range.hashes.size())
      return weights.damaged(range, chunk, wrongHash);
  return {};
}

} // namespace k2c::runtime

// Counting sets: those of equal tokens are one entry, so that counts stay small where routers repeat themselves.
#include "engine/ExpertStatistics.h"
#include <algorithm>

namespace k2c::runtime {

Phase phaseOf(const k2rt_ir_step &step, int64_t sequence) {
  const auto *begin = static_cast<const int32_t *>(step.seq_begin),
             *last = static_cast<const int32_t *>(step.last_sample);
  const bool isOneRow = begin[sequence + 1] - begin[sequence] == 1;
  return isOneRow && last[sequence] >= 0 ? Phase::decode : Phase::prefill;
}

void ExpertStatistics::count(const std::vector<int32_t> &sources, const k2rt_ir_step &step, const int32_t *experts) {
  const auto *begin = static_cast<const int32_t *>(step.seq_begin);
  SourcedSet chosen;
  std::vector<int32_t> &set = chosen.second;
  for (auto &phases : counts)
    for (int64_t sequence = 0; sequence < step.seq_rows; ++sequence) {
      Counts &layer = phases[static_cast<size_t>(phaseOf(step, sequence))];
      for (int32_t row = begin[sequence]; row < begin[sequence + 1]; ++row, experts += manifest.topK) {
        chosen.first = sources[static_cast<size_t>(row)];
        set.assign(experts, experts + manifest.topK);
        set.erase(std::remove_if(set.begin(), set.end(), [](int32_t expert) { return expert < 0; }), set.end());
        std::sort(set.begin(), set.end());
        ++layer[chosen];
      }
    }
  const auto *wanted = static_cast<const int32_t *>(step.outputs), *end = wanted + step.output_rows;
  for (int64_t sequence = 0; sequence < step.seq_rows; ++sequence)
    for (; wanted != end && *wanted < begin[sequence + 1]; ++wanted)
      ++outputs[static_cast<size_t>(phaseOf(step, sequence))];
}

ExpertLoads ExpertStatistics::loads(size_t moeLayer) const {
  ExpertLoads loads(manifest.experts);
  for (const Counts &phase : counts[moeLayer])
    for (const auto &[set, tokens] : phase)
      for (const int32_t expert : set.second)
        loads.add(expert, tokens);
  return loads;
}

} // namespace k2c::runtime

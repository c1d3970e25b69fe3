// What ran when on a rank: one record per launch and worker, per step, and per collective, in rings of bounded size.
// TraceFile.h writes them.
//
// The rings lie in a memory file, not in anonymous memory, so that tracing does not touch the certificate. A ring that
// is full overwrites its oldest records and the file says how many were lost.
#ifndef K2RT_ENGINE_TRACE_H
#define K2RT_ENGINE_TRACE_H

#include "base/Error.h"
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace k2c::runtime {

/// One launch on one worker, one whole step, or one collective.
struct TraceRecord {
  int64_t beginNs, endNs;
  /// Grid items; of a step: sequences, output rows; of a collective: when its rank began to wait for it, and the rank
  /// whose message came last, -1: none came.
  int64_t itemBegin, itemEnd;
  int64_t rows; ///< token rows of the step; of a collective: bytes that the rank sent
  int64_t step;
  int32_t kernel, variant; ///< of a step -1, 0; of a collective site, layer
};

class Trace {
public:
  static constexpr int64_t ringRecords = int64_t(1) << 17;
  /// Behind the rings of workers: whole steps, collectives.
  static constexpr int32_t otherRings = 2;

  static Expected<std::unique_ptr<Trace>> create(int32_t workers);
  ~Trace();
  Trace(const Trace &) = delete;
  Trace &operator=(const Trace &) = delete;

  static int64_t nowNs();
  int32_t workers() const { return static_cast<int32_t>(rings.size()) - otherRings; }
  /// Each ring has one writer.
  void record(int32_t ring, const TraceRecord &record) {
    rings[ring].records[rings[ring].written++ % ringRecords] = record;
  }
  void recordCollective(const TraceRecord &of) { record(workers() + 1, of); }

  /// When nothing records any more: the records of a ring that are there, oldest first, and how many were overwritten.
  int64_t count(int32_t ring) const { return std::min(rings[ring].written, ringRecords); }
  int64_t lost(int32_t ring) const { return rings[ring].written - count(ring); }
  const TraceRecord &at(int32_t ring, int64_t index) const {
    return rings[ring].records[(lost(ring) + index) % ringRecords];
  }
  /// Of all rings.
  int64_t lost() const;

private:
  struct alignas(64) Ring {
    TraceRecord *records;
    int64_t written = 0;
  };
  Trace() = default;

  void *mapping = nullptr;
  size_t mappingBytes = 0;
  std::vector<Ring> rings;
};

} // namespace k2c::runtime

#endif

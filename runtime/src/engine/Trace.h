// What ran when: one record per launch and worker, in rings of bounded size, written as Perfetto JSON at the end.
//
// The rings lie in a memory file, not in anonymous memory, so that tracing does not touch the certificate. A ring that
// is full overwrites its oldest records and the file says how many were lost.
#ifndef K2RT_ENGINE_TRACE_H
#define K2RT_ENGINE_TRACE_H

#include "base/Error.h"
#include "program/Program.h"
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace k2c::runtime {

/// One launch on one worker; or, with kernel -1, one whole step.
struct TraceRecord {
  int64_t beginNs, endNs;
  int64_t itemBegin, itemEnd; ///< grid items; of a step: sequences, output rows
  int64_t rows;               ///< token rows of the step
  int64_t step;
  int32_t kernel, variant;
};

class Trace {
public:
  static constexpr int64_t ringRecords = int64_t(1) << 17;

  /// Creates the output file now, so that a bad path fails before the run. Ring `workers` is for whole steps.
  static Expected<std::unique_ptr<Trace>> create(const std::string &path, int32_t workers);
  ~Trace();
  Trace(const Trace &) = delete;
  Trace &operator=(const Trace &) = delete;

  static int64_t nowNs();
  /// Each ring has one writer.
  void record(int32_t ring, const TraceRecord &record) {
    rings[ring].records[rings[ring].written++ % ringRecords] = record;
  }
  /// Writes the file. Once, when no worker records any more.
  Status write(const Program &program);

private:
  struct alignas(64) Ring {
    TraceRecord *records;
    int64_t written = 0;
  };
  Trace() = default;

  std::string path;
  FILE *file = nullptr;
  void *mapping = nullptr;
  size_t mappingBytes = 0;
  std::vector<Ring> rings;
};

} // namespace k2c::runtime

#endif

// The file of --trace: what ran when on all ranks, as Perfetto and chrome://tracing read it.
#ifndef K2RT_ENGINE_TRACEFILE_H
#define K2RT_ENGINE_TRACEFILE_H

#include "engine/ExpertLoads.h"
#include "engine/OutputFile.h"
#include "engine/Trace.h"
#include "program/Manifest.h"
#include "program/Program.h"
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

namespace k2c::runtime {

class TraceFile {
public:
  /// Begins the file now, so that a bad path fails before the run; it is there when it is finished.
  static Expected<std::unique_ptr<TraceFile>> create(const std::string &path);

  /// A rank, whose process is the next events' and has a track a worker, `track` and its number; `ranks`: of the
  /// program.
  void beginRank(int32_t rank, int64_t ranks, int32_t workers, const std::string &track = "worker");
  /// A record of ring `ring` of that rank. What it says may come from another host: names are looked up, not trusted.
  void write(int32_t ring, const TraceRecord &record, const Program &program, const Manifest &manifest);
  /// All that `trace` has, of the rank that runs here.
  void write(const Trace &trace, int32_t rank, const Program &program, const Manifest &manifest);
  /// At the end, of layer `layer` of the checkpoint: `loads` of its experts and, of several ranks, mean over largest of
  /// the rows of ranks.
  void writeLoads(int64_t layer, const ExpertLoads &loads, std::optional<double> balancedness);
  /// Once, behind all; `lost`: records of all ranks that were overwritten.
  Status finish(int64_t lost);

private:
  explicit TraceFile(OutputFile created) : output(std::move(created)), file(output.stream()) {}
  void writeCollective(const TraceRecord &record, const Manifest &manifest);

  OutputFile output;
  FILE *file;                       ///< its stream
  int32_t process = 0, workers = 0; ///< of the events that come
  int64_t collectives = 0;          ///< so far, by which the ends of one are matched
  bool hasEvents = false, hasLoads = false;
};

} // namespace k2c::runtime

#endif

// A run of a bundle: its rank, how long the pieces of a prompt are, and what ran when.
//
// Everything is allocated at the start, once. The scheduler (Scheduler.h) decides what a step contains; the engine has
// it run. Which kind of device a rank has is its caller's choice.
#ifndef K2RT_ENGINE_ENGINE_H
#define K2RT_ENGINE_ENGINE_H

#include "engine/Rank.h"
#include "engine/Trace.h"
#include <memory>
#include <string>

namespace k2c::runtime {

struct EngineOptions {
  int64_t chunk = 0;     ///< most prompt tokens of a sequence per step; 0: as many as fit
  std::string traceFile; ///< "": no trace
};

class Engine {
public:
  /// `bundle` outlives the engine.
  static Expected<std::unique_ptr<Engine>> create(const Bundle &bundle, std::unique_ptr<Device> device,
                                                  const EngineOptions &options);

  const Manifest &manifest() const { return theBundle.manifest; }
  int64_t chunk() const { return chunkTokens; }
  Rank &rank() { return *theRank; }
  void interrupt() { theRank->interrupt(); }
  /// Writes the trace, if there is one. Once, after the last step.
  Status finishTrace();

private:
  explicit Engine(const Bundle &bundle) : theBundle(bundle) {}

  const Bundle &theBundle;
  int64_t chunkTokens = 0;
  std::unique_ptr<Trace> trace;
  std::unique_ptr<Rank> theRank; ///< last: its device records into the trace
};

} // namespace k2c::runtime

#endif

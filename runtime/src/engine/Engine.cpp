// What can be refused cheaply comes first: options, the trace's file, then memory.
#include "engine/Engine.h"

namespace k2c::runtime {

Expected<std::unique_ptr<Engine>> Engine::create(const Bundle &bundle, std::unique_ptr<Device> device,
                                                 const EngineOptions &options) {
  if (options.chunk < 0)
    return Error{K2RT_INVALID_ARGUMENT, "--chunk", "is " + std::to_string(options.chunk) + ", must be at least 1", ""};
  std::unique_ptr<Engine> engine(new Engine(bundle));
  engine->chunkTokens = options.chunk > 0 ? options.chunk : bundle.manifest.limits.step_tokens;
  if (!options.traceFile.empty()) {
    Expected<std::unique_ptr<Trace>> trace = Trace::create(options.traceFile, device->workers());
    if (!trace)
      return trace.takeError();
    engine->trace = std::move(*trace);
  }
  Expected<std::unique_ptr<Rank>> rank = Rank::create(bundle, std::move(device), engine->trace.get());
  if (!rank)
    return rank.takeError();
  engine->theRank = std::move(*rank);
  return engine;
}

Status Engine::finishTrace() { return trace ? trace->write(theBundle.program) : Status(); }

} // namespace k2c::runtime

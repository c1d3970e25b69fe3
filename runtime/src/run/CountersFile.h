// The file of --counters.
#ifndef K2RT_RUN_COUNTERSFILE_H
#define K2RT_RUN_COUNTERSFILE_H

#include "engine/Engine.h"
#include <cstdio>
#include <vector>

namespace k2c::runtime {

/// Bytes, messages and seconds are those of all ranks, added up.
struct RunCounters {
  int64_t steps = 0, halved = 0; ///< of all steps, those in two halves
  Counters exchanged;
  const RouteTraffic *routes = nullptr;
  PromptSpread prompts;
};

void writeCounters(const RunCounters &counters, const Manifest &manifest, FILE *file);

} // namespace k2c::runtime

#endif
